package wire

import (
	"slices"
	"strings"
	"testing"
)

func TestRequest_LinesAndInstructions(t *testing.T) {
	for name, c := range map[string]struct {
		api   API
		body  string
		lines []Line
		want  string // a part of the encoded request
	}{
		"chat": {Chat, `{"model":"m","messages":[{"role":"developer","content":"A"},{"role":"system","content":"B"},
			{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"there"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"1","content":"secret"},{"role":"system","content":"late"},
			{"role":"assistant","content":"Hello"}]}`, []Line{{RoleUser, "Hi\nthere"}, {RoleAssistant, "Hello"}},
			`{"role":"system","content":"B"},{"role":"system","content":"N\"N"},{"role":"user"`},
		"chat without instructions": {Chat, `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`,
			[]Line{{RoleUser, "Hi"}}, `"messages":[{"role":"system","content":"N\"N"},{"role":"user"`},
		"chat with instructions only": {Chat, `{"model":"m","messages":[{"role":"developer","content":"A"}]}`, nil,
			`{"role":"developer","content":"A"},{"role":"developer","content":"N\"N"}]`},
		"responses": {Responses, `{"model":"m","instructions":"A","input":[{"role":"user","content":"Hi"},
			{"type":"function_call_output","call_id":"1","output":"secret"},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}]}`,
			[]Line{{RoleUser, "Hi"}, {RoleAssistant, "Hello"}}, `"instructions":"A\n\nN\"N"`},
		"responses with a text": {Responses, `{"model":"m","input":"Hi"}`, []Line{{RoleUser, "Hi"}},
			`"instructions":"N\"N"`},
		"messages": {Messages, `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"A"}],"messages":[
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"secret"},
			{"type":"text","text":"Hi"}]},{"role":"assistant","content":"Hello"}]}`,
			[]Line{{RoleUser, "Hi"}, {RoleAssistant, "Hello"}},
			`"system":[{"type":"text","text":"A"},{"type":"text","text":"N\"N"}]`},
		"messages with a text": {Messages,
			`{"model":"m","max_tokens":9,"system":"A","messages":[{"role":"user","content":"Hi"}]}`,
			[]Line{{RoleUser, "Hi"}}, `"system":"A\n\nN\"N"`},
	} {
		r, err := Decode(c.api, []byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := r.Lines(); !slices.Equal(got, c.lines) {
			t.Errorf("%s: got lines %q, want %q", name, got, c.lines)
		}
		r.AddInstructions(`N"N`)
		if got := string(r.Encode("m", c.api.OutputField(), 9)); !strings.Contains(got, c.want) ||
			checkText([]byte(got)) != nil {
			t.Errorf("%s: got %s, want valid JSON with %s", name, got, c.want)
		}
	}
}

func TestAnswer_Text(t *testing.T) {
	for api, events := range map[API]string{
		Chat: `data: {"choices":[{"delta":{"role":"assistant","content":null}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"content":"lo","reasoning_content":"hm"}}]}` + "\n\n",
		Responses: `data: {"type":"response.output_text.delta","delta":"Hel"}` + "\n\n" +
			`data: {"type":"response.output_text.delta","delta":"lo"}` + "\n\n" +
			`data: {"type":"response.output_text.done","text":"Hello"}` + "\n\n",
		Messages: `data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hel"}}` + "\n\n" +
			`data: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}` + "\n\n" +
			`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"lo"}}` + "\n\n",
	} {
		a := NewAnswer(&Request{API: api, Stream: true}, 1000)
		a.CollectText(100)
		if _, err := a.Feed(nil, []byte(events)); err != nil || a.Text() != "Hello" {
			t.Errorf("%s: got %q (error %v), want the text without thoughts", api, a.Text(), err)
		}
	}
	for api, body := range map[API]string{
		Chat: `{"choices":[{"message":{"role":"assistant","content":"Hello"}}]}`,
		Responses: `{"output":[{"type":"reasoning","content":[{"type":"text","text":"hm"}]},
			{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}`,
		Messages: `{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hello"}]}`,
	} {
		a := NewAnswer(&Request{API: api}, 1000)
		a.CollectText(4)
		if !a.Whole([]byte(body)) || a.Text() != "Hell" {
			t.Errorf("%s: got %q, want the first 4 bytes", api, a.Text())
		}
	}
}

func TestRealtime_Notes(t *testing.T) {
	r := NewRealtimeRules(500, 1000, 10, nil)
	free := r.InputBound(Input{}, 1_000_000)
	r.Notes = `N"` + "\n"
	if got := string(r.Begin("")); !strings.Contains(got, `"instructions":"\n\nN\"\n"`) || checkText([]byte(got)) != nil {
		t.Errorf("first event: got %s, want valid JSON with the notes", got)
	}
	if more := r.InputBound(Input{}, 1_000_000) - free; more < int64(len(r.Notes)) {
		t.Errorf("the notes raise the bound of an answer by %d, want at least their length", more)
	}
	for _, event := range []string{`{"type":"session.update","session":{"type":"realtime","instructions":"A"}}`,
		`{"type":"response.create","response":{"instructions":"A"}}`} {
		e, err := r.Client([]byte(event))
		if err != nil || !strings.Contains(string(e.Body), `"instructions":"A\n\nN\"\n"`) || checkText(e.Body) != nil {
			t.Errorf("%s: got %s (error %v), want the notes behind the instructions", event, e.Body, err)
		}
	}
	shown := string(r.HideNotes([]byte(`{"session":{"instructions":"A\n\nN\"\n"}}`)))
	if shown != `{"session":{"instructions":"A"}}` {
		t.Errorf("session as the app sees it: got %s, want only its own instructions", shown)
	}
	r.Notes = ""
	e, err := r.Client([]byte(`{"type":"response.create","response":{"instructions":"A"}}`))
	if err != nil || !strings.Contains(string(e.Body), `"instructions":"A"`) {
		t.Errorf("without notes: got %s (error %v)", e.Body, err)
	}
}
