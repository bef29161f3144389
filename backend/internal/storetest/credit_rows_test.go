package storetest

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

func deletedAccount(t *testing.T, f *purses) {
	f.spend(t, 300_000)
	must(f.Grant(t.Context(), "ada", credit.USD, "INV-7", "paid", audit.Operator()))(t)
	open := must(f.hold(t, 100_000))(t)
	accounts := account.New(account.Options{Store: f.store.accountStore, Hasher: hash, Log: slog.New(slog.DiscardHandler),
		Now: f.clock.now})
	var export bytes.Buffer
	fatal(t, accounts.Export(t.Context(), "ada", &export, audit.Person()))
	for _, part := range []string{`"creditBalance"`, `"creditTransfers"`, `"reference:INV-7"`, `"creditHolds"`,
		`"creditSpending"`, `"gatewayUsage"`, `"gatewayCalls"`, `"micro_usd":300000`} {
		if !strings.Contains(export.String(), part) {
			t.Errorf("the export does not contain %s: %s", part, export.String())
		}
	}
	fatal(t, accounts.Delete(t.Context(), "ada", audit.Person()))
	if dump := f.store.dump(); regexp.MustCompile(`\bada\b`).MatchString(dump) { // random IDs may contain the letters
		t.Errorf("the dump still identifies the account: %s", dump)
	}
	r := f.sound(t)
	if r.Closed != 2_700_000 || r.Used != 300_000 || r.PaidIn != credit.USD || r.Accounts != 0 {
		t.Errorf("ledger: got %+v, want the closed balance and the amounts used and paid in", r)
	}
	want(t, "settle of its call", errOf(f.Settle(t.Context(), open.ID, 1, credit.Call{Outcome: credit.OutcomeOK})),
		credit.ErrNoHold)
	if booked, err := f.Grant(t.Context(), "bob", credit.USD, "INV-7", "", audit.Operator()); booked || err == nil {
		t.Errorf("book a used reference: got %v (error %v), want a refusal", booked, err)
	}
}

func (f *purses) usage(t *testing.T, accountID, project string) (u credit.UsageRow) {
	t.Helper()
	fatal(t, f.Usage(t.Context(), credit.UsageQuery{AccountID: accountID, Project: project, To: f.clock.now().Add(time.Hour)},
		func(row credit.UsageRow) error {
			u.Calls, u.Failed, u.Refused = u.Calls+row.Calls, u.Failed+row.Failed, u.Refused+row.Refused
			u.Cancelled, u.Estimated = u.Cancelled+row.Cancelled, u.Estimated+row.Estimated
			u.TextIn, u.TextCached, u.TextOut = u.TextIn+row.TextIn, u.TextCached+row.TextCached, u.TextOut+row.TextOut
			u.AudioIn, u.AudioCached, u.AudioOut = u.AudioIn+row.AudioIn, u.AudioCached+row.AudioCached, u.AudioOut+row.AudioOut
			u.Duration, u.Charged = u.Duration+row.Duration, u.Charged+row.Charged
			return nil
		}))
	return u
}

func deletedProject(t *testing.T, f *purses) {
	h := must(f.hold(t, 100_000))(t)
	must(f.store.DeleteProject(t.Context(), "ada", appID, audit.New(f.clock.now(), "ada", audit.Person(), "project.deleted",
		appID, appID)))(t)
	if got := must(f.Settle(t.Context(), h.ID, 60_000, credit.Call{Outcome: credit.OutcomeOK}))(t); got != 60_000 {
		t.Errorf("charged %s, want 60000", got)
	}
	fatal(t, f.Record(t.Context(), credit.Call{Account: "ada", Project: appID, Outcome: "no_credit"}))
	if u := f.usage(t, "ada", ""); u.Calls != 0 {
		t.Errorf("usage: got %+v, want no calls", u)
	}
	if a := must(f.Account(t.Context(), "ada"))(t); a.Posted != 2*credit.USD-60_000 || a.Day.Spent != 60_000 {
		t.Errorf("account: got %+v, want 60,000 micro-USD spent", a)
	}
	f.sound(t)
}

