package credit_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/test/enginetest"
)

const lockAda = `UPDATE credit_balances SET held = held WHERE account_id = 'ada'`

// twoBooks stores two accounts with credit.
func twoBooks(t *testing.T, where string) (*db.DB, *credit.Ledger) {
	t.Helper()
	s := dbtest.OpenAt(t, where)
	t.Cleanup(func() { _ = s.Close() })
	l := newLedger(s, time.Now)
	for _, id := range []string{"ada", "bob"} {
		dbtest.AddAccount(t, s, id)
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
	where := dbtest.Postgres(t)
	_, l := twoBooks(t, where)
	client := enginetest.Connect(t, where)
	other, err := client.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), lockAda)
	must(t, err)
	ada := make(chan error, 1)
	go func() { ada <- hold(t.Context(), l, "ada") }()
	dbtest.AwaitLock(t, client)
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

// A cap that is set while a hold waits for the balance applies to the hold.
func TestCredit_CapSetWhileHoldWaits(t *testing.T) {
	where := dbtest.Postgres(t)
	s, l := twoBooks(t, where)
	dbtest.AddProject(t, s, "ada", modelProjects[0])
	client := enginetest.Connect(t, where)
	other, err := client.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = other.ExecContext(t.Context(), lockAda)
	must(t, err)
	held := make(chan error, 1)
	go func() {
		_, err := l.Hold(t.Context(), credit.HoldRequest{Account: "ada", Project: modelProjects[0], Amount: 1})
		held <- err
	}()
	dbtest.AwaitLock(t, client)
	dbtest.Exec(t, s, `INSERT INTO gateway_settings (account_id, app_id, day_cap) VALUES ('ada', $1, 0)`, modelProjects[0])
	must(t, other.Rollback())
	var refused *credit.CapReached
	if err := <-held; !errors.As(err, &refused) {
		t.Errorf("got error %v, want *CapReached", err)
	}
}

// PostgreSQL aborts the transaction of a server that is frozen in the middle of it; the transaction then runs again.
func TestCredit_FrozenServerLosesItsLock(t *testing.T) {
	where := dbtest.Postgres(t)
	_, l := twoBooks(t, where)
	frozen := dbtest.OpenAt(t, where+"&idle_in_transaction_session_timeout=100")
	defer frozen.Close()
	runs := 0
	err := frozen.Write(t.Context(), func(tx *sql.Tx) error {
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
