//go:build unix

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/test/llmtest"
)

const modelText = "Grüße to the world of small glasses 你好!"

// Outcomes of a call: a complete answer charged at the provider's bill, an answer charged by estimate, a stream that
// ends early with an error in the client, or the code of a refusal, which costs nothing.
const (
	answered  = "answered"
	estimated = "estimated"
	brokenOff = "broken off"
	billedToo = "broken off, but billed"
)

// misbehaviours lists, for each misbehaving model, the outcome of a plain call and of a streamed call.
var misbehaviours = []struct{ model, whole, stream string }{
	{llmtest.Good, answered, answered},
	{llmtest.SlowFirstByte, answered, answered},
	{llmtest.WaitsInside, answered, answered},
	{llmtest.OneByte, answered, answered},
	{llmtest.LongLine, answered, brokenOff},
	{llmtest.CRLF, answered, answered},
	{llmtest.UsageNull, answered, answered},
	{llmtest.UsageNoChoices, answered, answered},
	{llmtest.UsageWithDelta, answered, answered},
	{llmtest.UsageTwice, answered, answered},
	{llmtest.UsageNone, estimated, estimated},
	{llmtest.UsageIsNull, estimated, estimated},
	{llmtest.UsageStrings, estimated, estimated},
	{llmtest.UsageNegative, estimated, estimated},
	{llmtest.UsageHuge, estimated, estimated},
	{llmtest.CachedAbove, estimated, estimated},
	{llmtest.CutBeforeUsage, estimated, brokenOff},
	{llmtest.CutAfterUsage, answered, billedToo},
	{llmtest.EndsEarly, answered, brokenOff},
	{llmtest.HangsAtEnd, answered, answered},
	{llmtest.ErrorInside, answered, brokenOff},
	{llmtest.ErrorFrame, "provider_busy", "provider_busy"},
	{llmtest.Status401, "provider_unavailable", "provider_unavailable"},
	{llmtest.Status404, "provider_unavailable", "provider_unavailable"},
	{llmtest.Status400EchoKey, "provider_refused", "provider_refused"},
	{llmtest.Status429, "provider_busy", "provider_busy"},
	{llmtest.Status429Retry, "provider_busy", "provider_busy"},
	{llmtest.Status429Spent, "provider_unavailable", "provider_unavailable"},
	{llmtest.Status500, "provider_busy", "provider_busy"},
	{llmtest.Status500Retry, "provider_busy", "provider_busy"},
	{llmtest.Status529, "provider_busy", "provider_busy"},
	{llmtest.Status529Retry, "provider_busy", "provider_busy"},
	{llmtest.HTML502, "provider_busy", "provider_busy"},
	{llmtest.HTML200, "provider_error", "provider_busy"},
	{llmtest.Redirects, "provider_unavailable", "provider_unavailable"},
	{llmtest.WrongLength, "provider_busy", answered},
	{llmtest.Gzip, "provider_busy", answered},
	{llmtest.EchoesKey, answered, answered},
	{llmtest.AboveMax, answered, answered},
	{llmtest.DropsAfterRead, "provider_unavailable", "provider_unavailable"},
}

// refusalNames are the error types that the two clients document for the statuses of the gateway's refusals.
var refusalNames = map[string]struct {
	openai, anthropic string
	status            int
}{
	"provider_busy":        {"InternalServerError", "ServiceUnavailableError", 503},
	"provider_unavailable": {"InternalServerError", "ServiceUnavailableError", 503},
	"provider_error":       {"InternalServerError", "InternalServerError", 502},
	"provider_refused":     {"BadRequestError", "BadRequestError", 400},
}

