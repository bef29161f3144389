package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/problem"
)

// newLedger returns a ledger of the dashboard's database.
func (h *dashboardWorld) newLedger(change ...func(*credit.Options)) *credit.Ledger {
	o := credit.Options{Store: credit.NewStore(h.db), Hasher: secret.NewHasher(make([]byte, 32)), Free: 2 * credit.USD,
		Now: h.now}
	for _, c := range change {
		c(&o)
	}
	return credit.New(o)
}

// charge makes a call of hello cost an amount of ada's credit.
func (h *dashboardWorld) charge(amount credit.Amount) {
	h.t.Helper()
	hold := h.hold(amount)
	call := credit.Call{Model: "standard", Kind: "chat", Outcome: credit.OutcomeOK}
	if _, err := h.credit.Settle(context.Background(), hold.ID, amount, call); err != nil {
		h.t.Fatal(err)
	}
}

func (h *dashboardWorld) hold(amount credit.Amount) credit.Hold {
	h.t.Helper()
	hold, err := h.credit.Hold(context.Background(), credit.HoldRequest{Account: adaID, Project: hello, Amount: amount})
	if err != nil {
		h.t.Fatal(err)
	}
	return hold
}

// spend makes n calls, which cost $0.0125 today and $0.1268 this month, and holds $0.02 for another one. $1.8532 are
// available then.
func (h *dashboardWorld) spend(n int) {
	h.t.Helper()
	h.pass(-48 * time.Hour)
	h.account() // grants the free credit
	h.pass(24 * time.Hour)
	rest := credit.Amount(114_300)
	for range n - 2 {
		h.charge(900)
		rest -= 900
	}
	h.charge(rest)
	h.pass(24 * time.Hour)
	h.charge(12_500)
	h.hold(20_000)
}

// account returns ada's credit.
func (h *dashboardWorld) account() credit.Account {
	h.t.Helper()
	a, err := h.credit.Account(context.Background(), adaID)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// caps returns the caps of a project, or of ada's account if project is empty.
func (h *dashboardWorld) caps(project string) credit.Caps {
	h.t.Helper()
	p, err := h.credit.Project(context.Background(), adaID, project)
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Caps
}

// setUsage replaces the sums of ada's calls.
func (h *dashboardWorld) setUsage(rows ...credit.UsageRow) {
	h.t.Helper()
	h.exec("DELETE FROM gateway_usage")
	for _, u := range rows {
		h.exec(`INSERT INTO gateway_usage (account_id, app_id, hour, model, kind, source, `+credit.UsageSums+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
			adaID, u.Project, u.Hour.UnixMilli(), u.Model, u.Kind, u.Source, u.Calls, u.Failed, u.Cancelled, u.Refused,
			u.Estimated, u.TextIn, u.TextCached, u.TextOut, u.Duration.Milliseconds(), int64(u.Charged), u.AudioIn, u.AudioCached, u.AudioOut)
	}
}

// refuse adds n refused calls of hello.
func (h *dashboardWorld) refuse(n int, code string, at time.Time) {
	h.t.Helper()
	for i := range n {
		h.exec(`INSERT INTO gateway_calls (id, account_id, app_id, at, model, kind, source, outcome, text_in, text_cached,
				text_out, estimated, duration_ms, micro_usd)
			VALUES ($1, $2, $3, $4, 'standard', 'chat', 'credit', $5, 0, 0, 0, 0, 0, 0)`,
			fmt.Sprint(code, i), adaID, hello, at.UnixMilli(), code)
	}
}

// Models of every kind, for offer. %s is the file with the operator's key.
const (
	everyProvider = `default_model: %[2]s
providers:
- {id: openai, name: OpenAI, base_url: "https://openai.example", key_file: '%[1]s', own_keys: openai}
- {id: anthropic, name: Anthropic, base_url: "https://anthropic.example", key_file: '%[1]s'}
- {id: ollama, name: Ollama on this machine, base_url: "http://localhost:1", local: true}
models:
`
	standardModel = `- {id: standard, name: Standard, provider: openai, api: chat, context_tokens: 1000, output_tokens: 100,
  prices_micro_usd_per_million: {text_in: 250000, text_cached: 25000, text_out: 2000000}}
`
	carefulModel = `- {id: careful, name: Careful, provider: anthropic, api: messages, context_tokens: 1000, output_tokens: 100,
  prices_micro_usd_per_million: {text_in: 1000000, text_cached: 100000, text_cache_write: 1, text_out: 5000000}}
`
	localModel = `- {id: local-small, name: Local, provider: ollama, api: chat, context_tokens: 1000, output_tokens: 100}
`
	voiceModel = `realtime_models:
- {id: talk, name: Talk, provider: openai, context_tokens: 1000, output_tokens: 100, voices: {ember: marin},
  prices_micro_usd_per_million: {text_in: 4000000, text_cached: 400000, text_out: 16000000, audio_in: 32000000,
    audio_cached: 400000, audio_out: 64000000}}
`
	unpricedModel = `- {id: new, name: New, provider: openai, api: responses, context_tokens: 1000, output_tokens: 100,
  prices_micro_usd_per_million: {text_in: 1, text_out: 1}}
`
)

// offer makes the operator offer models, the first of which is the default.
func (h *dashboardWorld) offer(standard, models string) {
	h.t.Helper()
	dir := h.t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "gateway.yaml")
	for name, text := range map[string]string{key: "sk-operator", file: fmt.Sprintf(everyProvider, key, standard) + models} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	var err error
	if h.gateway.Catalogue, err = gateway.LoadCatalogue(file); err != nil {
		h.t.Fatal(err)
	}
}

