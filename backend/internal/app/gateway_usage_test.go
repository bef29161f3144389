package app

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/llmtest"
)

const helloProject = backendapi.PathProjects + "/com.example.hello"

// usage reads the report on the project's calls as an agent does.
func (w *gatewayWorld) usage(query string) (u backendapi.GatewayUsage) {
	w.t.Helper()
	if status := w.call("GET", helloProject+backendapi.PathGatewayUsage+query, "", &u); status != http.StatusOK {
		w.t.Fatalf("read usage: got status %d, want 200", status)
	}
	return u
}

// The report, the ledger and the provider's own records agree to the micro-dollar.
func TestGateway_UsageAgreesWithLedgerAndBook(t *testing.T) { eachGateway(t, testUsageAgrees) }

func testUsageAgrees(t *testing.T, w *gatewayWorld) {
	const stream = `,"stream":true`
	for range 2 {
		for _, c := range [][2]string{
			{"/v1/chat/completions", chatBody("assistant", "")}, {"/v1/chat/completions", chatBody("good", stream)},
			{"/v1/responses", `{"model":"resp-good","input":"Hello","max_output_tokens":3}`},
			{"/v1/messages", chatBody("msg-good", `,"max_tokens":100`+stream)},
			{"/v1/chat/completions", chatBody(llmtest.CutAfterUsage, stream)},
			{"/v1/chat/completions", chatBody(llmtest.UsageNone, stream)},
			{"/v1/chat/completions", chatBody(llmtest.Status500, "")}, {"/v1/chat/completions", chatBody("nothing", "")},
			{"/v1/chat/completions", chatBody("good", `,"n":3`)}, {"/v1/chat/completions", chatBody("absent", "")},
		} {
			w.ask("POST", c[0], c[1])
		}
	}
	book := map[string]int64{}
	for _, c := range w.provider.Book() {
		id, cached := c.Model, llmtest.Cached(c.In)
		switch c.Path {
		case "/v1/responses":
			id = "resp-" + id
		case "/v1/messages":
			id, cached = "msg-"+id, 0
		}
		book[id] += 2*(c.In-cached) + cached + 10*c.Out
	}
	u := w.usage("?range=24h")
	var sum, ofSources, ofSeries int64
	for _, m := range u.ByModel {
		sum += m.MicroUSD
		if m.Model != llmtest.UsageNone && m.MicroUSD != book[m.Model] { // the provider reports no usage for that model
			t.Errorf("%s: the report says %d, want %d as in the provider's records", m.Model, m.MicroUSD, book[m.Model])
		}
	}
	for _, s := range u.BySource {
		ofSources += s.MicroUSD
	}
	for _, p := range u.Series {
		ofSeries += p.MicroUSD
	}
	var used int64
	if err := w.db.QueryRow(`SELECT SUM(amount) FROM credit_transfers WHERE credit = 'used'`).Scan(&used); err != nil {
		t.Fatal(err)
	}
	all := u.Totals
	if sum == 0 || all.MicroUSD != sum || ofSources != sum || ofSeries != sum || used != sum ||
		u.Credit.BalanceMicroUSD != 2_000_000-sum || u.Credit.ReservedMicroUSD != 0 || u.Credit.FreeMicroUSD != 2_000_000 {
		t.Errorf("got %d by model, %d by source, %d in the series, %d in the ledger, want equal sums: %+v", sum, ofSources,
			ofSeries, used, u)
	}
	if all.Calls != 14 || all.Failed != 4 || all.Estimated != 2 || all.Refused != 6 || len(u.Series) != 24 ||
		u.Interval != "hour" || len(u.ByModel) != 7 {
		t.Errorf("got totals %+v, %d models, %d points; want 14 calls, 7 models, 24 points", all, len(u.ByModel),
			len(u.Series))
	}
	for _, r := range u.Refusals {
		known := []string{"model_not_found", "unsupported_parameter", "provider_unreachable"}
		if r.Count != 2 || r.FixHint == "" || !slices.Contains(known, r.Code) {
			t.Errorf("got refusal %+v, want two of a known code with a hint", r)
		}
	}
	for _, want := range []string{"14 calls cost $0.", "in the last 24 hours", "$1.9", "of credit left", "4 calls failed",
		"6 calls were refused, most often "} {
		if !strings.Contains(u.Summary, want) {
			t.Errorf("summary %q lacks %q", u.Summary, want)
		}
	}
}

func TestGateway_UsageShowsCapsAndReservedCredit(t *testing.T) { eachGateway(t, testUsageCaps) }

