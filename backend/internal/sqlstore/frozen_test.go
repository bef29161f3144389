package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/test/enginetest"
)

const lockAda = `UPDATE credit_balances SET held = held WHERE account_id = 'ada'`

// twoBooks stores two accounts with credit.
func twoBooks(t *testing.T, where string) (*sqlstore.Store, *credit.Ledger) {
	t.Helper()
	s := openStore(t, where)
	t.Cleanup(func() { _ = s.Close() })
	l := newLedger(s, time.Now)
	for _, id := range []string{"ada", "bob"} {
		must(t, s.InsertAccount(t.Context(), someone(id)))
		if _, err := l.Account(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	return s, l
}

func hold(ctx context.Context, l *credit.Ledger, account string) error {
	_, err := l.Hold(ctx, credit.HoldRequest{Account: account, Amount: 1})
	return err
}

// While another process holds the lock of one account's balance, calls of other accounts are admitted.
func TestCredit_LockedAccountDelaysNoOther(t *testing.T) {
	where := onPostgres(t)
	_, l := twoBooks(t, where)
	db := enginetest.Connect(t, where)
	other, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), lockAda)
	must(t, err)
	ada := make(chan error, 1)
	go func() { ada <- hold(t.Context(), l, "ada") }()
	waitForLock(t, db)
	for range 20 {
		must(t, hold(t.Context(), l, "bob"))
	}
	select {
	case err := <-ada:
		t.Fatalf("the locked account's call returned %v before the calls of the other account", err)
	default:
	}
	must(t, other.Rollback())
	must(t, <-ada)
}

// PostgreSQL aborts the transaction of a server that is frozen in the middle of it; the transaction then runs again.
func TestCredit_FrozenServerLosesItsLock(t *testing.T) {
	where := onPostgres(t)
	_, l := twoBooks(t, where)
	frozen := openStore(t, where+"&idle_in_transaction_session_timeout=100")
	defer frozen.Close()
	runs := 0
	err := sqlstore.Write(frozen, t.Context(), func(tx *sql.Tx) error {
		runs++
		if _, err := tx.ExecContext(t.Context(), lockAda); err != nil || runs > 1 {
			return err
		}
		return hold(t.Context(), l, "ada")
	})
	if err != nil || runs != 2 {
		t.Errorf("the frozen server's transaction ran %d times (error %v), want 2", runs, err)
	}
}

// Each connection has these timeouts, but timeouts in the database's URL take precedence.
func TestOpen_Timeouts(t *testing.T) {
	where := onPostgres(t)
	for address, want := range map[string]string{
		where:                         "5s 2s",
		where + "&lock_timeout=12345": "5s 12345ms",
	} {
		s := openStore(t, address)
		var got string
		must(t, sqlstore.Write(s, t.Context(), func(tx *sql.Tx) error {
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
	where := onPostgres(t)
	twoBooks(t, where)
	other, err := enginetest.Connect(t, where).BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), lockAda)
	must(t, err)
	s := openStore(t, where+"&lock_timeout=10")
	defer s.Close()
	runs := 0
	err = sqlstore.Write(s, t.Context(), func(tx *sql.Tx) error {
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
	where := onPostgres(t)
	db := enginetest.Connect(t, where)
	migrating, err := db.Conn(t.Context())
	must(t, err)
	defer migrating.Close()
	_, err = migrating.ExecContext(t.Context(), `SELECT pg_advisory_lock($1)`, sqlstore.MigrationLock)
	must(t, err)
	opened := make(chan error, 1)
	go func() {
		s, err := sqlstore.Open(t.Context(), where+"&lock_timeout=10", slog.New(slog.DiscardHandler))
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	for waited := false; !waited; { // for ten times the timeout
		must(t, db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > '100 ms')`).Scan(&waited))
		select {
		case err := <-opened:
			t.Fatalf("opening returned %v while another process migrated", err)
		default:
		}
	}
	_, err = migrating.ExecContext(t.Context(), `SELECT pg_advisory_unlock($1)`, sqlstore.MigrationLock)
	must(t, err)
	must(t, <-opened)
}
