package storetest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/test/enginetest"
)

// outage makes statements of the ledger fail, as if the database was unreachable.
type outage struct {
	db   *database
	away string // the table that is missing
}

// begin makes statements that use a table fail.
func (o *outage) begin(table string) {
	o.db.t.Helper()
	o.away = table
	o.db.exec("ALTER TABLE " + table + " RENAME TO away")
}

func (o *outage) end() {
	o.db.t.Helper()
	o.db.exec("ALTER TABLE away RENAME TO " + o.away)
}

// fails fails the test unless a call returned an error.
func (o *outage) fails(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error during an outage", what)
	}
}

// newAwayLedgers returns the ledgers of two processes on a database that can become unreachable.
func (f *purses) newAwayLedgers(log *slog.Logger) (*outage, *credit.Ledger, *credit.Ledger) {
	o := credit.Options{Store: f.store.creditStore, Hasher: hash, Free: 2 * credit.USD, Now: f.clock.now, Log: log}
	return &outage{db: f.store}, credit.New(o), credit.New(o)
}

func answered(id string) credit.Call {
	return credit.Call{Model: id, Kind: "chat", Outcome: credit.OutcomeOK, TextOut: 1}
}

// Calls that end while the database is unreachable are charged when it returns, for outages of any length: even if
// their leases have ended and another process sweeps first.
func outageLosesNothing(t *testing.T, f *purses) {
	away, ledger, other := f.newAwayLedgers(nil)
	f.Ledger = ledger
	crashed := must(f.hold(t, 1000))(t) // its process no longer exists
	f.clock.pass(2 * credit.Lease)
	var holds []credit.Hold
	for range 3 {
		holds = append(holds, must(f.hold(t, 1000))(t))
	}
	away.begin("credit_holds")
	for i, h := range holds {
		charge := credit.Amount(100 * i)
		want(t, "settle", errOf(ledger.Settle(t.Context(), h.ID, charge, answered("small"))), credit.ErrKept)
	}
	for range 10 {
		f.clock.pass(credit.SweepEvery)
		away.fails(t, "settle again", ledger.SettleKept(t.Context()))
		away.fails(t, "sweep", other.Sweep(t.Context()))
	}
	away.end()
	fatal(t, other.Sweep(t.Context()))
	if a := must(ledger.Account(t.Context(), "ada"))(t); a.Held != 3000 {
		t.Errorf("%s are held after the sweep by another process, want 3000", a.Held)
	}
	fatal(t, ledger.SettleKept(t.Context()))
	fatal(t, ledger.SettleKept(t.Context())) // nothing is left to settle
	if a := must(ledger.Account(t.Context(), "ada"))(t); a.Held != 0 || a.Posted != 2*credit.USD-300 {
		t.Errorf("balance: got %+v, want 300 micro-USD spent and none held", a.Balance)
	}
	want(t, "renew", ledger.Renew(t.Context(), crashed.ID), credit.ErrHoldEnded)
	f.sound(t)

	last := must(f.hold(t, 1000))(t)
	f.clock.pass(3 * credit.Lease)
	fatal(t, other.Sweep(t.Context()))
	want(t, "a hold that was not renewed", ledger.Renew(t.Context(), last.ID), credit.ErrHoldEnded)
}

// If the database returns between the attempt to settle the kept calls and the sweep, no charge is lost either.
func outageEndsBeforeTheSweep(t *testing.T, f *purses) {
	away, ledger, _ := f.newAwayLedgers(nil)
	f.Ledger = ledger
	h := must(f.hold(t, 1000))(t)
	f.clock.pass(credit.Lease / 3)
	away.begin("credit_transfers")
	want(t, "settle", errOf(ledger.Settle(t.Context(), h.ID, 400, answered("small"))), credit.ErrKept)
	away.fails(t, "settle again", ledger.SettleKept(t.Context()))
	f.clock.pass(credit.Lease - credit.SweepEvery)
	away.fails(t, "settle again", ledger.SettleKept(t.Context()))
	f.clock.pass(credit.SweepEvery)
	fatal(t, ledger.Sweep(t.Context()))
	away.end()
	fatal(t, ledger.SettleKept(t.Context()))
	if a := must(ledger.Account(t.Context(), "ada"))(t); a.Held != 0 || a.Posted != 2*credit.USD-400 {
		t.Errorf("balance: got %+v, want 400 micro-USD spent and none held", a.Balance)
	}
	f.sound(t)
}

// If PostgreSQL restarts between the calls, the settlement finds only closed connections and tries again at once.
func restartDelaysSettlement(t *testing.T, f *purses) {
	h := must(f.hold(t, 1000))(t)
	if enginetest.IsPostgres(f.store.address) {
		f.store.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	charged, err := f.Settle(t.Context(), h.ID, 400, answered("small"))
	if err != nil || charged != 400 {
		t.Errorf("settle after a restart: got %d (error %v), want 400", charged, err)
	}
	f.sound(t)
}

// A process that ends while the database is unreachable logs the calls that remain uncharged.
func outageAtTheEnd(t *testing.T, f *purses) {
	var log bytes.Buffer
	away, ledger, _ := f.newAwayLedgers(slog.New(slog.NewTextHandler(&log, nil)))
	f.Ledger = ledger
	kept, late := must(f.hold(t, 2000))(t), must(f.hold(t, 2000))(t)
	away.begin("credit_holds")
	want(t, "settle", errOf(ledger.Settle(t.Context(), kept.ID, 1234, answered("small"))), credit.ErrKept)
	ended, end := context.WithCancel(t.Context())
	end()
	_ = ledger.Serve(ended)
	if text := log.String(); !strings.Contains(text, "failed to charge") || !strings.Contains(text, "cost=0.001234") ||
		!strings.Contains(text, kept.ID) {
		t.Error(text)
	}
	log.Reset()
	want(t, "settle", errOf(ledger.Settle(t.Context(), late.ID, 5, answered("small"))), credit.ErrKept)
	away.end()
	_ = ledger.Serve(ended)
	lost := strings.Contains(log.String(), "not charged")
	if a := must(ledger.Account(t.Context(), "ada"))(t); a.Posted != 2*credit.USD-5 || lost {
		t.Errorf("got balance %+v and log %s, want 5 micro-USD spent and no lost call", a.Balance, log.String())
	}
}