func testUsageCaps(t *testing.T, w *gatewayWorld) {
	w.ask("POST", "/v1/chat/completions", chatBody("good", ""))
	spent := w.last().MicroUSD
	w.exec("UPDATE gateway_settings SET day_cap = 500000")
	w.exec("UPDATE credit_balances SET month_cap = 1000000")
	res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true,"max_tokens":1000`))
	defer res.Body.Close()
	u := w.usage("")
	held := u.Credit.ReservedMicroUSD
	if _, inDatabase := w.balance(); held < 10_000 || held != inDatabase ||
		u.Caps.Month != nil || u.Caps.AccountDay != nil {
		t.Errorf("report shows %d reserved, database holds %d, want the same; caps %+v", held, inDatabase, u.Caps)
	}
	day, month := u.Caps.Day, u.Caps.AccountMonth
	if day.LimitMicroUSD != 500_000 || day.SpentMicroUSD != spent || day.ReservedMicroUSD != held ||
		month.LimitMicroUSD != 1_000_000 || month.SpentMicroUSD != spent ||
		!strings.Contains(month.ResetsAt, "-01T00:00:00") {
		t.Errorf("got day %+v, month %+v, want the caps with what is spent and reserved", day, month)
	}
	for _, want := range []string{"of the project's day cap of $0.50 are spent", "the account's month cap of $1.00",
		"of it reserved by calls in flight"} {
		if !strings.Contains(u.Summary, want) {
			t.Errorf("summary %q lacks %q", u.Summary, want)
		}
	}
	w.provider.Continue()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
}

// A change of the text model in a project's settings takes effect with the next call. Apps can ask which model
// "assistant" is.
func TestGateway_AssistantIsTheProjectsTextModel(t *testing.T) { eachGateway(t, testTextModel) }

func testTextModel(t *testing.T, w *gatewayWorld) {
	const chat, path = "/v1/chat/completions", helloProject + backendapi.PathAssistant
	var config backendapi.AssistantConfig
	if w.call("GET", path, "", &config); *config.TextModel != "" ||
		len(config.Choices.TextModels) != len(gatewayModels)+3 ||
		*config.Cost.TextModel != (backendapi.TokenPrice{In: 2_000_000, Cached: 1_000_000, Out: 10_000_000}) {
		t.Errorf("got text model %v, %d choices, cost %+v; want the default, all models and its price", *config.TextModel,
			len(config.Choices.TextModels), config.Cost)
	}
	for _, c := range []struct {
		change string
		status int
	}{
		{`{"version":0,"textModel":"nothing"}`, http.StatusBadRequest},
		{`{"version":0,"textModel":"unpriced"}`, http.StatusBadRequest},
		{`{"version":0,"textModel":"msg-good"}`, http.StatusBadRequest}, // lacks the chat interface, which assistant needs
		{`{"version":0,"textModel":"expensive"}`, http.StatusOK},
		{`{"version":1,"textModel":"absent"}`, http.StatusOK},
		{`{"version":2,"textModel":"` + llmtest.CRLF + `"}`, http.StatusOK},
	} {
		if status := w.call("PATCH", path, c.change, &config); status != c.status {
			t.Errorf("change %s: got status %d, want the one in the table", c.change, status)
		}
	}
	if *config.TextModel != llmtest.CRLF || config.Cost.BeforeTextModel.Out != 0 ||
		config.Cost.TextModel.Out != 10_000_000 {
		t.Errorf("got %+v, want the new model and its price", config)
	}
	resolved := func() (string, backendapi.GatewayModel) {
		_, list := w.ask("GET", "/v1/models/assistant", "")
		return list, w.usage("").Models[0]
	}
	w.ask("POST", chat, chatBody("assistant", ""))
	one, m := resolved()
	if book := w.provider.Book(); book[len(book)-1].Model != llmtest.CRLF || w.last().Model != llmtest.CRLF ||
		!strings.Contains(one, `"id":"assistant"`) || !strings.Contains(one, `"resolves":"crlf"`) ||
		m.ID != "assistant" || !m.Available || *m.Resolves != llmtest.CRLF {
		t.Errorf("got model %s, %+v, want assistant to resolve to crlf", one, m)
	}
	// Every report contains the reason why a model that the operator removed or left without a price cannot be called.
	for id, why := range map[string]string{"unpriced": "no price for text_cached", "retired": "no longer offered"} {
		w.exec("UPDATE assistant_configs SET text_model = '" + id + "'")
		res, text := w.ask("POST", chat, chatBody("assistant", ""))
		one, m := resolved()
		if res.StatusCode != http.StatusNotFound || !strings.Contains(text, why) || !strings.Contains(one, why) ||
			m.Available || m.Resolves != nil || !strings.Contains(*m.Why, why) {
			t.Errorf("%s: got %d %s, %s, %+v, want the reason in each", id, res.StatusCode, text, one, m)
		}
	}
	if _, text := w.ask("GET", "/v1/models/unpriced", ""); !strings.Contains(text, "no price for text_cached") {
		t.Error(text)
	}
	if status := w.call("PATCH", path, `{"version":3,"textModel":""}`, &config); status != http.StatusOK {
		t.Errorf("reset to the default: got status %d, want 200", status)
	}
	if one, m := resolved(); !strings.Contains(one, `"resolves":"good"`) || *m.Resolves != "good" {
		t.Errorf("got model %s, %+v, want assistant to resolve to good", one, m)
	}
}
