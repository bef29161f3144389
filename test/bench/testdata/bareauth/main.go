// Command bareauth is the baseline of three routes of the backend: HTTP handlers that decode the body and do one thing
// to a database. A batch of usage events is appended with one commit (SQLite) or one COPY (PostgreSQL). A device code
// is inserted; on SQLite one commit covers all pending inserts. A poll is one point read. Its argument is a
// postgres:// URL; without one it uses a new SQLite file with full sync. It prints its address.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

type batch struct {
	Events []event
}

type event struct {
	ID, At, Name string
	Fields       json.RawMessage
}

type floor struct {
	writes, reads *sql.DB
	postgres      bool
	read, insert  *sql.Stmt
	queue         chan waiting
}

type waiting struct {
	code string
	done chan error
}

func main() {
	dir, err := os.MkdirTemp("", "bareauth")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	f, err := open(dir)
	if err != nil {
		panic(err)
	}
	http.HandleFunc("POST /api/telemetry", f.telemetry)
	http.HandleFunc("POST /api/auth/device/code", f.code)
	http.HandleFunc("POST /api/auth/device/token", f.token)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go http.Serve(l, nil)
	io.Copy(io.Discard, os.Stdin) // the benchmark closes standard input when it is done
}

func open(dir string) (f *floor, err error) {
	f = &floor{postgres: len(os.Args) > 1, queue: make(chan waiting, 256)}
	if f.postgres {
		if f.writes, err = sql.Open("pgx", os.Args[1]); err != nil {
			return nil, err
		}
		f.writes.SetMaxOpenConns(16)
		f.writes.SetMaxIdleConns(16)
		f.reads = f.writes
	} else {
		dsn := "file:" + filepath.Join(dir, "b.db") +
			"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_txlock="
		if f.writes, err = sql.Open("sqlite", dsn+"immediate"); err != nil {
			return nil, err
		}
		f.writes.SetMaxOpenConns(1)
		if f.reads, err = sql.Open("sqlite", dsn+"deferred"); err != nil {
			return nil, err
		}
		f.reads.SetMaxOpenConns(max(4, runtime.NumCPU()))
		f.reads.SetMaxIdleConns(max(4, runtime.NumCPU()))
	}
	for _, statement := range []string{
		"CREATE TABLE events (id TEXT NOT NULL, install TEXT NOT NULL, at TEXT NOT NULL, name TEXT NOT NULL, fields TEXT " +
			"NOT NULL)",
		"CREATE TABLE codes (hash TEXT PRIMARY KEY, state TEXT NOT NULL, interval_s BIGINT NOT NULL, expires_at BIGINT NOT " +
			"NULL)",
	} {
		if _, err := f.writes.Exec(statement); err != nil {
			return nil, err
		}
	}
	if f.read, err = f.reads.Prepare("SELECT state, interval_s, expires_at FROM codes WHERE hash = $1"); err != nil {
		return nil, err
	}
	if f.insert, err = f.writes.Prepare("INSERT INTO codes VALUES ($1, 'pending', 5, $2)"); err != nil {
		return nil, err
	}
	if !f.postgres {
		go f.commit()
	}
	return f, nil
}

func (f *floor) telemetry(w http.ResponseWriter, r *http.Request) {
	var b batch
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err == nil {
		if f.postgres {
			err = f.copy(r, b)
		} else {
			err = f.append(r, b)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(map[string]int{"accepted": len(b.Events)})
}

// append inserts row by row, which with this driver is faster than one statement for all rows.
func (f *floor) append(r *http.Request, b batch) error {
	tx, err := f.writes.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.Prepare("INSERT INTO events (id, install, at, name, fields) VALUES ($1, $2, $3, $4, $5)")
	if err != nil {
		return err
	}
	defer insert.Close()
	install := r.Header.Get("X-Service-Install-Id")
	for i := range b.Events {
		e := &b.Events[i]
		if _, err := insert.Exec(e.ID, install, e.At, e.Name, string(e.Fields)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (f *floor) copy(r *http.Request, b batch) error {
	conn, err := f.writes.Conn(r.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	install := r.Header.Get("X-Service-Install-Id")
	return conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().CopyFrom(context.Background(), pgx.Identifier{"events"},
			[]string{"id", "install", "at", "name", "fields"},
			pgx.CopyFromSlice(len(b.Events), func(i int) ([]any, error) {
				e := &b.Events[i]
				return []any{e.ID, install, e.At, e.Name, string(e.Fields)}, nil
			}))
		return err
	})
}

func (f *floor) code(w http.ResponseWriter, r *http.Request) {
	var body struct{ Scope string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code := rand.Text()
	var err error
	if f.postgres {
		_, err = f.insert.Exec(code, time.Now().UnixMilli())
	} else {
		one := waiting{code, make(chan error, 1)}
		f.queue <- one
		err = <-one.done
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{"deviceCode": code})
}

// commit inserts all pending codes in one transaction.
func (f *floor) commit() {
	for first := range f.queue {
		all := []waiting{first}
		for more := true; more && len(all) < 64; {
			select {
			case next := <-f.queue:
				all = append(all, next)
			default:
				more = false
			}
		}
		tx, err := f.writes.Begin()
		if err == nil {
			insert := tx.Stmt(f.insert)
			for _, one := range all {
				_, failed := insert.Exec(one.code, time.Now().UnixMilli())
				err = errors.Join(err, failed)
			}
			err = errors.Join(err, tx.Commit())
		}
		for _, one := range all {
			one.done <- err
		}
	}
}

func (f *floor) token(w http.ResponseWriter, r *http.Request) {
	var body struct{ DeviceCode string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var state string
	var interval, expires int64
	if err := f.read.QueryRow(body.DeviceCode).Scan(&state, &interval, &expires); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"pending": true, "pollIntervalSeconds": interval})
}
