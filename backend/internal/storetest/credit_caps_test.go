package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/projects"
)

func TestCreditCaps(t *testing.T) {
	eachEngine(t, map[string]func(*testing.T, *purses){
		"caps are versioned and undone": capsVersioned,
		"one of two changes wins":       capsRaced,
		"mail about caps":               capMails,
		"mail about the balance":        balanceMails,
		"a merged project's mails":      mergedMails,
	}, func(t *testing.T, db *database, test func(*testing.T, *purses)) {
		f := newTenants(t, db)
		test(t, &purses{f, newCreditLedger(db, f.clock, false), db})
	})
}

// setCaps sets the caps, based on their current version.
func (f *purses) setCaps(t *testing.T, project string, day, month *credit.Amount) {
	t.Helper()
	now := must(f.store.CreditCaps(t.Context(), "ada", project))(t)
	fatal(t, f.SetCaps(t.Context(), "ada", project, credit.Caps{Day: day, Month: month, Version: now.Version},
		audit.Person()))
}

func capsVersioned(t *testing.T, f *purses) {
	for _, project := range []string{appID, ""} {
		f.setCaps(t, project, amount(300_000), amount(credit.MaxAmount))
		f.setCaps(t, project, amount(500_000), amount(credit.MaxAmount))
		f.setCaps(t, project, amount(500_000), nil)
		f.setCaps(t, project, amount(500_000), nil) // no change
		entries := f.entries(t, "credit.caps_changed")
		if len(entries) != 3 || entries[1].Summary != "cap of a day: 0.30 USD -> 0.50 USD" ||
			entries[0].Summary != "cap of a month: 1000000.00 USD -> none" || entries[0].Project != project {
			t.Fatalf("audit entries: got %+v, want 3 with both changes", entries)
		}
		err := f.SetCaps(t.Context(), "ada", project, credit.Caps{Day: amount(0), Version: 2}, audit.Person())
		var conflict *credit.ConflictError
		if !errors.As(err, &conflict) || conflict.Current != 3 || !errors.Is(err, credit.ErrConflict) {
			t.Errorf("an old version: got %v, want a conflict with version 3", err)
		}
		fatal(t, f.UndoCaps(t.Context(), "ada", entries[1], audit.Person())) // undoes only the day's cap
		if c := must(f.store.CreditCaps(t.Context(), "ada", project))(t); *c.Day != 300_000 || c.Month != nil || c.Version != 4 {
			t.Errorf("caps: got %+v, want 0.30 USD a day and no monthly cap at version 4", c)
		}
		want(t, "undone again", f.UndoCaps(t.Context(), "ada", must(f.audit.Get(t.Context(), "ada", entries[1].ID))(t),
			audit.Person()), credit.ErrNotUndoable)
		want(t, "undo of caps that were changed since", f.UndoCaps(t.Context(), "ada", entries[2], audit.Person()),
			credit.ErrConflict)
		want(t, "another account's", f.UndoCaps(t.Context(), "bob", entries[0], audit.Person()), credit.ErrNotUndoable)
		undo := f.entries(t, "credit.caps_undone")[0]
		f.setCaps(t, project, amount(1), nil)
		want(t, "undo of a value that was changed", f.UndoCaps(t.Context(), "ada", undo, audit.Person()), credit.ErrConflict)
		for _, wrong := range []credit.Amount{-1, credit.MaxAmount + 1} {
			want(t, "out of bounds", f.SetCaps(t.Context(), "ada", project, credit.Caps{Month: amount(wrong)}, audit.Person()),
				credit.ErrBadAmount)
		}
		f.store.exec("DELETE FROM audit")
	}
	f.setCaps(t, appID, amount(0), amount(0))
	must(f.Hold(t.Context(), credit.HoldRequest{Account: "bob", Project: appID, Amount: 1}))(t) // same project ID
	want(t, "unknown project", f.SetCaps(t.Context(), "ada", "com.example.none", credit.Caps{Day: amount(1)}, audit.Person()),
		projects.ErrNotFound)
	want(t, "unknown account", f.SetCaps(t.Context(), "nobody", "", credit.Caps{Day: amount(1)}, audit.Person()),
		credit.ErrNoAccount)
}

func capsRaced(t *testing.T, f *purses) {
	must(f.Account(t.Context(), "ada"))(t)
	for _, project := range []string{appID, ""} {
		won, lost := race(t, 8, isAny(credit.ErrConflict), func(i int) error {
			return f.SetCaps(t.Context(), "ada", project, credit.Caps{Day: amount(credit.Amount(i + 1))}, audit.Person())
		})
		if won != 1 || lost != 7 {
			t.Errorf("caps of %q: %d calls changed them, want 1; %d were refused", project, won, lost)
		}
	}
}

// mailing is two servers on one database, and the mails that they sent.
type mailing struct {
	*purses
	servers [2]*credit.Ledger
	sent    []credit.Notice
}

func newMailing(f *purses) *mailing {
	m := &mailing{purses: f}
	for i := range m.servers {
		m.servers[i] = credit.New(credit.Options{Store: f.store.creditStore, Hasher: hash, Free: 2 * credit.USD,
			Now:    f.clock.now,
			Notify: func(_ context.Context, n credit.Notice) { m.sent = append(m.sent, n) }})
	}
	return m
}