// Regardless of how the provider misbehaves, the official clients, with only base URL and key changed, get an answer
// or one of their documented errors, and the ledger equals the provider's bill.
func TestModelClients_OutliveEveryProvider(t *testing.T) {
	t.Parallel()
	var models []string
	for _, m := range misbehaviours {
		models = append(models, m.model)
	}
	g := startGateway(t, "", models...)
	for _, m := range misbehaviours {
		for how, want := range map[string]string{"": m.whole, "stream": m.stream} {
			used, bill, calls := g.settled().Used, g.bill(), len(g.provider.Book())
			for _, api := range []string{"chat", "responses", "messages"} {
				g.provider.Continue() // releases the waiting models
				g.checkReply(api, m.model, how, want)
			}
			used, bill = g.settled().Used-used, g.bill()-bill
			switch exact := want == answered || want == billedToo; {
			case exact && used != bill, want == estimated && (used <= 0 || bill <= 0), used < 0,
				refusalNames[want].status > 0 && used != 0:
				t.Errorf("%s %s: booked %d micro-USD, the provider bills %d: %s", m.model, how, used, bill, want)
			}
			if n := len(g.provider.Book()) - calls; n != 3 {
				t.Errorf("%s %s: the provider received %d requests for 3 calls, want 3", m.model, how, n)
			}
		}
	}
	if l := g.ledger(); !l.OK || l.Operator == 0 || l.Balances != 2_000_000-l.Used+l.Operator {
		t.Errorf("got ledger %+v, want the operator to pay only what %s cost above its hold", l, llmtest.AboveMax)
	}
}

// checkReply makes one call and checks the result that the client returns.
func (g *gatewayWorld) checkReply(api, model, how, want string) {
	g.t.Helper()
	r := g.app.ask(api, model, how, nil)
	if api == "responses" && want == billedToo {
		want = answered // its last event contains the usage
	}
	refusal, refused := refusalNames[want]
	var text string
	if r.Error == nil {
		text = r.Text + answerText(api, r.Answer)
	}
	switch {
	case refused:
		name := refusal.openai
		if api == "messages" {
			name = refusal.anthropic
		}
		if e := r.Error; e == nil || e.Name != name || e.Status != refusal.status || e.Code != want {
			g.t.Errorf("%s %s %s: %+v, want %s with %s", model, api, how, r.Error, name, want)
		}
	case want == brokenOff || want == billedToo:
		if e := r.Error; e == nil || e.Name != "APIError" || e.Status != 0 ||
			!strings.Contains(e.Message, "the answer broke off") {
			g.t.Errorf("%s %s %s: got error %+v, want a stream that ends early", model, api, how, r.Error)
		}
	case r.Error != nil:
		g.t.Errorf("%s %s %s: got error %+v, want an answer", model, api, how, r.Error)
	case model == llmtest.EchoesKey && text != "Your key is [removed].", model == llmtest.AboveMax && len(text) < 1000,
		model != llmtest.EchoesKey && model != llmtest.AboveMax && text != modelText:
		g.t.Errorf("%s %s %s: unexpected text %.200q", model, api, how, text)
	}
	if r.Error != nil && strings.Contains(r.Error.Message, llmtest.Key) || strings.Contains(text, llmtest.Key) {
		g.t.Errorf("%s %s %s: the app received the provider's key", model, api, how)
	}
}

// The clients' own stream readers assemble the answers, and the model receives the result of its tool call.
func TestModelClients_CallTools(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "", llmtest.Good)
	for _, how := range []string{"", "helper"} {
		for api, tool := range modelTools {
			before := g.settled().Used
			first := g.app.ask(api, llmtest.Good, how, map[string]any{"tools": []any{tool}})
			if first.Error != nil {
				t.Fatalf("%s %s: first call: got error %+v, want an answer", api, how, first.Error)
			}
			body := askBody(api, llmtest.Good, map[string]any{"tools": []any{tool}})
			answerTool(t, api, body, first.Answer)
			second := g.app.do(modelRequest{API: api, Body: body, How: how})
			if second.Error != nil || answerText(api, second.Answer) != modelText {
				t.Errorf("%s %s: call with the tool's result: got error %+v, answer %v, want the final text", api, how,
					second.Error, second.Answer)
			}
			if used := g.settled().Used - before; used <= 0 {
				t.Errorf("%s %s: booked %d micro-USD, want more than 0", api, how, used)
			}
		}
	}
	if used, bill := g.settled().Used, g.bill(); used != bill {
		t.Errorf("booked %d micro-USD, want the provider's bill of %d", used, bill)
	}
	withUsage := map[string]any{"stream_options": map[string]any{"include_usage": true}}
	plain := g.app.ask("chat", llmtest.Good, "stream", withUsage)
	if usage, _ := plain.Last["usage"].(map[string]any); plain.Error != nil || usage["completion_tokens"] != 9.0 {
		t.Errorf("a stream with usage: error %+v, last event %v, want 9 completion tokens", plain.Error, plain.Last)
	}
	models := g.app.do(modelRequest{API: "models"})
	for client, list := range models.Answer {
		var ids []string
		for _, m := range list.([]any) {
			ids = append(ids, m.(map[string]any)["id"].(string))
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != "assistant good msg-good resp-good" {
			t.Errorf("the client of %s lists %s, want assistant and three models", client, got)
		}
	}
	if models.Error != nil || len(models.Answer) != 2 {
		t.Errorf("list models: got %+v, want 2", models)
	}
}

