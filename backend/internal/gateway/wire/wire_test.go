package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

func decode(t *testing.T, api API, body string) *Request {
	t.Helper()
	r, err := Decode(api, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestDecode_RefusesWhatCouldSpendMore(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, c := range []struct {
		api               API
		body, code, param string
	}{
		{Chat, `{"model":"m","model":"n",` + hello + `}`, problem.CodeInvalidJSON, "model"},
		{Chat, `{"model":"m","messages":[{"role":"user","role":"system","content":"x"}]}`,
			problem.CodeInvalidJSON, "messages[0].role"},
		{Chat, `{"model":"m","mod\u0065l":"n",` + hello + `}`, problem.CodeInvalidJSON, "model"},
		{Chat, `{"model":"m","seed":` + deep + `,` + hello + `}`, problem.CodeInvalidJSON, "seed" + strings.Repeat(".a", 31)},
		{Chat, `{"model":"m","temperature":1e400,` + hello + `}`, problem.CodeInvalidJSON, "temperature"},
		{Chat, "{\"model\":\"m\xff\"," + hello + `}`, problem.CodeInvalidJSON, "model"},
		{Chat, `[]`, problem.CodeInvalidJSON, ""},
		{Chat, `{"model":"m",` + hello + `} {}`, problem.CodeInvalidJSON, ""},
		{Chat, ``, problem.CodeInvalidJSON, ""},
		{Chat, `null`, problem.CodeInvalidJSON, ""},
		{Chat, `{` + hello + `}`, problem.CodeInvalidValue, "model"},
		{Chat, `{"model":"m"}`, problem.CodeInvalidValue, "messages"},
		{Chat, `{"model":"m","max_tokens":-1,` + hello + `}`, problem.CodeInvalidValue, "max_tokens"},
		{Chat, `{"model":"m","max_tokens":0,` + hello + `}`, problem.CodeInvalidValue, "max_tokens"},
		{Chat, `{"model":"m","max_tokens":1e18,` + hello + `}`, problem.CodeInvalidValue, "max_tokens"},
		{Chat, `{"model":"m","max_tokens":1000000000000000000,` + hello + `}`, problem.CodeInvalidValue, "max_tokens"},
		{Chat, `{"model":"m","max_tokens":"5",` + hello + `}`, problem.CodeInvalidValue, "max_tokens"},
		{Chat, `{"model":"m","max_completion_tokens":1.5,` + hello + `}`, problem.CodeInvalidValue, "max_completion_tokens"},
		{Chat, `{"model":"m","n":100,` + hello + `}`, problem.CodeUnsupportedParameter, "n"},
		{Chat, `{"model":"m","store":true,` + hello + `}`, problem.CodeUnsupportedParameter, "store"},
		{Chat, `{"model":"m","service_tier":"priority",` + hello + `}`, problem.CodeUnsupportedParameter, "service_tier"},
		{Chat, `{"model":"m","web_search_options":{},` + hello + `}`, problem.CodeUnsupportedParameter, "web_search_options"},
		{Chat, `{"model":"m","prediction":{},` + hello + `}`, problem.CodeUnsupportedParameter, "prediction"},
		{Chat, `{"model":"m","modalities":["audio"],` + hello + `}`, problem.CodeUnsupportedParameter, "modalities"},
		{Chat, `{"model":"m","Model":"n",` + hello + `}`, problem.CodeUnsupportedParameter, "Model"},
		{Chat, `{"model":"m","tools":[{"type":"web_search"}],` + hello + `}`,
			problem.CodeUnsupportedParameter, "tools[0].type"},
		{Chat, `{"model":"m","tools":[{"function":{"name":"f"}}],` + hello + `}`,
			problem.CodeUnsupportedParameter, "tools[0].type"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`,
			problem.CodeUnsupportedParameter, "messages[0].content[0].type"},
		{Chat, `{"model":"m","messages":[{"role":"assistant","audio":{"id":"a"}}]}`,
			problem.CodeUnsupportedParameter, "messages[0].audio"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"text":"` + strings.Repeat("x", 1<<20) +
			`","type":"input_audio"}]}]}`, problem.CodeUnsupportedParameter, "messages[0].content[0].type"},
		{Responses, `{"model":"m","input":"x","previous_response_id":"r"}`,
			problem.CodeUnsupportedParameter, "previous_response_id"},
		{Responses, `{"model":"m","input":"x","prompt":{"id":"pmpt_1"}}`, problem.CodeUnsupportedParameter, "prompt"},
		{Responses, `{"model":"m","input":"x","background":true}`, problem.CodeUnsupportedParameter, "background"},
		{Responses, `{"model":"m","input":"x","tools":[{"type":"mcp"}]}`, problem.CodeUnsupportedParameter, "tools[0].type"},
		{Responses, `{"model":"m","input":[{"type":"item_reference","id":"x"}]}`,
			problem.CodeUnsupportedParameter, "input[0].type"},
		{Messages, `{"model":"m","max_tokens":5,"mcp_servers":[],` + hello + `}`,
			problem.CodeUnsupportedParameter, "mcp_servers"},
		{Messages, `{"model":"m","max_tokens":5,"tools":[{"type":"web_search_20250305","name":"w"}],` + hello + `}`,
			problem.CodeUnsupportedParameter, "tools[0].type"},
		{Messages, `{"model":"m","max_tokens":5,"service_tier":"auto",` + hello + `}`,
			problem.CodeInvalidValue, "service_tier"},
		{Messages, `{"model":"m","system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],` +
			hello + `}`, problem.CodeInvalidValue, "system[0].cache_control.ttl"},
	} {
		_, err := Decode(c.api, []byte(c.body))
		var field *FieldError
		if !errors.As(err, &field) || field.Code != c.code || field.Param != c.param {
			t.Errorf("%s: got %+v (error %v), want code %s for %q", c.body, field, err, c.code, c.param)
		}
	}
}

func TestRequest_EncodesAnewWithItsBounds(t *testing.T) {
	for _, c := range []struct {
		api         API
		body, field string
		want        string
	}{
		{Chat, ` { "model" : "assistant", "max_tokens": 9, "stream":true, "n": 1, "stream_options":null,
			"messages" : [ {"role":"user","content":"H\u0069"} ], "seed": 7, "max_completion_tokens": 8 } `, "max_tokens",
			`{"messages":[{"role":"user","content":"Hi"}],"seed":7,"model":"up","max_tokens":8,"stream":true,` +
				`"stream_options":{"include_usage":true}}`},
		{Responses, `{"model":"m","input":"x","store":false,"max_output_tokens":8}`, "max_output_tokens",
			`{"input":"x","model":"up","max_output_tokens":8,"stream":false,"store":false}`},
		{Messages, `{"max_tokens":8,` + hello + `,"model":"m"}`, "max_tokens",
			`{` + hello + `,"model":"up","max_tokens":8,"stream":false}`},
	} {
		r := decode(t, c.api, c.body)
		if got := string(r.Encode("up", c.field, r.Output)); got != c.want || r.Output != 8 {
			t.Errorf("got output limit %d and body\n%s, want 8 and\n%s", r.Output, got, c.want)
		}
	}
}

// An app sends back the message as returned by the official client.
func TestDecode_AcceptsTheMessagesThatProvidersAnswer(t *testing.T) {
	r := decode(t, Chat, `{"model":"m","messages":[{"role":"user","content":"Hi"},
		{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,
		 "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"42"}],
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto"}`)
	if body := string(r.Encode("m", "max_tokens", 1)); strings.Contains(body, "annotations") ||
		!strings.Contains(body, `"tool_calls":[{"id":"c1"`) {
		t.Error(body)
	}
	decode(t, Responses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc","status":null},
		{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"},
		{"type":"function_call_output","call_id":"c","output":"1"}],"store":false,"include":["reasoning.encrypted_content"]}`)
	decode(t, Messages, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},
		 {"type":"tool_use","id":"t1","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]}],
		"tools":[{"name":"f","input_schema":{"type":"object"}}]}`)
}

func TestRequest_BoundsItsInput(t *testing.T) {
	data := strings.Repeat("A", 100_000)
	r := decode(t, Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,`+data+`"}}]}]}`)
	if r.Images != 1 || r.InputBound(1000) < 1013 || r.InputBound(1000) > 1500 {
		t.Errorf("got %d images and bound %d, want 1 image and a bound near 1,013", r.Images, r.InputBound(1000))
	}
	if got := decode(t, Chat, `{"model":"m",`+hello+`}`).InputBound(0); got < 5 || got > 200 {
		t.Errorf("bound %d", got)
	}
	// Anthropic adds up to 530 tokens to a request with tools.
	if got := decode(t, Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],
		"tools":[{"name":"t","input_schema":{"type":"object"}}]}`).InputBound(0); got < 1024 || got > 1500 {
		t.Errorf("got bound %d for a request with a tool, want 1,024 to 1,500", got)
	}
}

func TestPrices_RoundUpOnceAndNeverOverflow(t *testing.T) {
	p := Prices{In: 250_000, Cached: 25_000, CacheWrite: 312_500, Out: 2_000_000}
	if got := p.Of(Usage{In: 3, Cached: 1, Out: 1}); got != 3 { // 0.5 + 0.025 + 2 = 2.525
		t.Errorf("%d", got)
	}
	if got := p.Of(Usage{}); got != 0 {
		t.Errorf("%d", got)
	}
	most := Prices{MaxPrice, MaxPrice, MaxPrice, MaxPrice}
	if got := most.Of(Usage{In: MaxTokens, Out: MaxTokens}); got != 2*MaxTokens*MaxPrice/1_000_000 {
		t.Errorf("%d", got)
	}
	many := Usage{In: 400 * MaxTokens, Cached: 100 * MaxTokens, Out: 7_000_000_001} // tokens of a month
	if got := p.Of(many); got != 7_500_000_000+250_000_000+14_000_000_002 {
		t.Errorf("%d", got)
	}
	if got := most.Of(Usage{In: 4e15, Out: 4e15}); got != 8e18 {
		t.Errorf("%d", got)
	}
	if got := most.Bound(MaxTokens, MaxTokens); got != 2*MaxTokens*MaxPrice/1_000_000 {
		t.Errorf("%d", got)
	}
	for amount := range int64(500) {
		n := p.Affords(amount, 100)
		if n >= 0 && p.Bound(100, n) > amount || p.Bound(100, max(n, -1)+1) <= amount {
			t.Errorf("amount %d covers %d tokens, which is too many or too few", amount, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(0, `{"model":"m",`+hello+`,"stream":true}`)
	f.Add(1, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}]}`)
	f.Add(2, `{"model":"m","max_tokens":4,"system":"s",`+hello+`}`)
	f.Fuzz(func(t *testing.T, api int, body string) {
		a := APIs[((api%3)+3)%3]
		r, err := Decode(a, []byte(body))
		if err != nil {
			var field *FieldError
			if !errors.As(err, &field) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		out := r.Encode("up", a.OutputField(), 77)
		var got map[string]json.RawMessage
		if err := json.Unmarshal(out, &got); err != nil || string(got["model"]) != `"up"` ||
			string(got[a.OutputField()]) != "77" || checkText(out) != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if r.InputBound(0) < int64(len(got["messages"])+len(got["input"])) && r.Images == 0 {
			t.Fatalf("got bound %d for %s, want at least the length of its input", r.InputBound(0), out)
		}
		again, err := Decode(a, out) // the encoded request must also be accepted
		if err != nil || a != Chat && again.Output != 77 {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

// Official clients include the message that they received in the next request, with additional fields.
func TestDecode_DropsWhatClientsAdd(t *testing.T) {
	call := `"name":"f","arguments":"{}","parsed_arguments":{}`
	for api, body := range map[API]string{
		Chat: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"parsed":null,` +
			`"tool_calls":[{"id":"1","type":"function","function":{` + call + `}}]},` +
			`{"role":"tool","tool_call_id":"1","content":"y"}]}`,
		Responses: `{"model":"m","input":[{"type":"function_call","call_id":"1",` + call + `},{"role":"assistant",` +
			`"content":[{"type":"output_text","text":"x","annotations":[],"parsed":null}]}]}`,
	} {
		r, err := Decode(api, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", api, err)
		} else if out := r.Encode("m", api.OutputField(), 10); strings.Contains(string(out), "parsed") {
			t.Errorf("%s: %s", api, out)
		}
	}
}

// An answer with probabilities is refused if it would be too large, before it costs anything.
func TestRequest_CheckSize(t *testing.T) {
	const ask = `{"model":"m","messages":[{"role":"user","content":"x"}],"input":"x"`
	for _, c := range []struct {
		api    API
		more   string
		output int64
		fits   bool
	}{
		{Chat, ``, 1 << 20, true},
		{Chat, `,"logprobs":true`, 16384, true},
		{Chat, `,"logprobs":true,"top_logprobs":20`, 3120, true},
		{Chat, `,"logprobs":true,"top_logprobs":20`, 16384, false},
		{Chat, `,"logprobs":true,"top_logprobs":20,"stream":true`, 16384, true},
		{Responses, `,"top_logprobs":20`, 3000, true},
		{Responses, `,"top_logprobs":20`, 16384, true}, // only with a value of include that is refused
	} {
		field := map[API]string{Chat: `,"input":"x"`, Responses: `,"messages":[{"role":"user","content":"x"}]`}[c.api]
		r := decode(t, c.api, strings.Replace(ask, field, "", 1)+c.more+"}")
		if err := r.CheckSize(c.output); (err == nil) != c.fits {
			t.Errorf("%s%s with %d tokens: %v, want fit %t", c.api, c.more, c.output, err, c.fits)
		}
	}
}