// spend charges a call on either server, unless the amount is 0, and returns the mails sent afterwards.
func (m *mailing) spend(t *testing.T, charge credit.Amount) (of []string) {
	t.Helper()
	m.sent = nil
	for _, l := range m.servers {
		c := credit.Call{Account: "ada", Project: appID, Model: "small", Kind: "chat", Outcome: credit.OutcomeOK}
		h, err := l.Hold(t.Context(), credit.HoldRequest{Account: "ada", Project: appID, Amount: charge / 2})
		if err == nil {
			must(l.Settle(t.Context(), h.ID, charge/2, c))(t)
			continue
		}
		c.Outcome = err.(interface{ Unwrap() error }).Unwrap().(interface{ Code() string }).Code()
		fatal(t, l.Record(t.Context(), c))
	}
	for _, l := range m.servers {
		fatal(t, l.SendNotices(t.Context()))
	}
	for _, n := range m.sent {
		word := n.Of
		if n.Project != "" {
			word = "project's " + word
		}
		if n.Refused {
			word += " refused"
		}
		of = append(of, word)
	}
	slices.Sort(of)
	return of
}

func (m *mailing) want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: mailed %q, want %q", what, got, want)
	}
}

func capMails(t *testing.T, f *purses) {
	m := newMailing(f)
	f.setCaps(t, appID, amount(100_000), amount(120_000))
	f.setCaps(t, "", amount(0), nil)
	f.setCaps(t, "", nil, amount(credit.USD))
	m.want(t, "below 80 %", m.spend(t, 79_998))
	if banners := must(f.Notices(t.Context(), "ada", appID))(t); len(banners) != 0 {
		t.Errorf("banners: got %+v, want none", banners)
	}
	m.want(t, "at 80 %", m.spend(t, 2), "project's day")
	n := m.sent[0]
	banners := must(f.Notices(t.Context(), "ada", appID))(t)
	if len(banners) != 1 || banners[0] != n || n.Spent != 80_000 || n.Limit != 100_000 || n.Text() != "The project "+appID+
		" has spent $0.08 of its cap of $0.10 a day. Calls that could cost more than what is left are refused until "+
		"3 Jan 2026, 00:00 UTC, unless you raise the cap." {
		t.Errorf("banners: got %+v, mail text %q; want one about the project's cap of a day", banners, n.Text())
	}
	if account := must(f.Notices(t.Context(), "ada", ""))(t); len(account) != 0 {
		t.Errorf("the account shows the banner of a project's cap: %+v", account)
	}
	m.want(t, "both caps", m.spend(t, 18_000), "project's month")
	m.want(t, "the same day, refused", m.spend(t, 40_000))
	f.clock.pass(24 * time.Hour)
	m.want(t, "the next day, refused", m.spend(t, 60_000), "project's month refused")
	m.want(t, "refused again", m.spend(t, 60_000))
	f.clock.pass(24 * time.Hour)
	m.want(t, "another day with some spending", m.spend(t, 2_000))
	f.setCaps(t, appID, nil, amount(121_000))
	m.want(t, "after the cap was changed", m.spend(t, 2), "project's month")
}

func balanceMails(t *testing.T, f *purses) {
	m := newMailing(f)
	m.want(t, "below 80 %", m.spend(t, 1_500_000))
	m.want(t, "at 80 %", m.spend(t, 200_000), "balance")
	if n := m.sent[0]; n.Text() != "$0.40 of credit are left of $2.00. Calls that could cost more than what is "+
		"left are refused until you top up." && n.Text() != "$0.30 of credit are left of $2.00. Calls that could "+
		"cost more than what is left are refused until you top up." {
		t.Error(n.Text())
	}
	if banners := must(f.Notices(t.Context(), "ada", ""))(t); len(banners) != 1 || banners[0].Of != credit.OfBalance {
		t.Errorf("banners: got %+v, want one about the balance", banners)
	}
	m.want(t, "no credit on the same day", m.spend(t, 2*credit.USD))
	f.clock.pass(24 * time.Hour)
	m.want(t, "the next day", m.spend(t, 2*credit.USD), "balance refused")
	must(f.Grant(t.Context(), "ada", credit.USD, "INV-1", "", audit.Operator()))(t)
	if banners := must(f.Notices(t.Context(), "ada", ""))(t); len(banners) != 0 {
		t.Errorf("banners after a top-up: got %+v, want none", banners)
	}
	m.want(t, "most of it on the same day", m.spend(t, 1_100_000))
	f.clock.pass(24 * time.Hour)
	m.want(t, "the day after", m.spend(t, 2_000), "balance")
	fatal(t, f.store.DeleteAccount(t.Context(), "ada", f.clock.now()))
	if strings.Contains(f.store.dump(), "credit_notices [ada") {
		t.Error("a notice is still stored after its account was deleted")
	}
}

func mergedMails(t *testing.T, f *purses) {
	m := newMailing(f)
	f.setCaps(t, appID, amount(100_000), nil)
	m.want(t, "the project", m.spend(t, 80_000), "project's day")
	fatal(t, f.store.MergeProjects(t.Context(), "ada", appID, otherID, audit.New(f.clock.now(), "ada", audit.Person(),
		"project.merged", otherID, "merged")))
	if n := f.store.count("SELECT COUNT(*) FROM credit_notices"); n != 0 {
		t.Errorf("%d notices remain for the project that was merged, want none", n)
	}
	if banners := must(f.Notices(t.Context(), "ada", otherID))(t); len(banners) != 1 || banners[0].Spent != 80_000 {
		t.Errorf("banners: got %+v, want one", banners)
	}
}
