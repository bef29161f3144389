package app

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/llmtest"
)

// failure is one way in which a call fails, and its appearance to the app, the agent and the owner.
type failure struct {
	name    string
	prepare func(f *failures)
	path    string // default: the chat interface
	body    string
	header  []string

	status           int
	code, retryAfter string
	members          string // members of the error object, besides the ones that all errors have
	counts           string // the usage counters that it increases: refused, failed, failed and estimated, or none
	hint             string // part of the hint that agents get with a refusal
	page             string // part of the text on the owner's page
}

// failures is a gateway whose owner is signed in to the pages.
type failures struct {
	*gatewayWorld
	owner *pagesOf
	undo  []func()
}

const (
	gatewayPage = "/account/projects/com.example.hello"
	// affordable is free credit that covers any call except a long question with a long answer, in micro-USD.
	affordable = 35_000
)

var longQuestion = strings.Replace(chatBody("good", ""), "Hello", strings.Repeat("word ", 2100), 1)

// withMore adds members to a JSON object.
func withMore(body, more string) string { return strings.TrimSuffix(body, "}") + more + "}" }

func (f *failures) set(path string, form url.Values) {
	f.t.Helper()
	if status := f.owner.post(gatewayPage+path, form); status != http.StatusSeeOther {
		f.t.Fatalf("POST %s: got status %d, want 303", path, status)
	}
}

// dayCap lowers the project's day cap until the failure has been checked.
func (f *failures) dayCap() {
	f.exec("UPDATE gateway_settings SET day_cap = 1")
	f.undo = append(f.undo, func() { f.exec("DELETE FROM gateway_settings") })
}