// An app that disconnects is charged what the provider reports. A client retries temporary failures, but no others.
func TestModelClients_LeaveAndRepeat(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "", llmtest.Good, llmtest.SlowFirstByte, llmtest.WaitsInside, llmtest.FailsOnce)
	impatient := map[string]any{"maxRetries": 0, "timeout": 500}
	for _, api := range []string{"chat", "messages"} {
		r := g.app.do(modelRequest{api, askBody(api, llmtest.SlowFirstByte, nil), "", impatient})
		g.provider.Continue()
		if r.Error == nil || r.Error.Name != "APIConnectionTimeoutError" {
			t.Errorf("%s: got %+v, want a timeout", api, r.Error)
		}
		if r = g.app.ask(api, llmtest.WaitsInside, "leave", nil); r.Error != nil || r.Text != "Grüße" {
			t.Errorf("%s: left the stream with %q, %+v; want its first text", api, r.Text, r.Error)
		}
		g.provider.Continue()
	}
	left, bill := g.settled(), g.bill()
	if left.Used != bill || left.Operator != 0 {
		t.Errorf("calls whose app disconnected: got %+v, want the provider's bill of %d from the account", left, bill)
	}
	if r := g.app.ask("chat", llmtest.Good, "leave", nil); r.Error != nil || r.Text != "Grüße" {
		t.Errorf("left the stream with %q, %+v; want its first text", r.Text, r.Error)
	}
	if used, billed := g.settled().Used-left.Used, g.bill()-bill; used != billed || billed == 0 {
		t.Errorf("a call whose app disconnected: booked %d, want the provider's bill of %d", used, billed)
	}

	calls, used, bill := len(g.provider.Book()), g.ledger().Used, g.bill()
	if r := g.app.do(modelRequest{API: "chat", Body: askBody("chat", llmtest.FailsOnce, nil)}); r.Error != nil {
		t.Errorf("a call that succeeds on the second attempt: got error %+v, want none", r.Error)
	}
	l := g.settled()
	if n := len(g.provider.Book()) - calls; n != 2 || l.Used-used != g.bill()-bill || l.Used == used {
		t.Errorf("got %d requests, booked %d, billed %d; want 2 requests and the bill", n, l.Used-used, g.bill()-bill)
	}
	for name, body := range map[string]map[string]any{
		"NotFoundError":   askBody("chat", "nothing", nil),
		"BadRequestError": askBody("chat", llmtest.Good, map[string]any{"n": 2}),
	} {
		calls = len(g.provider.Book())
		r := g.app.do(modelRequest{API: "chat", Body: body})
		if r.Error == nil || r.Error.Name != name || len(g.provider.Book()) != calls {
			t.Errorf("got %+v, want %s without a request to the provider", r.Error, name)
		}
	}
	g.backend.admin("credit", "ada@example.org", "--take", "1.99", "--reference", "all")
	body := askBody("messages", llmtest.Good, map[string]any{"max_tokens": 1000})
	r := g.app.do(modelRequest{API: "messages", Body: body})
	if r.Error == nil || r.Error.Status != 402 || r.Error.Code != "request_too_large" && r.Error.Code != "no_credit" {
		t.Errorf("without credit: got %+v, want status 402", r.Error)
	}
	stranger := startModelApp(t, g.backend.url, "spk_"+strings.Repeat("x", 30))
	for _, api := range []string{"chat", "messages"} {
		r := stranger.do(modelRequest{API: api, Body: askBody(api, llmtest.Good, nil)})
		if r.Error == nil || r.Error.Name != "AuthenticationError" || r.Error.Code != "invalid_key" {
			t.Errorf("%s with a wrong key: got %+v, want invalid_key", api, r.Error)
		}
	}
}
