package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// answers are requests with an answer that an app sends back. A § marks where providers and clients add members.
var answers = map[string]struct {
	api  API
	body string
}{
	"chat": {Chat, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Hi"§}]}`},
	"chat with calls": {Chat, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function",` +
		`"function":{"name":"f","arguments":"{}"§}§}]§},{"role":"tool","tool_call_id":"1","content":"y"}]}`},
	"chat with parts": {Chat, `{"model":"m","messages":[{"role":"assistant","content":[{"type":"text","text":"Hi"§},` +
		`{"type":"refusal","refusal":"No"§}]§}]}`},
	"responses": {Responses, `{"model":"m","input":[{"type":"message","role":"assistant","content":[` +
		`{"type":"output_text","text":"Hi"§},{"type":"refusal","refusal":"No"§}]§}]}`},
	"responses with calls": {Responses, `{"model":"m","input":[{"type":"function_call","call_id":"1","name":"f",` +
		`"arguments":"{}"§},{"type":"function_call_output","call_id":"1","output":"y"}]}`},
	"responses with thoughts": {Responses, `{"model":"m","input":[{"type":"reasoning","summary":[` +
		`{"type":"summary_text","text":"Hm"§}]§}]}`},
	"messages": {Messages, `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[` +
		`{"type":"text","text":"Hi"§},{"type":"tool_use","id":"1","name":"f","input":{"a":1}§},` +
		`{"type":"thinking","thinking":"Hm","signature":"s"§},{"type":"redacted_thinking","data":"d"§}]§}]}`},
}

// members are the members that the rules for an answer name, so they do not count as additions.
var members = strings.Fields("role content tool_calls name type text refusal function arguments extra_content audio " +
	"function_call input cache_control thinking signature data summary call_id id status phase encrypted_content")

// wantSameRequest checks that the body with additions is encoded like the body without, at the same price.
func wantSameRequest(t rapid.TB, api API, body string, added func() string) {
	t.Helper()
	plain, err := Decode(api, []byte(strings.ReplaceAll(body, "§", "")))
	if err != nil {
		t.Fatal(err)
	}
	var with strings.Builder
	for i, part := range strings.Split(body, "§") {
		if i > 0 {
			with.WriteString(added())
		}
		with.WriteString(part)
	}
	r, err := Decode(api, []byte(with.String()))
	if err != nil {
		t.Fatalf("%s: %v", with.String(), err)
	}
	got, want := r.Encode("m", api.OutputField(), 9), plain.Encode("m", api.OutputField(), 9)
	if string(got) != string(want) || r.InputBound(0) != plain.InputBound(0) {
		t.Fatalf("%s is encoded as %s with bound %d, want %s with bound %d", with.String(), got, r.InputBound(0), want,
			plain.InputBound(0))
	}
}

// For every set of members in an answer, the next call with the answer is accepted at the same price.
func TestDecode_AcceptsEveryAnswer(t *testing.T) {
	value := rapid.SampledFrom([]string{"null", "[]", "{}", `"x"`, "1", "true", `[{"type":"text","text":"x"}]`})
	name := rapid.StringMatching(`[a-z_]{1,12}`).Filter(func(s string) bool { return !slices.Contains(members, s) })
	for what, a := range answers {
		t.Run(what, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				wantSameRequest(rt, a.api, a.body, func() (added string) {
					for name, value := range rapid.MapOfN(name, value, 0, 3).Draw(rt, "members") {
						added += fmt.Sprintf(",%q:%s", name, value)
					}
					return added
				})
			})
		})
	}
}

// Members that providers and clients are known to add, or to set to null.
func TestDecode_AcceptsKnownAdditions(t *testing.T) {
	for what, added := range map[string][]string{
		"chat": {`"reasoning":"x"`, `"reasoning_content":"x"`, `"reasoning_details":[{"type":"reasoning.text","text":"x"}]`,
			`"thinking":"x"`, `"reasoning_text":"x"`, `"provider_specific_fields":{"a":1}`, `"images":[{"type":"image_url"}]`,
			`"stop_reason":null`, `"token_ids":[1,2]`, `"annotations":[]`, `"parsed":{}`, `"tool_calls":null`,
			`"audio":null`, `"name":null`, `"refusal":null`, `"function_call":null`, `"id":"msg_1"`},
		"responses":               {`"id":null`, `"status":null`, `"phase":null`, `"parsed":null`, `"annotations":[]`},
		"responses with calls":    {`"id":null`, `"status":null`, `"parsed_arguments":{}`, `"namespace":null`},
		"responses with thoughts": {`"id":null`, `"status":null`, `"encrypted_content":null`, `"content":null`},
		"messages": {`"parsed_output":{}`, `"citations":[]`, `"citations":null`, `"caller":{"type":"direct"}`,
			`"cache_control":null`, `"stop_reason":"end_turn"`, `"usage":{"output_tokens":3}`},
	} {
		for _, member := range added {
			wantSameRequest(t, answers[what].api, answers[what].body, func() string { return "," + member })
		}
	}
	const parts = `{"model":"m","messages":[{"role":"assistant","content":[§{"type":"text","text":"Hi"}]}]}`
	wantSameRequest(t, Chat, parts, func() string { return `{"type":"thinking","thinking":[{"type":"text","text":"x"}]},` })
}

// Some providers put the model's reasoning into the ID of a call or next to it, and require it back.
func TestDecode_KeepsThoughtsOfCalls(t *testing.T) {
	id := strings.Repeat("x", 10_000)
	r := decode(t, Chat, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"`+id+`","type":"function",`+
		`"function":{"name":"f","arguments":""},"extra_content":{"google":{"thought_signature":"s"}}}]},`+
		`{"role":"tool","tool_call_id":"`+id+`","content":"y"}]}`)
	body := string(r.Encode("m", "max_tokens", 9))
	if strings.Count(body, id) != 2 || !strings.Contains(body, `"thought_signature":"s"`) {
		t.Errorf("%.100s has not the id twice and the signature once", body)
	}
}

// The estimate of an answer without a usage report includes the model's reasoning, under each name and only once.
func TestAnswer_EstimatesThoughts(t *testing.T) {
	text := strings.Repeat("word", 1000)
	for api, events := range map[API][]string{
		Chat: {`{"choices":[{"delta":{"reasoning":"%s"}}]}`, `{"choices":[{"delta":{"reasoning_content":"%s"}}]}`,
			`{"choices":[{"delta":{"reasoning_text":"%s"}}]}`, `{"choices":[{"delta":{"thinking":"%s"}}]}`,
			`{"choices":[{"delta":{"reasoning":"%[1]s","reasoning_content":"%[1]s"}}]}`},
		Messages: {`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"%s"}}`},
	} {
		for _, event := range events {
			stream, whole := NewAnswer(&Request{API: api}, 10_000), NewAnswer(&Request{API: api}, 10_000)
			data := fmt.Sprintf(event, text)
			if _, err := stream.Feed(nil, []byte("data: "+data+"\n\n")); err != nil || !whole.Whole([]byte(data)) {
				t.Fatal(err)
			}
			for how, a := range map[string]*Answer{"stream": stream, "whole": whole} {
				if out := a.Estimate(1).Out; out != 1000 {
					t.Errorf("%s, %s: estimated %d tokens, want 1000", event, how, out)
				}
			}
		}
	}
}
