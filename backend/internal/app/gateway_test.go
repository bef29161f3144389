package app

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/test/llmtest"
)

func TestGateway_ChargesWhatTheProviderReports(t *testing.T) { eachGateway(t, testCharges) }

func testCharges(t *testing.T, w *gatewayWorld) {
	for _, c := range []struct{ path, model, body, want string }{
		{"/v1/chat/completions", "good", chatBody("assistant", ""), `"content":"Grüße to the world of small glasses 你好!"`},
		{"/v1/chat/completions", "good", chatBody("good", `,"stream":true`), "data: [DONE]"},
		{"/v1/chat/completions", "good", chatBody("good", `,"stream":true,"stream_options":{"include_usage":true}`), `"prompt_tokens"`},
		{"/v1/responses", "resp-good", `{"model":"resp-good","input":"Hello","max_output_tokens":3}`, `"output_text"`},
		{"/v1/responses", "resp-good", `{"model":"resp-good","input":"Hello","stream":true}`, "response.completed"},
		{"/v1/messages", "msg-good", chatBody("msg-good", `,"max_tokens":100`), `"type":"text"`},
		{"/v1/messages", "msg-good", chatBody("msg-good", `,"max_tokens":100,"stream":true`), "message_stop"},
	} {
		before, _ := w.provider.Billed()
		_, outBefore := w.provider.Billed()
		res, body := w.ask("POST", c.path, c.body)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, c.want) {
			t.Fatalf("%s: got %d %s, want 200 and the answer", c.body, res.StatusCode, body)
		}
		in, out := w.provider.Billed()
		in, out = in-before, out-outBefore
		cached := llmtest.Cached(in)
		if strings.HasPrefix(c.model, "msg") {
			cached = 0
		}
		want := callRow{Model: c.model, Kind: w.last().Kind, Source: "credit", Outcome: "ok", In: in - cached, Cached: cached,
			Out: out, MicroUSD: 2*(in-cached) + cached + 10*out}
		if got := w.last(); got != want {
			t.Errorf("%s: got row\n%+v, want\n%+v", c.body, got, want)
		}
	}
	var spent int64
	for _, row := range w.calls() {
		spent += row.MicroUSD
	}
	if posted, held := w.balance(); posted != 2_000_000-spent || held != 0 {
		t.Errorf("got balance %d and %d held after spending %d, want the rest and 0 held", posted, held, spent)
	}
}

func TestGateway_AsksTheProviderForNoMoreThanItHolds(t *testing.T) {
	w := startGateway(t)
	w.ask("POST", "/v1/chat/completions", chatBody("good", `,"stream":true,"max_tokens":5000,"user":"u"`),
		"Idempotency-Key", "twice", "OpenAI-Organization", "org", "Cookie", "a=b")
	call := w.provider.Book()[0]
	if call.Body["max_completion_tokens"] != float64(1000) || call.Body["max_tokens"] != nil || call.Body["stream_options"] == nil ||
		call.Body["model"] != "good" {
		t.Errorf("got body %v, want the limit of the model and a usage report", call.Body)
	}
	for _, name := range []string{"Idempotency-Key", "Openai-Organization", "Cookie", "X-Api-Key", "X-Forwarded-For", "Origin"} {
		if call.Header.Get(name) != "" {
			t.Errorf("header %s was forwarded, want it removed", name)
		}
	}
	if got := call.Header.Get("Authorization"); got != "Bearer "+llmtest.Key {
		t.Errorf("provider got Authorization %q, want the operator's key", got)
	}
}

// For every misbehaviour of a provider, each call ends in an answer or a refusal, leaves no hold, and is never charged
// more than its hold.
func TestGateway_OutlivesEveryProvider(t *testing.T) { eachGateway(t, testProviders) }

