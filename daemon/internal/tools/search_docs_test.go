package tools

import (
	"encoding/json"
	"testing"
)

// TestSearchDocsAnswersWithPassages asks, reads on by an id of the answer, and asks for nothing.
func TestSearchDocsAnswersWithPassages(t *testing.T) {
	c := newWorld().catalogue()
	ask := func(args string) (answer searchDocsAnswer, r Result) {
		r = c.Call(t.Context(), "searchDocs", json.RawMessage(args), IO{})
		_ = json.Unmarshal(r.Structured, &answer)
		return answer, r
	}
	first, r := ask(`{"query":"how do I show a list that scrolls","topic":"display","limit":2}`)
	if r.IsError || len(first.Passages) != 2 || first.Passages[0].ID != "display#lists" {
		t.Fatalf("%s", r.Structured)
	}
	next, _ := json.Marshal(map[string]string{"query": first.Passages[0].Next[0]})
	if second, r := ask(string(next)); len(second.Passages) == 0 || second.Passages[0].ID != first.Passages[0].Next[0] {
		t.Errorf("%s", r.Structured)
	}
	if nothing, r := ask(`{"query":"xyzzyquux"}`); r.IsError || len(nothing.Topics) == 0 || nothing.Passages == nil {
		t.Errorf("%s", r.Structured)
	}
	for _, args := range []string{`{}`, `{"query":" "}`, `{"query":"a","topic":"cooking"}`} {
		if _, r := ask(args); !r.IsError || r.Outcome != CodeInvalidArguments {
			t.Errorf("%s: %s", args, r.Structured)
		}
	}
}
