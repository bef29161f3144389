package tools

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/docs"
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
	long := strings.Repeat("ä", 500)
	if _, r := ask(`{"query":"` + long + `"}`); r.IsError {
		t.Errorf("the longest query: %s", r.Structured)
	}
	for _, args := range []string{`{}`, `{"query":" "}`, `{"query":"` + long + `x"}`, `{"query":"a","topic":"cooking"}`} {
		if _, r := ask(args); !r.IsError || r.Outcome != CodeInvalidArguments {
			t.Errorf("%s: %s", args, r.Structured)
		}
	}
}

// TestDocsNameToolsThatExist holds the documentation against the catalogue. What is not built yet is named where a page
// says so.
func TestDocsNameToolsThatExist(t *testing.T) {
	known := map[string]bool{
		"getAssistantConfig": true, "setAssistantConfig": true, "getGatewayUsage": true, "setCredential": true, "getCredentialStatus": true,
		"generateConnectionModule": true, "validateIntegration": true, "inspectIntegration": true, "getCodeExample": true,
		"setTimeout": true, "setAt": true, "setBy": true, // not tools: of JavaScript, and fields of a credential
	}
	for _, tool := range newWorld().catalogue().List() {
		known[tool.Name] = true
	}
	toolLike := regexp.MustCompile("`((?:get|set|inject|start|create|generate|search|validate|inspect|record|replay|close|waitFor|expect|advance|complete|connect)[A-Z][A-Za-z]*)`")
	for _, p := range docs.Pages() {
		for _, word := range toolLike.FindAllStringSubmatch(p.Markdown, -1) {
			if !known[word[1]] {
				t.Errorf("%s names the tool %s, which does not exist", p.ID, word[1])
			}
		}
	}
}