// spendOnModels adds two weeks of calls, with models of every kind.
func (h *dashboardWorld) spendOnModels() {
	h.offer("standard", standardModel+carefulModel+localModel+unpricedModel)
	var rows []credit.UsageRow
	for day := range 14 {
		at := then.Add(-time.Duration(day) * 24 * time.Hour).Truncate(time.Hour)
		for i, m := range []struct{ model, kind, source string }{{"standard", "chat", "credit"},
			{"careful", "messages", "credit"}, {"local-small", "chat", "local"}} {
			u := credit.UsageRow{Project: hello, Model: m.model, Kind: m.kind, Source: m.source, Hour: at,
				Calls: int64(20 - day), Failed: int64(day % 3), TextIn: int64(4000 * (day + 1)), TextCached: 1000,
				TextOut: int64(900 * (14 - day))}
			if m.source == "credit" {
				u.Charged = credit.Amount(2_600*(14-day) + 900*i*day)
			}
			rows = append(rows, u)
		}
	}
	h.setUsage(rows...)
	h.exec("DELETE FROM gateway_calls")
	h.refuse(12, problem.CodeCapReached, then.Add(-time.Hour))
	h.refuse(3, problem.CodeUnsupportedParameter, then.Add(-30*time.Hour))
	h.refuse(1, "something_new", then.Add(-40*time.Hour))
}

// allowServers lets users add local servers.
func (h *dashboardWorld) allowServers() {
	h.servers = gateway.NewLocalServers(gateway.NewStore(h.db), h.credentials, h.now)
	h.gateway.Servers = h.servers
}

// addServers stores local servers of hello without calling them.
func (h *dashboardWorld) addServers(servers ...gateway.LocalServer) {
	h.t.Helper()
	for _, s := range servers {
		e := audit.New(then, adaID, audit.Person(), "gateway.server_added", hello, s.ID)
		if err := gateway.NewStore(h.db).PutLocalServer(context.Background(), s, gateway.MaxLocalServers, e); err != nil {
			h.t.Fatal(err)
		}
	}
}

// newModelServer returns a local server with two models, and a function that adds a model to it.
func newModelServer(t *testing.T) (site *httptest.Server, add func(name string)) {
	t.Helper()
	models := `{"id":"a"},{"id":"b"}`
	site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, `{"data":[%s]}`, models)
	}))
	t.Cleanup(site.Close)
	return site, func(name string) { models += `,{"id":"` + name + `"}` }
}
