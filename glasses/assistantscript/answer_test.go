package assistantscript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const tools = `"tools":[{"type":"function","function":{"name":"add_item"}},` +
	`{"type":"function","function":{"name":"show_list"}}]`

// asks returns a request with the given messages. A message that is not a JSON object becomes a user message with
// that text.
func asks(messages ...string) string {
	for i, m := range messages {
		if !strings.HasPrefix(m, "{") {
			messages[i] = `{"role":"user","content":"` + m + `"}`
		}
	}
	return `{"model":"assistant","messages":[` + strings.Join(messages, ",") + `],` + tools + `}`
}

const called = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",` +
	`"function":{"name":"add_item","arguments":"{}"}}]}`

func result(text string) string {
	return `{"role":"tool","tool_call_id":"call_1","content":"` + text + `"}`
}

func answered(t *testing.T, body string) Answer {
	t.Helper()
	r, err := ParseRequest([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return parsed(t, shopping).Answer(r)
}

const noRule = "script_no_rule: no rule of the assistant script matches what the user said: " +
	`add one, or a last one with when {"always": true}`

func notOffered(rule int, tool string) string {
	return fmt.Sprintf("script_tool_not_offered: rules[%d] of the assistant script calls %s, "+
		"which the request does not offer", rule, tool)
}

func TestAnswer_IsThatOfTheFirstRuleThatMatches(t *testing.T) {
	for body, want := range map[string]string{
		asks("Hello there"):                                "Grüße aus der Küche.",
		asks("please add MILK"):                            `call_1 add_item {"item":"milk"}`,
		asks("Egg and butter"):                             `call_1 add_item {"item":"eggs"}; call_2 show_list {}`,
		asks("alone"):                                      notOffered(6, "call_taxi"),
		asks("poor"):                                       "no_credit: no money",
		asks("broken"):                                     "provider_busy: the model's provider is busy: try again",
		asks("Good morning Hello"):                         noRule,
		asks("add milk", called, result("ok")):             "Done, it is on the list.",
		asks("add milk", called, result("it is FULL")):     "The list is full.",
		asks("add milk", called, result("ok"), "add milk"): `call_2 add_item {"item":"milk"}`,
		asks("add milk", `{"role":"assistant","content":"?"}`, "x"):                             noRule,
		asks(`{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"image_url"}]}`): "Grüße aus der Küche.",

		strings.Replace(asks("add milk"), `"tools"`, `"tool_choice":"none","tools"`, 1): notOffered(0, "add_item"),
	} {
		a := answered(t, body)
		got := a.Text
		if a.Failure != nil {
			got = a.Failure.Code + ": " + a.Failure.Message
		}
		var calls []string
		for _, c := range a.Calls {
			calls = append(calls, c.ID+" "+c.Name+" "+c.Arguments)
		}
		if got += strings.Join(calls, "; "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestAnswer_HasTheDelayOfItsRule(t *testing.T) {
	if a := answered(t, asks("eggs and bread")); a.Delay != 1500*time.Millisecond {
		t.Errorf("got delay %v, want 1.5 s", a.Delay)
	}
	if a := answered(t, asks("poor")); a.Delay != 10*time.Millisecond || a.Failure.Status != 402 {
		t.Errorf("unexpected answer %+v", a)
	}
}

func TestParseRequest_RefusesWhatNoModelCouldAnswer(t *testing.T) {
	for body, want := range map[string]string{
		`{`:                                      "invalid_json",
		`{"model":"script","model":"assistant"}`: "invalid_json",
		`{"model":5}`:                            "invalid_value",
		`{"model":"gpt-4o"}`:                     "model_not_found",
		`{"model":"script"}`:                     "invalid_value",
		asks(`{"role":"wizard"}`):                "invalid_value",
		asks(called):                             "invalid_value",
		asks(result("nobody asked")):             "invalid_value",
		asks(`{"role":"user","content":5}`):      "invalid_value",
	} {
		_, err := ParseRequest([]byte(body))
		var failure *Failure
		if !errors.As(err, &failure) || failure.Code != want {
			t.Errorf("%s: got error %v, want %s", body, err, want)
		}
	}
}

func TestCompletion_HasTheShapeOfTheInterface(t *testing.T) {
	text := answered(t, asks("Hello"))
	if got, want := string(text.Completion("c1", 7)), `{"id":"c1","object":"chat.completion","created":7,`+
		`"model":"script","choices":[{`+
		`"index":0,"message":{"role":"assistant","content":"Grüße aus der Küche.","refusal":null},`+
		`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":6,`+
		`"total_tokens":8}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	calls := answered(t, asks("add milk"))
	if got, want := string(calls.Completion("c1", 7)), `{"id":"c1","object":"chat.completion","created":7,`+
		`"model":"script","choices":[{`+
		`"index":0,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_1",`+
		`"type":"function","function":{"name":"add_item","arguments":"{\"item\":\"milk\"}"}}]},"logprobs":null,`+
		`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2,"completion_tokens":6,`+
		`"total_tokens":8}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// joined reads a stream as clients do, by joining its parts.
func joined(t *testing.T, events [][]byte) (text, calls, reasons string, usage *Usage) {
	t.Helper()
	for i, e := range events {
		data, ok := strings.CutPrefix(strings.TrimSuffix(string(e), "\n\n"), "data: ")
		if !ok || (data == "[DONE]") != (i == len(events)-1) {
			t.Fatalf("unexpected event %d: %q", i, e)
		}
		var c chunk
		if data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil || c.Object != "chat.completion.chunk" || c.ID != "c1" {
			t.Fatalf("invalid event %d: %q: %v", i, e, err)
		}
		if c.Usage != nil {
			usage = c.Usage
		}
		for _, choice := range c.Choices {
			if choice.Delta.Content != nil {
				text += *choice.Delta.Content
			}
			for _, call := range choice.Delta.ToolCalls {
				calls += call.ID + call.Function.Name + call.Function.Arguments
			}
			if choice.FinishReason != nil {
				reasons += *choice.FinishReason
			}
		}
	}
	return text, calls, reasons, usage
}

func TestEvents_JoinToTheAnswer(t *testing.T) {
	hello := answered(t, asks("Hello"))
	text, calls, reasons, usage := joined(t, hello.Events("c1", 7, true))
	if text != hello.Text || calls != "" || reasons != "stop" || usage == nil || *usage != hello.Usage {
		t.Errorf("unexpected text stream: %q %q %q %v", text, calls, reasons, usage)
	}
	eggs := answered(t, asks("eggs and bread"))
	text, calls, reasons, usage = joined(t, eggs.Events("c1", 7, false))
	const both = `call_1add_item{"item":"eggs"}call_2show_list{}`
	if text != "" || calls != both || reasons != "tool_calls" || usage != nil {
		t.Errorf("unexpected stream of tool calls: %q %q %q %v", text, calls, reasons, usage)
	}
}