func testProviders(t *testing.T, w *gatewayWorld) {
	for _, c := range []struct {
		model   string
		stream  bool
		status  int
		code    string // code of the refusal, or a part of the answer
		outcome string
		retry   string
	}{
		{llmtest.OneByte, true, 200, "[DONE]", "ok", ""},
		{llmtest.CRLF, true, 200, "[DONE]", "ok", ""},
		{llmtest.UsageNull, true, 200, "[DONE]", "ok", ""},
		{llmtest.UsageNoChoices, true, 200, "[DONE]", "ok", ""},
		{llmtest.UsageWithDelta, true, 200, "[DONE]", "ok", ""},
		{llmtest.UsageTwice, true, 200, "[DONE]", "ok", ""},
		{llmtest.UsageNone, true, 200, "[DONE]", "ok estimated", ""},
		{llmtest.UsageIsNull, true, 200, "[DONE]", "ok estimated", ""},
		{llmtest.UsageStrings, true, 200, "[DONE]", "ok estimated", ""},
		{llmtest.UsageNegative, true, 200, "[DONE]", "ok estimated", ""},
		{llmtest.UsageHuge, true, 200, "[DONE]", "ok estimated", ""},
		{llmtest.CachedAbove, true, 200, "[DONE]", "ok estimated", ""},
		{llmtest.UsageNone, false, 200, "Grüße", "ok estimated", ""},
		{llmtest.UsageHuge, false, 200, "Grüße", "ok estimated", ""},
		{llmtest.AboveMax, true, 200, "[DONE]", "ok", ""},
		{llmtest.EchoesKey, true, 200, "[removed]", "ok", ""},
		{llmtest.EchoesKey, false, 200, "[removed]", "ok", ""},
		{llmtest.LongLine, true, 200, "BROKEN", "failed estimated", ""},
		{llmtest.CutBeforeUsage, true, 200, "BROKEN", "failed estimated", ""},
		{llmtest.CutAfterUsage, true, 200, "BROKEN", "failed", ""},
		{llmtest.ErrorInside, true, 200, "BROKEN", "failed estimated", ""},
		{llmtest.ErrorFrame, true, 503, "provider_busy", "failed", "5"},
		{llmtest.ErrorFrame, false, 503, "provider_busy", "failed", "5"},
		{llmtest.HTML200, true, 503, "provider_busy", "failed", "5"},
		{llmtest.HTML200, false, 502, "provider_error", "failed", "5"},
		{llmtest.HTML502, false, 503, "provider_busy", "failed", "5"},
		{llmtest.WrongLength, false, 503, "provider_busy", "failed", "5"},
		{llmtest.Gzip, false, 503, "provider_busy", "failed", "5"},
		{llmtest.Status500, false, 503, "provider_busy", "failed", "5"},
		{llmtest.Status529, true, 503, "provider_busy", "failed", "5"},
		{llmtest.Status429, true, 503, "provider_busy", "failed", "5"},
		{llmtest.Status429Retry, true, 503, "provider_busy", "failed", "7"},
		{llmtest.Status429Spent, true, 503, "provider_unavailable", "failed", "60"},
		{llmtest.Status401, true, 503, "provider_unavailable", "failed", "60"},
		{llmtest.Status404, true, 503, "provider_unavailable", "failed", "60"},
		{llmtest.Redirects, true, 503, "provider_unavailable", "failed", "60"},
		{llmtest.Status400EchoKey, true, 400, "provider_refused", "failed", ""},
		{llmtest.DropsAfterRead, true, 503, "provider_unavailable", "failed", "5"},
		{"absent", true, 503, "provider_unreachable", "provider_unreachable", "5"},
	} {
		posted := int64(2_000_000)
		if len(w.calls()) > 0 {
			posted, _ = w.balance()
		}
		requests := len(w.provider.Book())
		more := ""
		if c.stream {
			more = `,"stream":true`
		}
		res, body := w.ask("POST", "/v1/chat/completions", chatBody(c.model, more))
		row := w.last()
		got := row.Outcome
		if row.Estimated {
			got += " estimated"
		}
		if res.StatusCode != c.status || !strings.Contains(body, c.code) || got != c.outcome || row.Model != c.model ||
			res.Header.Get("Retry-After") != c.retry {
			t.Errorf("%s: got status %d, %.300s (%s), Retry-After %q; want the result in the table", c.model, res.StatusCode,
				body, got, res.Header.Get("Retry-After"))
		}
		if strings.Contains(body, llmtest.Key) {
			t.Errorf("%s: the answer contains the provider's key", c.model)
		}
		if n := len(w.provider.Book()) - requests; n > 1 {
			t.Errorf("%s: the provider received %d requests, want at most 1", c.model, n)
		}
		if c.model == "absent" {
			continue
		}
		now, held := w.balance()
		if held != 0 || posted-now != row.MicroUSD || row.MicroUSD > 2*10_000+10*100 {
			t.Errorf("%s: %d still held, charged %d, recorded %d; want 0 held and equal amounts within the hold", c.model,
				held, posted-now, row.MicroUSD)
		}
		if c.status != 200 && now != posted {
			t.Errorf("%s: charged %d without an answer, want no charge", c.model, posted-now)
		}
	}
}

