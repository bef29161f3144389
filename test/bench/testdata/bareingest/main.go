// Command bareingest is the baseline of event ingestion: an HTTP handler that decodes the batch and inserts the ids of
// its events with one statement and one commit. Its argument is a postgres:// URL; without one it uses a new SQLite
// file. It prints its address.
package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

type batch struct {
	Events []struct {
		ID, Type, Name, InstallID, AppVersion, Platform, DeviceModel string
		At                                                           int64
	}
}

func main() {
	dir, err := os.MkdirTemp("", "bareingest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := open(dir)
	if err != nil {
		panic(err)
	}
	const create = "CREATE TABLE seen (project BIGINT NOT NULL, hash BYTEA NOT NULL, PRIMARY KEY (project, hash))"
	if _, err := db.Exec(create); err != nil {
		panic(err)
	}
	http.HandleFunc("POST /api/analytics", func(w http.ResponseWriter, r *http.Request) {
		var b batch
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &b)
		}
		var result sql.Result
		if err == nil {
			values, args := insertion(b)
			result, err = db.Exec("INSERT INTO seen (project, hash) VALUES "+values+" ON CONFLICT DO NOTHING", args...)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		n, _ := result.RowsAffected()
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]int64{"accepted": n})
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go http.Serve(l, nil)
	io.Copy(io.Discard, os.Stdin) // the benchmark closes standard input when it is done
}

func open(dir string) (*sql.DB, error) {
	if len(os.Args) > 1 {
		db, err := sql.Open("pgx", os.Args[1])
		if err == nil {
			db.SetMaxOpenConns(16)
			db.SetMaxIdleConns(16)
		}
		return db, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "b.db")+
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func insertion(b batch) (string, []any) {
	var values strings.Builder
	args := []any{1}
	for i, e := range b.Events {
		if i > 0 {
			values.WriteByte(',')
		}
		fmt.Fprintf(&values, "($1,$%d)", i+2)
		sum := sha256.Sum256([]byte(e.ID))
		args = append(args, sum[:16])
	}
	return values.String(), args
}
