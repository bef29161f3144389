package api

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

const usagePath = appPath + backendapi.PathGatewayUsage

// twoModels is a catalogue with a default model that has no price, and a second model that can be called. %s is the
// file with the operator's key.
const twoModels = `default_model: chosen-model
providers: [{id: paid, base_url: "https://ai.example", key_file: '%s'}]
models:
  - {id: chosen-model, provider: paid, api: chat, context_tokens: 1000, output_tokens: 100}
  - {id: other-model, provider: paid, api: messages, context_tokens: 1000, output_tokens: 100,
     prices_micro_usd_per_million: {text_in: 1, text_cached: 1, text_cache_write: 1, text_out: 1}}
`

func (w *world) models() *gateway.Service {
	w.Helper()
	dir := w.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "gateway.yaml")
	for name, text := range map[string]string{key: "sk-operator", file: fmt.Sprintf(twoModels, key)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			w.Fatal(err)
		}
	}
	catalogue, err := gateway.LoadCatalogue(file)
	if err != nil {
		w.Fatal(err)
	}
	return gateway.New(gateway.Options{Catalogue: catalogue, Now: w.now})
}

func TestGatewayUsage_Queries(t *testing.T) {
	w, bearer := newAgent(t)
	for query, want := range map[string]struct {
		points   int
		interval string
		from     string
	}{
		"":                        {7, "day", "2025-12-27T00:00:00.000Z"},
		"?range=24h":              {24, "hour", "2026-01-01T04:00:00.000Z"},
		"?range=24h&interval=day": {1, "day", "2026-01-02T00:00:00.000Z"},
		"?range=7d&interval=hour": {168, "hour", "2025-12-26T04:00:00.000Z"},
		"?range=90d":              {90, "day", "2025-10-05T00:00:00.000Z"},
	} {
		var u backendapi.GatewayUsage
		w.call("GET", usagePath+query, "", bearer...).is(http.StatusOK).into(&u)
		if len(u.Series) != want.points || u.Interval != want.interval || u.Range.From != want.from ||
			u.Series[0].At != want.from ||
			u.Range.To != "2026-01-02T03:04:05.000Z" || u.Project != app || u.Refusals == nil || *u.KeySource != "credit" ||
			u.Credit.FreeMicroUSD != 2_000_000 || !strings.Contains(u.Summary, "0 calls cost $0.00") {
			t.Errorf("%s: got %+v, want the empty report of the range", query, u)
		}
	}
	for _, query := range []string{"?range=1y", "?range=", "?interval=week", "?interval=", "?range=30d&interval=hour",
		"?from=2026-01-01T00:00:00Z", "?range=7d&range=7d"} {
		p := w.call("GET", usagePath+query, "", bearer...).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
		if p.FixHint == "" {
			t.Errorf("%s: got %+v, want a hint", query, p)
		}
	}
}

// The report needs only the grant of its own field. Values hidden by other grants are null, and no text contains them.
func TestGatewayUsage_Grants(t *testing.T) {
	w, bearer := newAgent(t)
	var open backendapi.GatewayUsage
	w.call("GET", usagePath, "", bearer...).is(http.StatusOK).into(&open)
	if why := open.Models[0].Why; why == nil || !strings.Contains(*why, "chosen-model") {
		t.Errorf("got %+v, want the reason why assistant cannot be called", open.Models[0])
	}
	w.grant(func(g *grants.Grants) { g.Assistant[grants.RealtimeModel] = grants.Off })
	w.call("GET", usagePath, "", bearer...).is(http.StatusOK).into(&open)
	if open.ByModel != nil || open.Models[1].ID != "chosen-model" {
		t.Errorf("got models %+v and %+v, want no names of called models while the realtime model is hidden", open.ByModel,
			open.Models)
	}
	w.grant(func(g *grants.Grants) {
		for _, f := range grants.Settings() {
			g.Assistant[f] = grants.Off
		}
		g.Credentials = grants.Off
	})
	var u backendapi.GatewayUsage
	got := w.call("GET", usagePath, "", bearer...).is(http.StatusOK)
	got.into(&u)
	if u.ByModel != nil || u.BySource != nil || u.KeySource != nil ||
		u.Models[0].Resolves != nil || u.Models[0].Why != nil ||
		u.Models[0].API != nil || u.Models[0].Available || *u.Models[2].API != "messages" ||
		strings.Count(string(got.body), "chosen-model") != 1 { // its own entry in the list of models
		t.Errorf("got %s, want the hidden values omitted", got.body)
	}
	w.call("GET", assistPath, "", bearer...).is(http.StatusForbidden)

	w.grant(func(g *grants.Grants) { g.Assistant[grants.GatewayUsage] = grants.Off })
	var denied backendapi.PermissionDenied
	w.call("GET", usagePath, "", bearer...).is(http.StatusForbidden).into(&denied)
	if denied.Capability != "assistant_config" || denied.Field != "gatewayUsage" || denied.Needed != "read" ||
		denied.Granted != "off" ||
		!strings.Contains(denied.FixHint, "set Assistant config > gateway usage to Read at "+site) {
		t.Errorf("got %+v, want the missing grant of gatewayUsage", denied)
	}
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK)
}