// reserve starts a call that holds most of the remaining credit.
func (f *failures) reserve() {
	res := f.begin(f.t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true,"max_tokens":1000`))
	f.undo = append(f.undo, func() {
		f.provider.Continue()
		_ = res.Body.Close()
		f.untilUsage("the call ends", func(u backendapi.GatewayUsage) bool { return u.Credit.ReservedMicroUSD == 0 })
	})
}

// hide calls a model whose usage reports are impossible. After the third, the gateway hides the model.
func (f *failures) hide() {
	for range 3 {
		f.ask("POST", "/v1/chat/completions", chatBody(llmtest.UsageHuge, ""))
	}
}

// refusedKey makes the project pay with a key that its provider refuses.
func (f *failures) refusedKey() {
	f.payByOwnKey("sk-refused-canary-000000")
	f.undo = append(f.undo, func() { f.set("/gateway/key-source", url.Values{"source": {"credit"}}) })
}

// untilUsage waits until holds returns true for the usage report. A call is recorded only after its answer.
func (w *gatewayWorld) untilUsage(what string, holds func(u backendapi.GatewayUsage) bool) (u backendapi.GatewayUsage) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for u = w.usage(""); !holds(u); u = w.usage("") {
		select {
		case <-tick.C:
		case <-w.t.Context().Done():
			w.t.Fatalf("usage report never showed: %s", what)
		}
	}
	return u
}

const (
	refused   = "refused"
	failed    = "failed"
	estimated = "failed and estimated"
)

// failuresOfCalls are provoked one after the other. The most expensive ones come last.
var failuresOfCalls = []failure{
	{name: "no credit", body: chatBody("expensive", ""), status: 402, code: "no_credit", members: "needed available",
		counts: refused, hint: "Add credit", page: "The credit did not cover the call."},
	{name: "credit held by other calls", prepare: (*failures).reserve, body: withMore(longQuestion, `,"max_tokens":100`),
		status: 429, code: "credit_reserved", retryAfter: "2", members: "needed available", counts: refused,
		hint: "repeats the call after", page: "Calls in flight had reserved the credit, or the rest of a cap."},
	{name: "cap", prepare: (*failures).dayCap, body: chatBody("good", ""), status: 402, code: "cap_reached",
		members: "cap of limit resetsAt", counts: refused, hint: "Raise the cap", page: "A spending cap was reached."},
	{name: "unknown key", body: chatBody("good", ""), header: []string{"Authorization", "Bearer spk_unknown"}, status: 401,
		code: "invalid_key"},
	{name: "unknown model", body: chatBody("nothing", ""), status: 404, code: "model_not_found", counts: refused,
		hint: "ask for assistant", page: "The app asked for a model that is not available."},
	{name: "model without a price", body: chatBody("unpriced", ""), status: 404, code: "model_not_found", counts: refused,
		hint: "ask for assistant", page: "No price for text_cached"},
	{name: "wrong interface", body: chatBody("resp-good", ""), status: 400, code: "wrong_api", counts: refused,
		hint: "names the interface of each", page: "through an interface that the model does not have"},
	{name: "more than the credit", body: withMore(longQuestion, `,"max_tokens":1000`), status: 402,
		code: "request_too_large", members: "needed available affordableOutputTokens", counts: refused,
		hint: "lower max_tokens", page: "The credit covered only a shorter answer"},
	{name: "unsupported parameter", body: chatBody("good", `,"n":3`), status: 400, code: "unsupported_parameter",
		counts: refused, hint: "Leave the field out", page: "A request had a field that the gateway does not pass on."},
	{name: "provider is busy", body: chatBody(llmtest.Status429Retry, ""), status: 503, code: "provider_busy",
		retryAfter: "7", counts: failed},
	{name: "provider fails", body: chatBody(llmtest.Status500, ""), status: 503, code: "provider_busy", retryAfter: "5",
		counts: failed},
	{name: "provider is overloaded", body: chatBody(llmtest.Status529, ""), status: 503, code: "provider_busy",
		retryAfter: "5", counts: failed},
	{name: "provider refuses the operator's key", body: chatBody(llmtest.Status401, ""), status: 503,
		code: "provider_unavailable", retryAfter: "60", counts: failed},
	{name: "operator's budget is spent", body: chatBody(llmtest.Status429Spent, ""), status: 503,
		code: "provider_unavailable", retryAfter: "60", counts: failed},
	{name: "own key refused", prepare: (*failures).refusedKey, body: chatBody("good", ""), status: 403,
		code: "own_key_refused", counts: refused, hint: "call setCredential",
		page: "The provider refused the project&#39;s own key"},
	{name: "local server does not run", body: chatBody("absent", ""), status: 503, code: "provider_unreachable",
		retryAfter: "5", counts: refused, hint: "Start it", page: "A local model server did not answer."},
	{name: "provider cuts the answer", body: chatBody(llmtest.CutBeforeUsage, `,"stream":true`), status: 200,
		code: "provider_error", counts: estimated},
	{name: "hidden model", prepare: (*failures).hide, body: chatBody(llmtest.UsageHuge, ""), status: 404,
		code: "model_not_found", counts: refused, hint: "ask for assistant", page: "last usage reports were impossible"},
}

// Each way in which a call fails is provoked once. The test checks the app's response, the report of getGatewayUsage
// and the owner's page. TestGateway_ServerIsKilled and TestGateway_DatabaseIsAway, in package server, cover a server
// that dies and a database that is unavailable.
func TestGateway_EachFailureIsExplained(t *testing.T) {
	t.Parallel()
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		start := func(limits gateway.Limits, changes ...func(*config.Config)) *failures {
			address := database(t)
			w := startLimitedGateway(t, limits, append(changes, func(c *config.Config) {
				c.Database, c.FreeCredit = address, fmt.Sprintf("%.3f", affordable/1e6)
			})...)
			return &failures{gatewayWorld: w, owner: w.signIn()}
		}
		f := start(gateway.Limits{Idle: 2 * time.Second}, withOwnKeys(t))
		for _, row := range failuresOfCalls {
			t.Run(row.name, func(t *testing.T) { f.provoke(t, row) })
		}
		t.Run("the app leaves", f.leave)
		for _, alarm := range []string{"provider refused the operator's request", "model hidden"} {
			if !strings.Contains(f.log.String(), alarm) {
				t.Errorf("the operator's log lacks %q", alarm)
			}
		}
		t.Run("provider hangs", func(t *testing.T) {
			start(gateway.Limits{Total: 2 * time.Second}).provoke(t, failure{body: chatBody(llmtest.Hangs, ""),
				status: 504, code: "provider_timeout", retryAfter: "5", counts: estimated})
		})
		t.Run("no models", func(t *testing.T) {
			start(gateway.Limits{}, func(c *config.Config) { c.GatewayCatalogue = "" }).provoke(t, failure{
				body: chatBody("good", ""), status: 503, code: "not_configured", counts: refused, hint: "set gateway_catalogue",
				page: "The operator of this backend has set up no models."})
		})
	})
}

// provoke makes a call that fails and checks its appearance to the app, the agent and the owner.
func (f *failures) provoke(t *testing.T, row failure) {
	if row.prepare != nil {
		row.prepare(f)
	}
	defer func() {
		for _, undo := range f.undo {
			undo()
		}
		f.undo = nil
	}()
	before, path := f.usage(""), row.path
	if path == "" {
		path = "/v1/chat/completions"
	}
	res, text := f.ask("POST", path, row.body, row.header...)
	if res.StatusCode != row.status || res.Header.Get("Retry-After") != row.retryAfter ||
		!strings.Contains(text, `"code":"`+row.code+`"`) {
		t.Errorf("got status %d, Retry-After %q, body %s; want the failure in the table", res.StatusCode,
			res.Header.Get("Retry-After"), text)
	}
	if row.status == http.StatusOK && !strings.HasSuffix(text, "BROKEN") {
		t.Errorf("got answer %s, want the error at its end", text)
	} else if row.status != http.StatusOK {
		e := errorOf(t, text)
		for _, name := range strings.Fields(row.members) {
			if e[name] == nil {
				t.Errorf("no %s in %s", name, text)
			}
		}
	}
	f.compare(t, row, before)
}

// compare checks how the failure changed the usage report and the owner's page.
func (f *failures) compare(t *testing.T, row failure, before backendapi.GatewayUsage) {
	t.Helper()
	after := f.usage("")
	want := before.Totals
	want.DurationMs = after.Totals.DurationMs // differs from run to run
	switch row.counts {
	case refused:
		want.Refused++
	case estimated:
		want.Estimated++
		want.MicroUSD, want.TextIn, want.TextOut = after.Totals.MicroUSD, after.Totals.TextIn, after.Totals.TextOut
		fallthrough
	case failed:
		want.Calls++
		want.Failed++
	}
	charged := row.status == http.StatusOK || row.code != problem.CodeProviderTimeout // otherwise the operator pays
	if after.Totals != want || row.counts == estimated && charged != (want.MicroUSD > before.Totals.MicroUSD) {
		t.Errorf("totals changed from %+v to %+v, want the failure counted", before.Totals, after.Totals)
	}
	count := func(u backendapi.GatewayUsage) (n int64, hint string) {
		for _, r := range u.Refusals {
			if r.Code == row.code {
				return r.Count, r.FixHint
			}
		}
		return 0, ""
	}
	was, _ := count(before)
	is, hint := count(after)
	if row.counts == refused && (is != was+1 || !strings.Contains(hint, row.hint)) || row.counts != refused && is != was {
		t.Errorf("%d refusals with code %s before, %d after, hint %s; want one more if refused", was, row.code, is, hint)
	}
	page := f.owner.get(gatewayPage + "/gateway")
	for _, part := range []string{row.page, fmt.Sprintf("<dt>Failed</dt><dd>%d</dd>", want.Failed)} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if row.code == "own_key_refused" {
		var list backendapi.CredentialList
		f.call("GET", helloProject+backendapi.PathCredentials, "", &list)
		if c := list.Credentials[0]; c.TestResult == nil || *c.TestResult != "refused" {
			t.Errorf("getCredentialStatus: got %+v, want the test result refused", c)
		}
	}
}

// leave makes an app disconnect in the middle of an answer. The account pays for the part that the app received.
func (f *failures) leave(t *testing.T) {
	before := f.usage("").Totals
	ctx, cancel := context.WithCancel(t.Context())
	res := f.begin(ctx, chatBody(llmtest.HangsInside, `,"stream":true`))
	cancel()
	_ = res.Body.Close()
	u := f.untilUsage("the call is counted", func(u backendapi.GatewayUsage) bool {
		return u.Totals.Calls > before.Calls && u.Credit.ReservedMicroUSD == 0
	})
	if after := u.Totals; after.Cancelled != before.Cancelled+1 || after.Estimated != before.Estimated+1 ||
		after.Failed != before.Failed || after.MicroUSD == before.MicroUSD {
		t.Errorf("totals changed from %+v to %+v, want one more cancelled, estimated and charged call", before, after)
	}
}
