package tools

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// asksForApproval is the rule by which an unattended client refuses a call: the tool is destructive, or changes data
// outside the server's own world.
func asksForApproval(a Annotations) bool {
	return a.Destructive || !a.ReadOnly && a.OpenWorld
}

// TestTools_OnlyChangesForOtherPeopleNeedApproval checks that unattended clients can call every tool on the account's
// own sessions.
func TestTools_OnlyChangesForOtherPeopleNeedApproval(t *testing.T) {
	var asks []string
	for _, tool := range newWorld().catalogue().List() {
		if asksForApproval(tool.Annotations) {
			asks = append(asks, tool.Name)
		}
	}
	// The changes made by these two are visible to everyone who uses the shipped app.
	if want := []string{"setAssistantConfig", "setConnectionPageConfig"}; !slices.Equal(asks, want) {
		t.Errorf("tools that need approval: %v, want %v", asks, want)
	}
}

func TestTools_ReadersAreReadOnly(t *testing.T) {
	for _, tool := range newWorld().catalogue().List() {
		looks := strings.HasPrefix(tool.Name, "get") || strings.HasPrefix(tool.Name, "list") ||
			strings.HasPrefix(tool.Name, "search")
		looks = looks && tool.Name != "getCodeExample" // with dir it writes files
		if looks && !tool.Annotations.ReadOnly {
			t.Errorf("%s is not marked read-only", tool.Name)
		}
	}
}

func TestCompact_RemovesDescriptions(t *testing.T) {
	for _, tool := range newWorld().catalogue().List() {
		short := Compact(tool.OutputSchema)
		var top struct{ Properties map[string]any }
		if err := json.Unmarshal(short, &top); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(short, []byte(`"description":"`)) || top.Properties["fixHint"] != nil ||
			top.Properties["verificationUrl"] != nil {
			t.Errorf("%s: %s", tool.Name, short)
		}
		if !bytes.Contains(short, []byte(`"summary":{"type":"string"}`)) {
			t.Errorf("%s: its own fields were removed: %s", tool.Name, short)
		}
	}
}

// TestCompact_KeepsPropertyNames checks that Compact keeps properties whose names are keywords that it
// removes elsewhere.
func TestCompact_KeepsPropertyNames(t *testing.T) {
	got := string(Compact(json.RawMessage(`{"type":"object",
		"properties":{
			"description":{"type":"string","description":"x"},
			"properties":{"type":"string"},
			"list":{"type":"array","items":{"type":"object","description":"y","properties":{"deep":{"type":"string"}}}},
			"code":{"type":"string"}},
		"anyOf":[{"required":["list"]}]}`)))
	want := `{"properties":{"description":{"type":"string"},` +
		`"list":{"type":"array"},"properties":{"type":"string"}},"type":"object"}`
	if got != want {
		t.Errorf("compacted to %s, want only properties and types", got)
	}
}

func TestToolset_LocalOmitsTheAccount(t *testing.T) {
	var left []string
	for _, tool := range newWorld().catalogue().List() {
		if !tool.In(ToolsetAll) {
			t.Errorf("%s belongs to no toolset", tool.Name)
		}
		if !tool.In(ToolsetLocal) {
			left = append(left, tool.Name)
		}
		if tool.NeedsAccount && tool.In(ToolsetLocal) {
			t.Errorf("%s is in the local toolset but needs an account", tool.Name)
		}
	}
	for _, name := range []string{"createSimulatorSession", "completeAuthLink", "generateConnectionModule",
		"listProjects", "whoAmI"} {
		if !slices.Contains(left, name) {
			t.Errorf("the local toolset contains %s", name)
		}
	}
	for _, name := range []string{"startLocalSimulation", "getDisplayState", "recordSession", "searchDocs"} {
		if slices.Contains(left, name) {
			t.Errorf("the local toolset does not contain %s", name)
		}
	}
}

func TestCloseSession_ClosesTheDirectorysLastSession(t *testing.T) {
	w := newWorld().linked() // a session of another directory is open
	if result, fields := w.call(t, "closeSession", `{}`, IO{}); !result.IsError ||
		fields["code"] != problem.CodeNotFound {
		t.Errorf("closing a session of another directory: %v, want a refusal", fields)
	}
	if _, fields := w.locally().call(t, "closeSession", `{}`, IO{}); fields["status"] != "closed" ||
		fields["sessionId"] != testLocal {
		t.Errorf("closing the directory's own session: %v, want closed", fields)
	}
	if _, fields := w.call(t, "closeSession", `{"sessionId":"`+testID+`"}`, IO{}); fields["sessionId"] != testID {
		t.Errorf("closing a named session: %v, want closed", fields)
	}
}

// The table in README.md lists each tool exactly once.
func TestReadme_ListsEachTool(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			listed = append(listed, strings.Trim(name, " `"))
		}
	}
	var want []string
	for _, tool := range newWorld().catalogue().List() {
		want = append(want, tool.Name)
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the table of tools in README.md lists\n%v, want\n%v", listed, want)
	}
}

// The table of test/e2e, which checks who may call which tool, has a row for each tool.
func TestAuthorisation_ListsEachTool(t *testing.T) {
	table, err := os.ReadFile("../../../test/e2e/testdata/authorisation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range newWorld().catalogue().List() {
		if !strings.Contains(string(table), "\n| "+tool.Name+" | ") {
			t.Errorf("test/e2e/testdata/authorisation.md has no row for %s", tool.Name)
		}
	}
}
