package storetest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

// purses is the ledger with the projects of ada and bob.
type purses struct {
	*tenants
	*credit.Ledger
	store *database
}

func TestCredit(t *testing.T) {
	eachEngine(t, map[string]func(*testing.T, *purses){
		"free credit is granted once":           grantedOnce,
		"free credit is not farmed":             notFarmed,
		"spending waits for a proof":            waitsForProof,
		"caps over midnight":                    capsOverMidnight,
		"caps refuse with a number":             capsRefuse,
		"many calls on little credit":           manyCallsOnLittle,
		"cost above the hold is the operator's": shortfall,
		"deleted account leaves no trace":       deletedAccount,
		"deleted project":                       deletedProject,
		"merged projects":                       mergedProjects,
		"merged projects allow no more":         mergedSettings,
		"calls are counted":                     callsCounted,
		"old rows go":                           oldRowsGo,
		"an outage loses no charge":             outageLosesNothing,
		"an outage before a sweep loses none":   outageEndsBeforeTheSweep,
		"an outage at the end is logged":        outageAtTheEnd,
		"a restart only delays a settlement":    restartDelaysSettlement,
	}, func(t *testing.T, db *database, test func(*testing.T, *purses)) {
		f := newTenants(t, db)
		test(t, &purses{f, newCreditLedger(db, f.clock, false), db})
	})
}

func newCreditLedger(db *database, c *clock, needsProof bool) *credit.Ledger {
	return credit.New(credit.Options{Store: db.creditStore, Hasher: hash, Free: 2 * credit.USD, NeedsProof: needsProof,
		Now:      c.now,
		TopUpURL: "https://pay.example/in?plan=a"})
}

func (f *purses) hold(t *testing.T, amount credit.Amount) (credit.Hold, error) {
	return f.Hold(t.Context(), credit.HoldRequest{Account: "ada", Project: appID, Amount: amount})
}

// spend charges a call of ada.
func (f *purses) spend(t *testing.T, amount credit.Amount) {
	t.Helper()
	h := must(f.hold(t, amount))(t)
	must(f.Settle(t.Context(), h.ID, amount, credit.Call{Model: "small", Kind: "chat", Outcome: credit.OutcomeOK}))(t)
}

// sound fails the test if the ledger does not add up.
func (f *purses) sound(t *testing.T) credit.Report {
	t.Helper()
	r := must(f.Check(t.Context()))(t)
	if len(r.Differences) > 0 || r.Free+r.PaidIn+r.Operator != r.Posted+r.Used+r.Closed {
		t.Errorf("the ledger does not add up: %+v", r)
	}
	return r
}

// bookForm is the form of an account's book name, which is random and so reveals nothing about the account.
var bookForm = regexp.MustCompile(`^acct_[0-9a-f]{32}$`)

func grantedOnce(t *testing.T, f *purses) {
	won, _ := race(t, 8, isAny(), func(int) error { return errOf(f.Account(t.Context(), "ada")) })
	a := must(f.Account(t.Context(), "ada"))(t)
	if won != 8 || a.Posted != 2*credit.USD || a.Free != 2*credit.USD || a.Held != 0 || a.Locked {
		t.Errorf("%d calls opened the account, want 8: %+v", won, a)
	}
	page := "https://pay.example/in?account=" + a.Book + "&plan=a"
	if a.TopUpURL != page || !bookForm.MatchString(a.Book) {
		t.Errorf("top-up URL %s, want %s", a.TopUpURL, page)
	}
	// The first hold also opens a balance.
	must(f.Hold(t.Context(), credit.HoldRequest{Account: "bob", Amount: credit.USD}))(t)
	if all := must(f.Transfers(t.Context(), "bob", 0, 10))(t); len(all) != 1 || all[0].Debit != credit.BookFree ||
		all[0].Credit != "" {
		t.Errorf("transfers: got %+v, want only the free credit", all)
	}
	want(t, "unknown account", errOf(f.Account(t.Context(), "nobody")), credit.ErrNoAccount)
	want(t, "hold of one", errOf(f.Hold(t.Context(), credit.HoldRequest{Account: "nobody", Amount: 1})), credit.ErrNoAccount)
	f.sound(t)
}

