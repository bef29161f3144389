package wire

import (
	"slices"
	"strings"
	"testing"
)

// events returns a stream of the given data.
func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

func TestAnswer_CollectsTheCallsOfTools(t *testing.T) {
	both := []ToolCall{{"measure", `{"of":"door"}`}, {"note", "{}"}}
	for name, c := range map[string]struct {
		api         API
		stream, all string // the same answer in both forms
	}{
		"chat": {Chat, events(
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"measure","arguments":"{\"of\":"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"note"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"door\"}"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`,
		), `{"choices":[{"message":{"tool_calls":[{"function":{"name":"measure","arguments":"{\"of\":\"door\"}"}},` +
			`{"function":{"name":"note"}}]},"finish_reason":"tool_calls"}]}`},
		"responses": {Responses, events(
			`{"type":"response.output_item.done","item":{"type":"message"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"measure",`+
				`"arguments":"{\"of\":\"door\"}"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"note","arguments":"{}"}}`,
		), `{"output":[{"type":"message"},{"type":"function_call","name":"measure","arguments":"{\"of\":\"door\"}"},` +
			`{"type":"function_call","name":"note","arguments":"{}"}]}`},
		"messages": {Messages, events(
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"measure","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"of\":"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"door\"}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"note","input":{}}}`,
			`{"type":"content_block_stop","index":2}`,
		), `{"content":[{"type":"text"},{"type":"tool_use","name":"measure","input":{"of":"door"}},` +
			`{"type":"tool_use","name":"note","input":{}}]}`},
	} {
		streamed, whole := NewAnswer(&Request{API: c.api}, 1000), NewAnswer(&Request{API: c.api}, 1000)
		streamed.CollectTools()
		whole.CollectTools()
		_, err := streamed.Feed(nil, []byte(c.stream))
		if got := streamed.TakeTools(); err != nil || !slices.Equal(got, both) {
			t.Errorf("%s, streamed: %+v, %v", name, got, err)
		}
		ok := whole.Whole([]byte(c.all))
		if got := whole.TakeTools(); !ok || !slices.Equal(got, both) {
			t.Errorf("%s, whole: %+v", name, got)
		}
		if left := slices.Concat(streamed.TakeTools(), whole.TakeTools()); left != nil {
			t.Errorf("%s: taken twice: %+v", name, left)
		}
	}
}

// A provider cannot fill the memory with calls that never end.
func TestAnswer_BoundsTheCallsOfTools(t *testing.T) {
	a := NewAnswer(&Request{API: Chat}, 1000)
	a.CollectTools()
	long := strings.Repeat("x", 1000)
	part := events(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"` + long + `","arguments":"` + long +
		`"}}]}}]}`)
	for range 200 {
		if _, err := a.Feed(nil, []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	c := a.tools.open[0]
	if len(c.Name) > maxToolName+len(long) || len(c.Arguments) > maxToolArguments+len(long) {
		t.Errorf("%d bytes of name, %d of arguments", len(c.Name), len(c.Arguments))
	}
}
