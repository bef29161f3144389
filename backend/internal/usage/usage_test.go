package usage

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/problem"
)

// Every refusal that can end a call has a next step. Calls whose provider failed are not refusals. Calls without a key
// belong to no project, and calls whose body was not read are not counted.
func TestNext_KnowsEveryRefusal(t *testing.T) {
	checked := 0
	for _, row := range problem.Table() {
		if !strings.HasPrefix(row.Doc, "managed-gateway#") ||
			row.Status == http.StatusRequestEntityTooLarge || row.Status == http.StatusUnsupportedMediaType {
			continue
		}
		for _, code := range row.Codes {
			needsStep := !strings.HasPrefix(code, "provider_")
			if s := steps[code]; needsStep && (s.What == "" || s.Next == "") {
				t.Errorf("%s has no next step", code)
			}
			checked++
		}
	}
	if checked < 10 || StepFor("of a later version").Hint() == "" {
		t.Errorf("%d codes", checked)
	}
	for _, code := range []string{problem.CodeInvalidJSON, problem.CodeInvalidValue, problem.CodeUnsupportedParameter} {
		if steps[code].At != AtRequests {
			t.Errorf("%s: %+v", code, steps[code])
		}
	}
	for code, want := range map[string]string{problem.CodeOwnKeyRefused: "call setCredential",
		problem.CodeNoCredit: "/account/credit", problem.CodeCapReached: "gateway page"} {
		if hint := StepFor(code).Hint(); !strings.Contains(hint, want) {
			t.Errorf("%s: %s", code, hint)
		}
	}
}

