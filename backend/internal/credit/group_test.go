package credit_test

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
)

// Holds and settlements written in one transaction have the same results as in separate transactions.
func TestCredit_GroupKeepsOutcomesApart(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		store, err := db.Open(t.Context(), database(t), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		addPurse(t, store, "ada", now)
		credits := credit.NewStore(store)
		ledger := newLedger(store, func() time.Time { return now })
		if _, err := ledger.Account(t.Context(), "ada"); err != nil { // opens the balance
			t.Fatal(err)
		}
		hold := func(id string, cents credit.Amount) credit.Hold {
			return credit.Hold{ID: id, Account: "ada", Project: modelProjects[0], Amount: cents * credit.USD / 100,
				LeaseUntil: now.Add(credit.Lease)}
		}
		settle := func(id string, cents credit.Amount) credit.Settlement {
			return credit.Settlement{HoldID: id, Charge: cents * credit.USD / 100, Call: call(credit.OutcomeOK), At: now}
		}
		kinds := func(errs []error) (names []string) {
			for _, err := range errs {
				names = append(names, kindOfRefusal(err))
			}
			return names
		}
		want := func(what string, got []error, names ...string) {
			t.Helper()
			if !slices.Equal(kinds(got), names) {
				t.Errorf("%s: got %q, want %q", what, kinds(got), names)
			}
		}

		_, errs := credit.CommitTogether(credits, hold("a", 120), hold("b", 100), hold("nobody's", 300))
		want("holds for which the balance is too small", errs, "", "*credit.Reserved", "*credit.NoCredit")

		charged, errs := credit.CommitTogether(credits, settle("a", 20), settle("a", 30), settle("b", 1), hold("c", 150))
		want("a hold after money was returned", errs, "", "", credit.ErrNoHold.Error(), "")
		if charged[0] != 20*credit.USD/100 || charged[1] != charged[0] {
			t.Errorf("two settlements of one hold charged %d and %d, want the same charge of 20 cents", charged[0], charged[1])
		}

		_, errs = credit.CommitTogether(credits, hold("d", 10), hold("c", 1), hold("e", 10))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil {
			t.Errorf("holds before, with and after a used ID: got %v, want only the second to fail", errs)
		}

		limit := 195 * credit.USD / 100 // 20 cents are spent and 170 cents are held
		if err := ledger.SetCaps(t.Context(), "ada", modelProjects[0], credit.Caps{Day: &limit}, audit.Person()); err != nil {
			t.Fatal(err)
		}
		_, errs = credit.CommitTogether(credits, hold("f", 3), hold("g", 3))
		want("holds at a cap", errs, "", "*credit.Reserved")
		var reserved *credit.Reserved
		if errors.As(errs[1], &reserved) && reserved.Available != 2*credit.USD/100 {
			t.Errorf("%d are left under the cap, want 2 cents", reserved.Available)
		}

		if report, err := ledger.Check(t.Context()); err != nil || len(report.Differences) > 0 || report.OpenHolds != 4 {
			t.Errorf("got %d open holds, differences %v (error %v), want 4 open holds", report.OpenHolds, report.Differences,
				err)
		}
	})
}