func notFarmed(t *testing.T, f *purses) {
	free := func(id string) credit.Amount { return must(f.Account(t.Context(), id))(t).Free }
	if free("ada") == 0 {
		t.Error("ada has no free credit")
	}
	addAccount(t, f.store, f.clock, "ada2", "ADA+again@example.org")
	if free("ada2") != 0 {
		t.Error("another spelling of an address got free credit again")
	}
	fatal(t, f.store.DeleteAccount(t.Context(), "ada", f.clock.now()))
	addAccount(t, f.store, f.clock, "ada3", "ada@example.org")
	if free("ada3") != 0 {
		t.Error("free credit was granted again after the account was deleted")
	}
	f.clock.pass(91 * 24 * time.Hour)
	addAccount(t, f.store, f.clock, "ada4", "ada+later@example.org")
	if free("ada4") == 0 {
		t.Error("free credit was not granted after 90 days")
	}
	for _, n := range []struct {
		name  string
		visit func(i int) account.Visit
		want  int
	}{
		{"network", func(i int) account.Visit { return account.Visit{IP: fmt.Sprint("8.8.4.", i)} }, 20},
		{"unknown-proxy", func(i int) account.Visit {
			return account.Visit{IP: fmt.Sprintf("10.%d.0.1", i), BehindProxy: true}
		}, 20},
		{"office", func(int) account.Visit { return account.Visit{IP: "10.0.0.7"} }, 25},
	} {
		granted := 0
		for i := range 25 {
			id := fmt.Sprint(n.name, i)
			addAccount(t, f.store, f.clock, id, id+"@example.org")
			fatal(t, f.store.InsertWebSession(t.Context(), id, account.BrowserSession{
				ID: id, Hash: id, Visit: n.visit(i),
				CreatedAt: f.clock.now(), UsedAt: f.clock.now(), ExpiresAt: f.clock.now().Add(time.Hour),
			}))
			if free(id) > 0 {
				granted++
			}
		}
		if granted != n.want {
			t.Errorf("%s: %d of 25 accounts got free credit, want %d", n.name, granted, n.want)
		}
	}
	if dump := f.store.dump(); strings.Contains(dump, "credit_free_grants [ada") || strings.Contains(dump, "8.8.4.0/24") {
		t.Error("an address or a network is stored in clear text")
	}
	f.sound(t)
}

func waitsForProof(t *testing.T, f *purses) {
	l := newCreditLedger(f.store, f.clock, true)
	hold := func(id string) error {
		return errOf(l.Hold(t.Context(), credit.HoldRequest{Account: id, Project: appID, Amount: 1}))
	}
	var unproved *credit.Unproved
	if a := must(l.Account(t.Context(), "ada"))(t); !a.Locked || a.Posted != 2*credit.USD {
		t.Errorf("account: got %+v, want it locked", a)
	}
	if err := hold("ada"); !errors.As(err, &unproved) || unproved.Code() != "credit_locked" {
		t.Errorf("an unverified address: got %v, want credit_locked", err)
	}
	must(f.store.InsertIdentity(t.Context(), account.LinkedIdentity{Provider: "acme", Subject: "1", LinkedAt: f.clock.now(),
		UsedAt: f.clock.now()}, audit.New(f.clock.now(), "ada", audit.Person(), "x", "", "x")))(t)
	want(t, "with a provider", hold("ada"), nil)
	f.store.exec("UPDATE accounts SET verified_at = 1 WHERE id = 'bob'")
	want(t, "with a confirmed address", hold("bob"), nil)
	want(t, "unknown", hold("nobody"), credit.ErrNoAccount)
}

func amount(a credit.Amount) *credit.Amount { return &a }

func capsOverMidnight(t *testing.T, f *purses) {
	f.clock.at = time.Date(2026, 1, 31, 23, 59, 30, 0, time.UTC)
	must(f.Account(t.Context(), "ada"))(t)
	f.setCaps(t, appID, amount(500_000), amount(600_000))
	late := must(f.hold(t, 400_000))(t)
	f.clock.pass(40 * time.Second) // into the next day and the next month
	next := must(f.hold(t, 500_000))(t)
	var reserved *credit.Reserved
	err := errOf(f.hold(t, 1))
	if !errors.As(err, &reserved) || reserved.Cap != credit.CapDay || reserved.Held != 500_000 {
		t.Errorf("a call that the cap would cover without calls in flight: got %v, want credit.Reserved", err)
	}
	var reached *credit.CapReached
	if err := errOf(f.hold(t, 500_001)); !errors.As(err, &reached) || reached.Used != 500_000 {
		t.Errorf("a call above the new day's cap: got %v, want a refusal with 500,000 used", err)
	}
	must(f.Settle(t.Context(), late.ID, 300_000, credit.Call{Outcome: credit.OutcomeOK}))(t)
	p := must(f.Project(t.Context(), "ada", appID))(t)
	if p.Day.Spent != 0 || p.Day.Held != 500_000 || p.Month != p.Day {
		t.Errorf("on the new day: got %+v, want only today's call to count", p)
	}
	f.clock.pass(-time.Minute) // with the clock set back, the previous day's cap still counts its call
	if err := errOf(f.hold(t, 200_001)); !errors.As(err, &reached) || reached.Used != 300_000 {
		t.Errorf("a call above the old day's cap: got %v, want a refusal with 300,000 used", err)
	}
	must(f.hold(t, 200_000))(t)
	fatal(t, f.Release(t.Context(), next.ID, credit.Call{Outcome: credit.OutcomeFailed}))
	f.sound(t)
}

