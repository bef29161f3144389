package api

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/proto/backendapi"
)

const usagePath = appPath + backendapi.PathGatewayUsage

// twoModels lists assistant, whose model has no price, and a second model that can be called.
type twoModels struct{}

func (twoModels) Available(context.Context, gateway.Caller) ([]gateway.Availability, error) {
	p := &gateway.Provider{}
	secret := &gateway.Model{ID: "chosen-model", API: "chat", Provider: p}
	return []gateway.Availability{{ID: gateway.Assistant, Model: secret, Why: "chosen-model has no price"},
		{ID: "other-model", Model: &gateway.Model{ID: "other-model", API: "messages", Provider: p}}}, nil
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
		p := w.call("GET", usagePath+query, "", bearer...).problem(http.StatusBadRequest, backendapi.CodeInvalidRequest)
		if p.FixHint == "" {
			t.Errorf("%s: got %+v, want a hint", query, p)
		}
	}
}

// The report needs only the grant of its own field. Values hidden by other grants are null, and no text contains them.
func TestGatewayUsage_Grants(t *testing.T) {
	w, bearer := newAgent(t)
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
		u.Models[0].API != nil || u.Models[0].Available || *u.Models[1].API != "messages" ||
		strings.Contains(string(got.body), "chosen-model") {
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