func TestGateway_RefusesInTheClientsOwnWords(t *testing.T) {
	w := startGateway(t)
	big := strings.Repeat("x", 10<<20)
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		code, kind         string
	}{
		{"POST", "/v1/chat/completions", chatBody("good", ""), []string{"Authorization", "Bearer spk_wrong"}, 401, "invalid_key", "authentication_error"},
		{"POST", "/v1/chat/completions", chatBody("good", ""), []string{"X-Api-Key", "spk_other"}, 401, "invalid_key", "authentication_error"},
		{"GET", "/v1/models", "", []string{"Authorization", ""}, 401, "invalid_key", "authentication_error"},
		{"POST", "/v1/chat/completions", chatBody("nothing", ""), nil, 404, "model_not_found", "not_found_error"},
		{"POST", "/v1/chat/completions", chatBody("unpriced", ""), nil, 404, "model_not_found", "not_found_error"},
		{"POST", "/v1/chat/completions", chatBody("msg-good", ""), nil, 400, "wrong_api", "invalid_request_error"},
		{"POST", "/v1/chat/completions", chatBody("good", `,"n":100`), nil, 400, "unsupported_parameter", "invalid_request_error"},
		{"POST", "/v1/chat/completions", chatBody("good", `,"max_tokens":-1`), nil, 400, "invalid_value", "invalid_request_error"},
		{"POST", "/v1/chat/completions", `{"model":"good"`, nil, 400, "invalid_json", "invalid_request_error"},
		{"POST", "/v1/chat/completions", `{"model":"good","messages":[{"role":"user","content":"` + big + `"}]}`, nil, 413, "body_too_large", "invalid_request_error"},
		{"POST", "/v1/chat/completions", chatBody("good", ""), []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", "invalid_request_error"},
		{"POST", "/v1/chat/completions", chatBody("expensive", `,"seed":1,"user":"`+big[:200]+`","stop":["`+big[:250]+`"],"max_tokens":1000,"tools":[`+
			`{"type":"function","function":{"name":"f","description":"`+big[:2000]+`"}}]`), nil, 402, "no_credit", "insufficient_quota"},
		{"POST", "/v1/chat/completions", chatBody("expensive", `,"max_tokens":1000,"tools":[{"type":"function","function":`+
			`{"name":"f","description":"`+big[:200]+`"}}]`), nil, 402, "request_too_large", "insufficient_quota"},
		{"POST", "/v1/messages", chatBody("nothing", `,"max_tokens":1`), nil, 404, "model_not_found", "not_found_error"},
		{"POST", "/v1/messages", chatBody("msg-good", `,"max_tokens":1,"mcp_servers":[]`), nil, 400, "unsupported_parameter", "invalid_request_error"},
		{"POST", "/v1/embeddings", `{}`, nil, 404, "not_found", "not_found_error"},
		{"GET", "/v1/chat/completions", "", nil, 405, "method_not_allowed", "invalid_request_error"},
	} {
		res, body := w.ask(c.method, c.path, c.body, c.header...)
		e := errorOf(t, body)
		if res.StatusCode != c.status || e["code"] != c.code || e["type"] != c.kind || e["message"] == "" {
			t.Errorf("%s %.100s: got status %d, error %v; want the refusal in the table", c.path, c.body, res.StatusCode, e)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "*" || c.status == 405 && res.Header.Get("Allow") != "POST" {
			t.Errorf("%s %.100s: got headers %v, want CORS for every origin and Allow with 405", c.path, c.body, res.Header)
		}
		if messages := strings.HasPrefix(body, `{"error"`) && strings.Contains(body, `"type":"error"`); messages !=
			(c.path == "/v1/messages") {
			t.Errorf("%s: got %s, want the error in the form of the interface", c.path, body)
		}
	}
	if len(w.provider.Book()) != 0 {
		t.Errorf("the provider received %d refused calls, want none", len(w.provider.Book()))
	}
	_, list := w.ask("GET", "/v1/models", "")
	if !strings.Contains(list, `"id":"assistant"`) || strings.Contains(list, "unpriced") || !strings.Contains(list, `"id":"msg-good"`) {
		t.Error(list)
	}
	res, _ := w.ask("OPTIONS", "/v1/chat/completions", "", "Access-Control-Request-Headers", "authorization,x-stainless-os")
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Access-Control-Allow-Headers") != "authorization,x-stainless-os" {
		t.Errorf("got %d %v, want 204 and the allowed headers", res.StatusCode, res.Header)
	}
}