func mergedProjects(t *testing.T, f *purses) {
	f.spend(t, 300_000)
	other := must(f.Hold(t.Context(), credit.HoldRequest{Account: "ada", Project: otherID, Amount: 200_000}))(t)
	must(f.Settle(t.Context(), other.ID, 200_000, credit.Call{Model: "small", Kind: "chat", Outcome: credit.OutcomeOK}))(t)
	for _, project := range []string{appID, otherID} { // with a project key alone
		byKey := must(f.Hold(t.Context(), credit.HoldRequest{Account: "ada", Project: project, Amount: 9, ByKey: true}))(t)
		must(f.Settle(t.Context(), byKey.ID, 5, credit.Call{Model: "small", Kind: "chat", Outcome: credit.OutcomeOK}))(t)
	}
	open := must(f.hold(t, 100_000))(t)
	f.setCaps(t, appID, amount(650_000), nil)
	fatal(t, f.store.MergeProjects(t.Context(), "ada", appID, otherID, audit.New(f.clock.now(), "ada", audit.Person(),
		"project.merged", otherID, "merged")))
	p := must(f.Project(t.Context(), "ada", otherID))(t)
	if p.Day.Spent != 500_010 || p.Keys.Spent != 10 || p.Day.Held != 100_000 || p.Caps.Day == nil ||
		*p.Caps.Day != 650_000 {
		t.Errorf("project: got %+v, want 500,010 spent, 10 of it with keys, 100,000 held and a cap of 650,000", p)
	}
	must(f.Settle(t.Context(), open.ID, 100_000, credit.Call{Model: "small", Kind: "chat", Outcome: credit.OutcomeFailed}))(t)
	if u := f.usage(t, "ada", otherID); u.Calls != 5 || u.Charged != 600_010 || u.Failed != 1 {
		t.Errorf("usage: got %+v, want 5 calls for 600,010, one of them failed", u)
	}
	if p := must(f.Project(t.Context(), "ada", otherID))(t); p.Day.Spent != 600_010 || p.Day.Held != 0 {
		t.Errorf("project: got %+v, want 600,010 spent and none held", p)
	}
	f.sound(t)
}

// A merged project may never spend more than either of the two projects could.
func mergedSettings(t *testing.T, f *purses) {
	setSource := func(project, source string) {
		fatal(t, f.store.SetKeySource(t.Context(), source, audit.New(f.clock.now(), "ada", audit.Person(), "x", project, "")))
	}
	merge := func(from, into string) {
		fatal(t, f.store.MergeProjects(t.Context(), "ada", from, into, audit.New(f.clock.now(), "ada", audit.Person(),
			"project.merged", into, "merged")))
	}
	f.setCaps(t, appID, amount(200_000), nil)
	setSource(appID, "own")
	f.setCaps(t, otherID, amount(300_000), amount(900_000))
	f.setCaps(t, otherID, amount(400_000), amount(900_000))
	merge(appID, otherID)
	c := must(f.store.CreditCaps(t.Context(), "ada", otherID))(t)
	source := must(f.store.KeySource(t.Context(), "ada", otherID))(t)
	if *c.Day != 200_000 || c.Month == nil || *c.Month != 900_000 || c.Version != 3 || source != "own" {
		t.Errorf("caps: got %s a day, %v a month, version %d, paid by %s; want the lower caps and own keys", *c.Day, c.Month,
			c.Version, source)
	}
	must(f.projects.MintKey(t.Context(), "ada", "com.example.third", "app", audit.Person()))(t)
	merge(otherID, "com.example.third") // a project without settings
	c = must(f.store.CreditCaps(t.Context(), "ada", "com.example.third"))(t)
	if source = must(f.store.KeySource(t.Context(), "ada", "com.example.third"))(t); *c.Day != 200_000 || source != "own" {
		t.Errorf("caps: got %+v, paid by %s; want 200,000 a day and own keys", c, source)
	}
	must(f.projects.MintKey(t.Context(), "ada", "com.example.fourth", "app", audit.Person()))(t)
	f.setCaps(t, "com.example.fourth", amount(100_000), nil)
	merge("com.example.fourth", "com.example.third")
	c = must(f.store.CreditCaps(t.Context(), "ada", "com.example.third"))(t)
	if source = must(f.store.KeySource(t.Context(), "ada", "com.example.third"))(t); *c.Day != 100_000 || source != "own" {
		t.Errorf("caps: got %+v, paid by %s; want 100,000 a day and own keys", c, source)
	}
	f.sound(t)
}

