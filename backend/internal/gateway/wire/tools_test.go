package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// stream returns the text of a stream with the events.
func stream(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

// callPart returns an event with a part of a tool call.
func callPart(index int, name, arguments string) string {
	return fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"name":%q,"arguments":%q}}]}}]}`,
		index, name, arguments)
}

// toolStreams are streams with tool calls, one for each interface.
var toolStreams = map[API]string{
	Chat: stream(callPart(1, "second", `{"b":`), callPart(0, "first", ""), callPart(1, "", `2}`),
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, done),
	Responses: stream(
		`{"type":"response.output_item.done","item":{"type":"function_call","name":"first","arguments":"{}"}}`,
		`{"type":"response.output_item.done","item":{"type":"message"}}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","name":"second","arguments":"{\"b\":2}"}}`),
	Messages: stream(
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"first","input":{}}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"second","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"b\":"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"2}"}}`,
		`{"type":"content_block_stop","index":1}`),
}

// wholeTools are whole answers with the same calls as toolStreams, one for each interface.
var wholeTools = map[API]string{
	Chat: `{"choices":[{"message":{"tool_calls":[{"function":{"name":"first"}},
		{"function":{"name":"second","arguments":"{\"b\":2}"}}]}}]}`,
	Responses: `{"output":[{"type":"function_call","name":"first","arguments":"{}"},
		{"type":"function_call","name":"second","arguments":"{\"b\":2}"}]}`,
	Messages: `{"content":[{"type":"tool_use","name":"first","input":{}},
		{"type":"tool_use","name":"second","input":{"b":2}}]}`,
}

// feedTools feeds a stream in parts of the given size and returns the output and the collected calls.
func feedTools(a *Answer, text string, size int) (out []byte, calls []ToolCall) {
	for part := range slices.Chunk([]byte(text), size) {
		if a.Failed {
			break
		}
		out, _ = a.Feed(out, part)
		calls = append(calls, a.TakeTools()...)
	}
	return out, calls
}

func TestAnswer_CollectsTheCallsOfTools(t *testing.T) {
	want := []ToolCall{{"first", "{}"}, {"second", `{"b":2}`}}
	for _, api := range APIs {
		for _, size := range []int{1, 1000} {
			a := NewAnswer(&Request{API: api}, 1000)
			a.CollectTools()
			if _, calls := feedTools(a, toolStreams[api], size); !slices.Equal(calls, want) {
				t.Errorf("%s in parts of %d: got calls %q, want first and second", api, size, calls)
			}
		}
		a := NewAnswer(&Request{API: api}, 1000)
		a.CollectTools()
		if ok, calls := a.Whole([]byte(wholeTools[api])), a.TakeTools(); !ok || !slices.Equal(calls, want) {
			t.Errorf("%s: %q", api, calls)
		}
		if left := a.TakeTools(); left != nil {
			t.Errorf("%s: the second TakeTools returned %q, want nil", api, left)
		}
	}
}

// A provider can exhaust the memory neither with calls that it begins nor with a call that never ends.
func TestAnswer_BoundsTheCallsOfTools(t *testing.T) {
	a := NewAnswer(&Request{API: Chat}, 1000)
	a.CollectTools()
	part := strings.Repeat("x", 10_000)
	for i := range 2 * maxToolCalls {
		_, _ = a.Feed(nil, []byte(stream(callPart(i, "name", part), callPart(1, "", part), callPart(0, part, ""))))
	}
	for _, c := range a.tools.open {
		if len(c.Name) > maxToolName+len(part) || len(c.Arguments) > maxToolArguments+len(part) {
			t.Errorf("got an incomplete call with a name of %d and arguments of %d bytes, want both limited",
				len(c.Name), len(c.Arguments))
		}
	}
	_, _ = a.Feed(nil, []byte(stream(done)))
	if calls := a.TakeTools(); len(calls) != maxToolCalls-1 { // one call has a name too long for a tool
		t.Errorf("%d calls", len(calls))
	}
	a.Whole([]byte(`{"content":[{"type":"tool_use","name":"` + part + `","input":{}}]}`))
	if calls := a.TakeTools(); calls != nil {
		t.Errorf("%.100q", calls)
	}
}