func capsRefuse(t *testing.T, f *purses) {
	must(f.Account(t.Context(), "ada"))(t)
	f.spend(t, 300_000)
	for _, test := range []struct {
		project string
		caps    credit.Caps
		want    credit.CapReached
	}{
		{appID, credit.Caps{Day: amount(400_000)}, credit.CapReached{Cap: "day", Of: "project"}},
		{appID, credit.Caps{Month: amount(400_000)}, credit.CapReached{Cap: "month", Of: "project"}},
		{"", credit.Caps{Day: amount(400_000)}, credit.CapReached{Cap: "day", Of: "account"}},
		{"", credit.Caps{Month: amount(400_000)}, credit.CapReached{Cap: "month", Of: "account"}},
	} {
		f.setCaps(t, test.project, test.caps.Day, test.caps.Month)
		var got *credit.CapReached
		if err := errOf(f.hold(t, 100_001)); !errors.As(err, &got) || got.Cap != test.want.Cap || got.Of != test.want.Of ||
			got.Limit != 400_000 || got.Used != 300_000 || !got.ResetsAt.After(f.clock.now()) {
			t.Errorf("got %[2]v, want %+[1]v", test.want, err)
		}
		fatal(t, f.Release(t.Context(), must(f.hold(t, 100_000))(t).ID, credit.Call{Outcome: credit.OutcomeFailed}))
		f.setCaps(t, test.project, nil, nil)
	}
	if n := len(f.entries(t, "credit.caps_changed")); n != 8 {
		t.Errorf("%d audit entries, want 8", n)
	}
}

// Two hundred concurrent calls share five cents. Calls refused only because of other calls in flight get that reason,
// and no money is spent twice.
func manyCallsOnLittle(t *testing.T, f *purses) {
	must(f.Account(t.Context(), "ada"))(t)
	must(f.Take(t.Context(), "ada", 1_950_000, "leave five cents", "", audit.Operator()))(t)
	refused := func(err error) bool {
		var reserved *credit.Reserved
		return errors.As(err, &reserved) && reserved.Code() == "credit_reserved" && reserved.Available >= 0
	}
	holds := make([]credit.Hold, 200)
	won, lost := race(t, len(holds), refused, func(i int) (err error) {
		holds[i], err = f.hold(t, 1_000)
		return err
	})
	if won != 50 || lost != 150 {
		t.Errorf("%d holds succeeded and %d were refused, want 50 and 150", won, lost)
	}
	race(t, len(holds), isAny(), func(i int) error {
		if holds[i].ID == "" {
			return nil
		}
		return errOf(f.Settle(t.Context(), holds[i].ID, 500, credit.Call{Outcome: credit.OutcomeOK}))
	})
	if a := must(f.Account(t.Context(), "ada"))(t); a.Posted != 25_000 || a.Held != 0 {
		t.Errorf("balance: got %+v, want 25,000 micro-USD and none held", a)
	}
	must(f.hold(t, 25_000))(t)
	f.sound(t)
}

func shortfall(t *testing.T, f *purses) {
	h := must(f.hold(t, 1_000))(t)
	huge := credit.Call{Model: "small", Kind: "chat", Outcome: credit.OutcomeOK, TextIn: 1e18, TextOut: -5}
	must(f.Settle(t.Context(), h.ID, 5_000, huge))(t)
	if got := must(f.Settle(t.Context(), h.ID, 7, huge))(t); got != 1_000 { // the first settlement counts
		t.Errorf("charged %s, want 1000", got)
	}
	want(t, "unknown hold", errOf(f.Settle(t.Context(), "no such", 1, huge)), credit.ErrNoHold)
	want(t, "negative", errOf(f.hold(t, -1)), credit.ErrBadAmount)
	none := must(f.hold(t, 0))(t)
	must(f.Settle(t.Context(), none.ID, 7, credit.Call{Account: "ada", Project: appID, Outcome: credit.OutcomeOK}))(t)
	r := f.sound(t)
	if r.Operator != 4_000 || r.Used != 5_000 || len(r.Shortfalls) != 1 || r.Shortfalls[0].ID != "short:"+h.ID {
		t.Errorf("ledger: got %+v, want one shortfall of 4,000 paid by the operator", r)
	}
}