func callsCounted(t *testing.T, f *purses) {
	call := credit.Call{Account: "ada", Project: appID, Model: "echo", Kind: "chat", Source: "script", TextIn: 10,
		TextCached: 4, TextOut: 6, AudioIn: 3, AudioCached: 2, AudioOut: 1, Duration: 1500 * time.Millisecond}
	for _, outcome := range []string{"ok", "ok", "failed", "cancelled", "cap_reached", "no_credit", "no_credit"} {
		call.Outcome, call.Estimated = outcome, outcome == "cancelled"
		fatal(t, f.Record(t.Context(), call))
	}
	want := credit.UsageRow{Calls: 4, Failed: 1, Cancelled: 1, Refused: 3, Estimated: 1, TextIn: 70, TextCached: 28,
		TextOut: 42, AudioIn: 21, AudioCached: 14, AudioOut: 7, Duration: 10500 * time.Millisecond}
	if got := f.usage(t, "ada", appID); got != want {
		t.Errorf("usage: got %+v, want the sums of the recorded calls", got)
	}
	if got := f.usage(t, "bob", appID); got != (credit.UsageRow{}) {
		t.Errorf("another account's usage: got %+v, want none", got)
	}
	refusals := must(f.Refusals(t.Context(), credit.UsageQuery{AccountID: "ada", Project: appID,
		To: f.clock.now().Add(time.Hour)}))(t)
	if len(refusals) != 2 || refusals[0].Code != "no_credit" || refusals[0].Count != 2 ||
		!refusals[0].LastAt.Equal(f.clock.now()) {
		t.Errorf("refusals: got %+v, want two codes, no_credit first", refusals)
	}
}

func oldRowsGo(t *testing.T, f *purses) {
	f.spend(t, 100_000)
	open := must(f.hold(t, 100_000))(t)
	for i := range 5 {
		f.clock.pass(time.Second)
		fatal(t, f.Record(t.Context(), credit.Call{Account: "ada", Project: appID, Outcome: fmt.Sprint("code", i)}))
	}
	now := f.clock.now()
	fatal(t, f.store.PruneCredit(t.Context(), credit.Prune{
		Holds: now.Add(time.Hour), CallsOfProject: 2, Recent: now.Add(-time.Hour),
	}))
	latest := must(f.Refusals(t.Context(), credit.UsageQuery{AccountID: "ada", Project: appID, To: now.Add(time.Hour)}))(t)
	if len(latest) != 2 || latest[0].Code != "code3" || latest[1].Code != "code4" {
		t.Errorf("the latest calls: got %+v, want code3 and code4", latest)
	}
	if n := f.store.count("SELECT COUNT(*) FROM credit_holds"); n != 1 {
		t.Errorf("%d holds remain, want only the open one", n)
	}
	later := now.Add(500 * 24 * time.Hour)
	fatal(t, f.store.PruneCredit(t.Context(), credit.Prune{Holds: later, Usage: later, Calls: later, Grants: later,
		Period: "9999", CallsOfProject: 1}))
	for table, want := range map[string]int{"gateway_usage": 0, "gateway_calls": 0, "credit_free_grants": 0,
		"credit_spending": 4, "credit_transfers": 2} { // sums that include the open hold remain, and all transfers
		if n := f.store.count("SELECT COUNT(*) FROM " + table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	fatal(t, f.Release(t.Context(), open.ID, credit.Call{Outcome: credit.OutcomeFailed}))
	f.sound(t)
}
