package db_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"testing"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/test/enginetest"
)

// Each connection has these timeouts, but timeouts in the database's URL take precedence.
func TestOpen_Timeouts(t *testing.T) {
	where := dbtest.Postgres(t)
	for address, want := range map[string]string{
		where:                         "5s 2s",
		where + "&lock_timeout=12345": "5s 12345ms",
	} {
		s := dbtest.OpenAt(t, address)
		var got string
		must(t, s.Write(t.Context(), func(tx *sql.Tx) error {
			return tx.QueryRowContext(t.Context(), `SELECT current_setting('idle_in_transaction_session_timeout') || ' ' ||
				current_setting('lock_timeout')`).Scan(&got)
		}))
		if got != want {
			t.Errorf("%s: got timeouts %q, want %q", address, got, want)
		}
		must(t, s.Close())
	}
}

// A write that another transaction blocks for too long fails as unavailable.
func TestWrite_LockTimeout(t *testing.T) {
	where := dbtest.Postgres(t)
	const lockAda = "UPDATE accounts SET state = state WHERE id = 'ada'"
	s := dbtest.OpenAt(t, where+"&lock_timeout=10")
	defer s.Close()
	dbtest.AddAccount(t, s, "ada")
	other, err := enginetest.Connect(t, where).BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), lockAda)
	must(t, err)
	runs := 0
	err = s.Write(t.Context(), func(tx *sql.Tx) error {
		runs++
		_, err := tx.ExecContext(t.Context(), lockAda)
		return err
	})
	if !errors.Is(err, sessions.ErrUnavailable) || runs < 2 {
		t.Errorf("got %v after %d runs, want ErrUnavailable after several", err, runs)
	}
	must(t, other.Rollback())
}

// A server that starts while another one migrates the database waits until the migration is finished.
func TestOpen_WaitsForMigrations(t *testing.T) {
	where := dbtest.Postgres(t)
	client := enginetest.Connect(t, where)
	migrating, err := client.Conn(t.Context())
	must(t, err)
	defer migrating.Close()
	_, err = migrating.ExecContext(t.Context(), `SELECT pg_advisory_lock($1)`, db.MigrationLock)
	must(t, err)
	opened := make(chan error, 1)
	go func() {
		s, err := db.Open(t.Context(), where+"&lock_timeout=10", slog.New(slog.DiscardHandler))
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	for waited := false; !waited; { // for ten times the timeout
		must(t, client.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > '100 ms')`).Scan(&waited))
		select {
		case err := <-opened:
			t.Fatalf("opening returned %v while another process migrated", err)
		default:
		}
	}
	_, err = migrating.ExecContext(t.Context(), `SELECT pg_advisory_unlock($1)`, db.MigrationLock)
	must(t, err)
	must(t, <-opened)
}
