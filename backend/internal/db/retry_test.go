package db_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/enginetest"
)

// If several servers start on an empty database at the same time, one migrates it and all of them serve.
func TestOpen_ConcurrentServersMigrateOnce(t *testing.T) {
	rounds := 4
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		rounds = 20
	}
	enginetest.EachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		for range rounds {
			where := database(t)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					s, err := db.Open(t.Context(), where, slog.New(slog.DiscardHandler))
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					if err := s.KeepKey(t.Context(), "check"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if t.Failed() {
				return
			}
		}
	})
}

func someone(id string) account.Account {
	return account.Account{ID: id, Email: id + "@example.org", PasswordHash: "x", Active: true,
		PrivacyAccepted: time.Now(), CreatedAt: time.Now()}
}

// cutter is a proxy to PostgreSQL that closes connections at commits.
type cutter struct {
	to     string       // the address of the server's socket
	before atomic.Int32 // how many connections to close before the server receives the commit
	after  atomic.Int32 // how many connections to close after the commit, before the client has the response
}

// way returns a database address that leads through the proxy.
func (c *cutter) way(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	c.to = filepath.Join(q.Get("host"), ".s.PGSQL.5432")
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(client)
		}
	}()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String()
}

func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", c.to)
	if err != nil {
		return
	}
	defer server.Close()
	var cut atomic.Bool
	go func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || cut.Load() {
				return // the commit was acknowledged
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("commit\x00")) {
			if take(&c.before) {
				return
			}
			cut.Store(take(&c.after))
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if cut.Load() {
			_, _ = io.Copy(io.Discard, client) // until the response has arrived
			return
		}
	}
}

func take(n *atomic.Int32) bool {
	for {
		left := n.Load()
		if left == 0 || n.CompareAndSwap(left, left-1) {
			return left > 0
		}
	}
}

// If the connection is lost at the commit, a write whose transaction was committed succeeds, and any other runs again.
func TestCommit_ConnectionLost(t *testing.T) {
	where := dbtest.Postgres(t)
	c := &cutter{}
	s := dbtest.OpenAt(t, c.way(t, where))
	defer s.Close()
	for name, at := range map[string]*atomic.Int32{"before": &c.before, "after": &c.after} {
		at.Store(1)
		if err := account.NewStore(s).InsertAccount(t.Context(), someone(name)); err != nil {
			t.Errorf("connection closed %s the commit: %v", name, err)
		}
		if left := at.Load(); left != 0 {
			t.Fatalf("no connection was closed %s the commit", name)
		}
		if _, err := account.NewStore(s).AccountByID(t.Context(), name); err != nil {
			t.Errorf("connection closed %s the commit: the account is missing: %v", name, err)
		}
	}
	err := account.NewStore(s).InsertAccount(t.Context(), someone("before"))
	if !errors.Is(err, account.ErrEmailTaken) {
		t.Errorf("a second account with the address: got %v, want ErrEmailTaken", err)
	}
}

// terminate closes every connection to a database, as a restart would.
func terminate(t *testing.T, client *sql.DB) {
	t.Helper()
	_, err := client.ExecContext(t.Context(),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Error(err)
	}
}

// If a server closes connections, or refuses writes because another server has taken over, a write is only delayed.
func TestWrite_SurvivesPostgresRestart(t *testing.T) {
	where := dbtest.Postgres(t)
	s, client := dbtest.OpenAt(t, where), enginetest.Connect(t, where)
	defer s.Close()
	defer client.Close()
	runs := 0
	err := s.Write(t.Context(), func(tx *sql.Tx) error {
		if runs++; runs == 1 {
			terminate(t, client)
		}
		_, err := tx.ExecContext(t.Context(), `INSERT INTO settings (name, value) VALUES ('restarted', 'x')`)
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("after termination: got %d runs (error %v), want 2", runs, err)
	}
	readOnly := func(value string) {
		if _, err := client.ExecContext(t.Context(),
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = `+value+`', current_database()); END $$`); err != nil {
			t.Error(err)
		}
		terminate(t, client)
	}
	readOnly("on")
	runs = 0
	err = s.Write(t.Context(), func(tx *sql.Tx) error {
		if runs++; runs == 3 {
			if _, err := client.ExecContext(t.Context(), `SET default_transaction_read_only = off`); err != nil {
				t.Error(err)
			}
			readOnly("off")
		}
		_, err := tx.ExecContext(t.Context(), `INSERT INTO settings (name, value) VALUES ('taken over', 'x')`)
		return err
	})
	if err != nil || runs < 3 {
		t.Errorf("after a read-only period: got %d runs (error %v), want at least 3", runs, err)
	}
}

// Database failures are distinguished from row failures: the relay retries the former and gives up on the latter.
func TestAppendEvents_ReportsUnavailableDatabase(t *testing.T) {
	where := dbtest.Postgres(t)
	s, client := dbtest.OpenAt(t, where), enginetest.Connect(t, where)
	defer s.Close()
	defer client.Close()
	lock, err := client.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ExecContext(t.Context(), `LOCK TABLE sessions`); err != nil {
		t.Fatal(err)
	}
	rows := []sessions.Row{{SessionID: "ses_missing", Event: glasses.Event{ID: "a", Kind: glasses.KindEvent, Type: "x",
		Payload: []byte(`{}`)}}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := sessions.NewStore(s).AppendEvents(ctx, rows, sessions.DefaultQuota); !errors.Is(err,
		sessions.ErrUnavailable) {
		t.Errorf("a locked table: got %v, want ErrUnavailable", err)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := sessions.NewStore(s).AppendEvents(t.Context(), rows, sessions.DefaultQuota); !errors.Is(err,
		sessions.ErrNotFound) ||
		errors.Is(err, sessions.ErrUnavailable) {
		t.Errorf("an unknown session: got %v, want only ErrNotFound", err)
	}
}

// Ping reports a removed database, even if open connections to it still work.
func TestPing_RemovedDatabase(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		s := dbtest.OpenAt(t, where)
		defer s.Close()
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !enginetest.IsPostgres(where) {
			if err := os.Rename(where, where+".moved"); err != nil {
				t.Fatal(err)
			}
			if s.Ping(t.Context()) == nil {
				t.Error("Ping succeeds although the file was moved")
			}
			if err := os.WriteFile(where, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if s.Ping(t.Context()) == nil {
				t.Error("Ping succeeds although another file has replaced the database")
			}
			return
		}
		u, err := url.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(u.Path, "/")
		admin := enginetest.Connect(t, strings.Replace(where, "/"+name+"?", "/postgres?", 1))
		if _, err := admin.ExecContext(t.Context(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Fatal(err)
		}
		if s.Ping(t.Context()) == nil {
			t.Error("Ping succeeds although the database was dropped")
		}
	})
}