func TestPaysFor_IsTheSourceOfTheNextCall(t *testing.T) {
	offered := func(local bool, why string) gateway.Availability {
		return gateway.Availability{Model: &gateway.Model{Provider: &gateway.Provider{Local: local}}, Why: why}
	}
	paid, local, hidden := offered(false, ""), offered(true, ""), offered(false, "no price")
	for name, c := range map[string]struct {
		setting  string
		models   []gateway.Availability
		scripted bool
		want     string
	}{
		"no model":                       {"credit", nil, false, "none"},
		"an assistant without a model":   {"credit", []gateway.Availability{{}}, false, "none"},
		"scripts only":                   {"credit", []gateway.Availability{hidden}, true, "script"},
		"credit":                         {"credit", []gateway.Availability{paid, local}, true, "credit"},
		"the assistant is local":         {"own", []gateway.Availability{local, paid}, false, "local"},
		"the assistant is not offered":   {"credit", []gateway.Availability{hidden, local}, false, "local"},
		"own keys":                       {"own", []gateway.Availability{paid}, false, "own_key"},
		"own keys, of which none is set": {"own", []gateway.Availability{hidden}, true, "own_key"},
	} {
		if got := PaysFor(c.setting, c.models, c.scripted); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestReport_Summary(t *testing.T) {
	r := Report{Unit: Day, Series: make([]Point, 7), Credit: credit.Account{Locked: true}}
	const want = "0 calls cost $0.00 in the last 7 days. $0.00 of credit left. " +
		"It cannot be spent before the owner has confirmed the account's e-mail address."
	if got := r.Summary(); got != want {
		t.Errorf("%q", got)
	}
	day := credit.Amount(500_000)
	r.To = time.Date(2026, 2, 28, 23, 0, 0, 0, time.UTC)
	r.addCaps(credit.OfProject, credit.Project{Caps: credit.Caps{Day: &day, Keys: &day}, Day: credit.Spent{Spent: 126_800},
		Keys: credit.Spent{Spent: 1200}})
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	if len(r.Caps) != 2 || !r.Caps[0].ResetsAt.Equal(midnight) || !r.Caps[1].ResetsAt.Equal(midnight) ||
		!strings.Contains(r.Summary(), "$0.1268 of the project's day cap of $0.50 are spent. "+
			"$0.0012 of today's $0.50 for calls with a project key are spent.") {
		t.Errorf("%+v: %s", r.Caps, r.Summary())
	}
}

// At the end of an hour, another process may already have counted a call in the next one.
func TestReport_CountsNothingAfterItsLastPoint(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 59, 59, 999_600_000, time.UTC)
	this := now.Truncate(time.Hour)
	d := dbtest.Open(t)
	dbtest.AddAccount(t, d, "a")
	dbtest.AddProject(t, d, "a", "p")
	for hour, calls := range map[time.Time]int{this.Add(-time.Hour): 1, this: 2, this.Add(time.Hour): 4} {
		dbtest.Exec(t, d, `INSERT INTO gateway_usage (account_id, app_id, hour, model, kind, source, calls, failed, cancelled,
			refused, estimated, text_in, text_cached, text_out, duration_ms, micro_usd)
			VALUES ('a', 'p', $1, 'm', 'chat', 'credit', $2, 0, 0, 0, 0, 0, 0, 0, 0, 0)`, hour.UnixMilli(), calls)
	}
	clock := func() time.Time { return now }
	ledger := credit.New(credit.Options{Store: credit.NewStore(d), Hasher: secret.NewHasher(make([]byte, 32)), Now: clock})
	s := &Service{Ledger: ledger, Models: gateway.New(gateway.Options{Now: clock}), Now: clock,
		KeySources: gateway.KeySources{Store: gateway.NewStore(d), Now: clock}}
	r, err := s.Report(t.Context(), "a", "p", Query{Unit: Hour, Points: 2})
	if err != nil || r.Totals.Calls != 3 || len(r.Series) != 2 || r.Series[1].Calls != 2 {
		t.Errorf("%+v %+v, %v", r.Totals, r.Series, err)
	}
}

// The sums by model and by source contain every class of tokens of each answer, and add up to what the ledger charged,
// to the micro-dollar.
func TestReport_VoiceAddsUpToTheLedger(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	d := dbtest.Open(t)
	dbtest.AddAccount(t, d, "a")
	dbtest.AddProject(t, d, "a", "p")
	clock := func() time.Time { return now }
	const free = 2 * credit.USD
	ledger := credit.New(credit.Options{Store: credit.NewStore(d), Hasher: secret.NewHasher(make([]byte, 32)), Now: clock,
		Free: free})
	prices := wire.RealtimePrices{TextIn: 4_000_001, TextCached: 400_003, TextOut: 16_000_007, AudioIn: 32_000_009,
		AudioCached: 400_011, AudioOut: 64_000_013}
	want := map[string]Sums{}
	for i := range int64(20) {
		model := []string{"talk", "swift"}[i%2]
		used := wire.RealtimeUsage{TextIn: i, TextCached: 2 * i, TextOut: 3 * i, AudioIn: 5 * i, AudioCached: 7 * i,
			AudioOut: 11 * i}
		h, err := ledger.Hold(t.Context(), credit.HoldRequest{Account: "a", Project: "p", Amount: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		charged, err := ledger.Settle(t.Context(), h.ID, credit.Amount(prices.Of(used)), credit.Call{Account: "a",
			Project: "p", Model: model, Kind: "realtime", Outcome: credit.OutcomeOK,
			TextIn: used.TextIn, TextCached: used.TextCached, TextOut: used.TextOut, AudioIn: used.AudioIn, AudioCached: used.AudioCached, AudioOut: used.AudioOut,
			Duration: time.Second})
		if err != nil || charged != credit.Amount(prices.Of(used)) {
			t.Fatalf("charged %v for %+v, %v", charged, used, err)
		}
		s := want[model]
		s.add(credit.UsageRow{Calls: 1, TextIn: used.TextIn, TextCached: used.TextCached, TextOut: used.TextOut,
			AudioIn: used.AudioIn, AudioCached: used.AudioCached, AudioOut: used.AudioOut, Duration: time.Second,
			Charged: charged})
		want[model] = s
	}
	s := &Service{Ledger: ledger, Models: gateway.New(gateway.Options{Now: clock}), Now: clock,
		KeySources: gateway.KeySources{Store: gateway.NewStore(d), Now: clock}}
	r, err := s.Report(t.Context(), "a", "p", Query{Unit: Day, Points: 7})
	if err != nil || len(r.ByModel) != len(want) || len(r.BySource) != 1 {
		t.Fatalf("got report %+v, %v", r, err)
	}
	for _, part := range r.ByModel {
		if part.Sums != want[part.Name] {
			t.Errorf("%s: got %+v, want %+v", part.Name, part.Sums, want[part.Name])
		}
	}
	spent := free - r.Credit.Posted
	if r.Totals.Charged != spent || r.BySource[0].Sums != r.Totals || r.Totals.AudioOut != 11*190 || spent == 0 {
		t.Errorf("got totals %+v and source %+v, want the %v that the ledger charged", r.Totals, r.BySource, spent)
	}
}

// A row with a name that is not valid in a response must not make the whole report unreadable.
func TestReport_NamesUnreadableModelsOther(t *testing.T) {
	var r Report
	r.Unit, r.Series = Hour, make([]Point, 1)
	for _, id := range []string{"small", `C:\models\x y`, strings.Repeat("x", 200), "desk/qwen3:4b"} {
		r.add(credit.UsageRow{Model: id, Source: credit.SourceLocal, Calls: 1})
	}
	var names []string
	for _, p := range r.ByModel {
		names = append(names, p.Name+" "+strconv.FormatInt(p.Calls, 10))
	}
	if got := strings.Join(names, ", "); got != "small 1, other 2, desk/qwen3:4b 1" || r.Totals.Calls != 4 {
		t.Errorf("got models %s for %d calls, want 4 calls with the unreadable models named other", got, r.Totals.Calls)
	}
}