func FuzzTools(f *testing.F) {
	for i, api := range APIs {
		f.Add(i, 7, toolStreams[api])
		f.Add(i, 100, wholeTools[api])
	}
	f.Add(0, 30, stream(callPart(-1, "a", ""), callPart(1<<40, "b", "{"), `{"choices":[{"finish_reason":"stop"}]}`))
	f.Fuzz(func(t *testing.T, api, size int, text string) {
		r := &Request{API: APIs[((api%3)+3)%3], WantsUsage: true}
		parts, once, plain, whole := NewAnswer(r, 1000), NewAnswer(r, 1000), NewAnswer(r, 1000), NewAnswer(r, 1000)
		for _, a := range []*Answer{parts, once, whole} {
			a.CollectTools()
		}
		out, calls := feedTools(parts, text, min(max(1, size), 1<<20))
		want, atOnce := feedTools(once, text, max(1, len(text)))
		if !slices.Equal(calls, atOnce) {
			t.Fatalf("got calls %q in parts and %q as a whole, want the same", calls, atOnce)
		}
		if bare, _ := feedTools(plain, text, max(1, len(text))); string(bare) != string(want) || string(out) != string(want) {
			t.Fatalf("the app received %q in parts, %q as a whole, %q without collecting; want the same", out, want, bare)
		}
		whole.Whole([]byte(text))
		for _, c := range append(calls, whole.TakeTools()...) {
			if !utf8.ValidString(c.Name+c.Arguments) || len(c.Name)+len(c.Arguments) > 3*len(text)+2 {
				t.Fatalf("%q", c)
			}
		}
		if len(parts.tools.open) > maxToolCalls {
			t.Fatalf("got %d incomplete calls, more than the limit", len(parts.tools.open))
		}
	})
}

// Model servers put the reason for an error in different places.
func TestErrorMessage(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"code":400,"message":"too long","type":"x"}}`:                "too long", // OpenAI, llama.cpp
		`{"error":"model requires more memory"}`:                                "model requires more memory",
		`{"object":"error","message":"too long","type":"x","code":400}`:         "too long",  // vLLM before 0.10
		`{"detail":"Not Found"}`:                                                "Not Found", // FastAPI
		`{"detail":[{"type":"x","loc":["body","messages"],"msg":"too short"}]}`: "too short",
		`{"object":"error","message":{"detail":[{"msg":"not permitted"}]}}`:     "not permitted", // Mistral
		`{"error":null,"message":"too long"}`:                                   "too long",
		`{"error":{"message":7},"status":"failed"}`:                             "",
		`{"error":{"message":""}}`:                                              "",
		`{"choices":[{"message":{"content":"an answer"}}]}`:                     "",
		`["text"]`: "",
		`<html>`:   "",
		`{"error":` + strings.Repeat(`{"error":`, 50) + `"x"` + strings.Repeat(`}`, 51): "",
	} {
		if got := ErrorMessage([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzErrorMessage(f *testing.F) {
	for _, body := range []string{
		`{"error":{"message":"too long","code":"x"}}`, `{"type":"error","error":{"message":"\ud800"}}`,
		`{"error":"text"}`, `{"error":{"message":7}}`, `{"error":{"message":"` + strings.Repeat("é", 400) + `"}}`,
		`[]`, `<html>`, `{"detail":[{"msg":"x"}]}`, `{"error":{"error":[[{"error":"x"}]]}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if message := ErrorMessage([]byte(body)); len(message) > 500 || !utf8.ValidString(message) {
			t.Fatalf("got a message of %d bytes, want valid text within the limit: %q", len(message), message)
		}
	})
}
