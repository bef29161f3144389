package tools

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/internal/problem"
)

// TestSearchDocs_ReturnsPassages asks a question, follows an id from the answer, and asks a question without an
// answer.
func TestSearchDocs_ReturnsPassages(t *testing.T) {
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
	if second, r := ask(string(next)); len(second.Passages) != 1 || second.Passages[0].ID != first.Passages[0].Next[0] {
		t.Errorf("%s", r.Structured)
	}
	// The topic of the first question does not hide a passage of another topic.
	if other, r := ask(`{"query":"errors#errors-of-account-tools","topic":"display"}`); len(other.Passages) != 1 ||
		other.Passages[0].ID != "errors#errors-of-account-tools" {
		t.Errorf("%s", r.Structured)
	}
	if overview, r := ask(`{"topic":"getting_started"}`); len(overview.Passages) < 2 ||
		overview.Passages[0].ID != "getting-started" {
		t.Errorf("%s", r.Structured)
	}
	if page, r := ask(`{"query":"scenario-steps"}`); len(page.Passages) < 6 || page.Passages[5].Page != "scenario-steps" {
		t.Errorf("%s", r.Structured)
	}
	if page, r := ask(`{"query":"scenario-steps","limit":1}`); len(page.Passages) != 1 || len(page.Passages[0].Next) < 5 {
		t.Errorf("%s", r.Structured)
	}
	if _, r := ask(`{"query":"display#list"}`); r.Outcome != problem.CodeInvalidRequest ||
		!strings.Contains(string(r.Structured), "display#lists") {
		t.Errorf("%s", r.Structured)
	}
	for _, query := range []string{"scenarios-steps", "scenorio-stebs"} {
		if other, r := ask(`{"query":"` + query + `"}`); !strings.HasPrefix(other.Summary, "No page has the id") ||
			!strings.Contains(other.Summary, `"scenario-steps"`) {
			t.Errorf("%s", r.Structured)
		}
	}
	if nothing, r := ask(`{"query":"xyzzyquux"}`); r.IsError || len(nothing.Topics) == 0 || nothing.Passages == nil {
		t.Errorf("%s", r.Structured)
	}
	long := strings.Repeat("ä", 500)
	if _, r := ask(`{"query":"` + long + `"}`); r.IsError {
		t.Errorf("the longest query: %s, want no error", r.Structured)
	}
	for _, args := range []string{`{}`, `{"query":" "}`, `{"query":"` + long + `x"}`,
		`{"query":"a","topic":"cooking"}`} {
		if _, r := ask(args); !r.IsError || r.Outcome != problem.CodeInvalidRequest {
			t.Errorf("%s: %s", args, r.Structured)
		}
	}
}

// TestDocs_NameToolsThatExist checks that the documentation names every tool, and no others.
func TestDocs_NameToolsThatExist(t *testing.T) {
	known := map[string]bool{
		// Not tools: words of JavaScript, fields of a credential, an argument and steps of scenarios.
		"setTimeout": true, "setAt": true, "setBy": true, "closePrevious": true, "expectNothingClipped": true,
		"expectMemory": true,
	}
	var all strings.Builder
	for _, p := range docs.Pages() {
		all.WriteString(p.Markdown)
	}
	for _, tool := range newWorld().catalogue().List() {
		known[tool.Name] = true
		if !strings.Contains(all.String(), tool.Name) {
			t.Errorf("no page names the tool %s", tool.Name)
		}
	}
	toolLike := regexp.MustCompile("`((?:get|set|inject|start|create|generate|search|" +
		"validate|inspect|record|replay|close|waitFor|expect|advance|complete|connect)[A-Z][A-Za-z]*)`")
	for _, p := range docs.Pages() {
		for _, word := range toolLike.FindAllStringSubmatch(p.Markdown, -1) {
			if !known[word[1]] {
				t.Errorf("%s names the tool %s, which does not exist", p.ID, word[1])
			}
		}
	}
}
