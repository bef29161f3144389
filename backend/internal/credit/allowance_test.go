package credit_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/dbtest"
)

// Concurrent calls with a project key alone hold exactly as much as their allowance covers. Other calls are not
// limited by it, and the allowance is renewed at midnight UTC.
func TestAllowance_CoversConcurrentCallsExactly(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		store := dbtest.OpenAt(t, database(t))
		defer store.Close()
		now := time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC)
		l, project := newLedger(store, func() time.Time { return now }), modelProjects[0]
		addPurse(t, store, "ada", now)
		const calls, amount, admitted = 200, credit.Amount(3333), 150
		limit := admitted*amount + 7
		if err := l.SetCaps(t.Context(), "ada", project, credit.Caps{Keys: &limit}, audit.Person()); err != nil {
			t.Fatal(err)
		}
		byKey := credit.HoldRequest{Account: "ada", Project: project, Amount: amount, ByKey: true}
		holds := make(chan string, calls)
		var refused atomic.Int64
		var group sync.WaitGroup
		for range calls {
			group.Go(func() {
				h, err := l.Hold(t.Context(), byKey)
				var reserved *credit.Reserved
				switch {
				case err == nil:
					holds <- h.ID
				case errors.As(err, &reserved) && reserved.Cap == credit.CapKeys && reserved.Available == 7:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		close(holds)
		if len(holds) != admitted || refused.Load() != calls-admitted {
			t.Fatalf("%d calls were admitted and %d refused, want %d and %d", len(holds), refused.Load(), admitted,
				calls-admitted)
		}
		for id := range holds {
			group.Go(func() {
				if _, err := l.Settle(t.Context(), id, amount, call("ok")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		_, err := l.Hold(t.Context(), byKey)
		var required *credit.AttestationRequired
		if !errors.As(err, &required) || *required != (credit.AttestationRequired{Needed: amount, Limit: limit,
			Used: admitted * amount, ResetsAt: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}) {
			t.Errorf("above the allowance: got %+v, want AttestationRequired with its numbers", err)
		}
		for what, r := range map[string]credit.HoldRequest{
			"the rest of the allowance": {Account: "ada", Project: project, Amount: 7, ByKey: true},
			"an attested call":          {Account: "ada", Project: project, Amount: amount},
			"another project's key":     {Account: "ada", Project: modelProjects[1], Amount: amount, ByKey: true},
		} {
			if _, err := l.Hold(t.Context(), r); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		now = now.Add(2 * time.Minute)
		if _, err := l.Hold(t.Context(), byKey); err != nil {
			t.Errorf("on the next day: %v", err)
		}
		if r, err := l.Check(t.Context()); err != nil || len(r.Differences) > 0 {
			t.Errorf("the ledger does not add up: %+v (error %v)", r.Differences, err)
		}
		for _, wrong := range []string{"key_spent - 1", "spent + 1"} {
			_, err := store.Exec(t.Context(), "falsify a sum", `UPDATE credit_spending SET key_spent = `+wrong+
				` WHERE project = $1 AND period = '2026-01-31'`, project)
			if err != nil {
				t.Fatal(err)
			}
			r, err := l.Check(t.Context())
			if err != nil || len(r.Differences) != 1 || r.Differences[0].AccountID != "ada" ||
				r.Differences[0].What != "spent with keys of "+project+" in 2026-01-31" {
				t.Errorf("with %s: got %+v (error %v), want one difference", wrong, r.Differences, err)
			}
		}
	})
}