// If an app disconnects, the gateway keeps reading the answer for a while, so that it can charge the usage that the
// provider reports.
func TestGateway_ReadsOnWhenTheAppLeaves(t *testing.T) { eachGateway(t, testReadsOn) }

func testReadsOn(t *testing.T, w *gatewayWorld) {
	ctx, leave := context.WithCancel(t.Context())
	res := w.begin(ctx, chatBody(llmtest.WaitsInside, `,"stream":true`))
	leave()
	res.Body.Close()
	w.provider.Continue()
	w.restart() // waits until the call is settled
	row, call := w.last(), w.provider.Book()[0]
	if row.Outcome == "failed" || row.Estimated || row.Out != call.Out || !call.Done {
		t.Errorf("got call %+v, provider's record %+v, want a complete call with equal output", row, call)
	}
	if _, held := w.balance(); held != 0 {
		t.Errorf("%d held, want 0", held)
	}
}

// No secret and no content of a call appears in the log, in the database or in an answer.
func TestGateway_KeepsKeysAndContentToItself(t *testing.T) {
	w := startGateway(t)
	const content = "canary-content-71c2"
	for _, model := range append(gatewayModels, "absent", "unpriced") {
		if model == llmtest.Hangs || model == llmtest.HangsInside || model == llmtest.WaitsInside ||
			model == llmtest.SlowFirstByte {
			continue
		}
		_, body := w.ask("POST", "/v1/chat/completions",
			`{"model":"`+model+`","stream":true,"user":"`+content+`","messages":[{"role":"user","content":"`+content+`"}]}`)
		if strings.Contains(body, llmtest.Key) || strings.Contains(body, w.key) {
			t.Errorf("%s: the answer contains a key", model)
		}
	}
	w.restart()
	files, err := filepath.Glob(w.database + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := map[string][]byte{"log": []byte(w.log.String())}
	for _, name := range files {
		if all[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range all {
		for _, secret := range []string{llmtest.Key, w.key, content, "Grüße"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s contains %s", name, secret)
			}
		}
	}
	if !strings.Contains(w.log.String(), "provider refused the operator's request") {
		t.Error("the log does not report that the provider refused the operator's key")
	}
}
