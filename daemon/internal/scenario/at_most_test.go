package scenario

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// A scenario limits numbers of a row, such as the time to the first sound of an answer.
func TestExpect_AtMost(t *testing.T) {
	const said = `{"text":"It is on the list.","afterMs":400,"audioMs":1080,"afterSpeechMs":1100}`
	for name, c := range map[string]struct{ payload, atMost, row, want string }{
		"equal":             {"", `{"afterSpeechMs":1100}`, said, ""},
		"less":              {`{"audioMs":1080}`, `{"afterSpeechMs":2000,"afterMs":400}`, said, ""},
		"more":              {"", `{"afterSpeechMs":1099}`, said, "payload.afterSpeechMs must be at most 1099, not 1100"},
		"of the first":      {"", `{"afterMs":1,"afterSpeechMs":1}`, said, "payload.afterMs must be"},
		"another payload":   {`{"audioMs":1}`, `{"afterMs":400}`, said, "payload.audioMs"},
		"fraction":          {"", `{"ms":1}`, `{"ms":1.5}`, "must be at most 1, not 1.5"},
		"missing":           {"", `{"ms":1}`, `{}`, "payload.ms is missing"},
		"not a number":      {"", `{"text":1}`, said, "payload.text must be a number"},
		"null":              {"", `{"ms":1}`, `{"ms":null}`, "must be a number, not null"},
		"not an object":     {"", `{"ms":1}`, `[]`, "payload.ms is missing"},
		"without a payload": {"", `{"ms":1}`, ``, "payload.ms is missing"},
	} {
		e := scenario.Expect{Type: "assistant.said", Payload: json.RawMessage(c.payload)}
		if err := json.Unmarshal([]byte(c.atMost), &e.AtMost); err != nil {
			t.Fatal(err)
		}
		got := mismatch(&e, glasses.Event{Type: "assistant.said", Payload: json.RawMessage(c.row)})
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	e := scenario.Expect{Type: "assistant.said", AtMost: map[string]int64{"afterSpeechMs": 800}}
	if got := described(&e); got != "assistant.said with afterSpeechMs of at most 800" {
		t.Errorf("got %q", got)
	}
}
