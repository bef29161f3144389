package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/telemetry"
)

var update = flag.Bool("update", false, "rewrite the schema snapshots")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTools_MatchSnapshots compares everything that agents read about each tool with testdata; -update rewrites it.
func TestTools_MatchSnapshots(t *testing.T) {
	for _, tool := range newWorld().catalogue().List() {
		data, err := json.MarshalIndent(tool, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, '\n')
		path := filepath.Join("testdata", tool.Name+".json")
		if *update {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != string(want) {
			t.Errorf("%s has changed (-snapshot +now); review it, then run the test with -update\n%s", tool.Name,
				cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(data), "\n")))
		}
	}
}

func TestTools_AreDescribed(t *testing.T) {
	list := newWorld().catalogue().List()
	for _, tool := range list {
		if n := len(tool.Description); n == 0 || n >= 1000 {
			t.Errorf("%s: the description has %d characters, want fewer than 1000", tool.Name, n)
		}
		if tool.Title == "" {
			t.Errorf("%s has no title", tool.Name)
		}
		sibling := false
		for _, other := range list {
			sibling = sibling || other.Name != tool.Name && strings.Contains(tool.Description, other.Name)
		}
		if !sibling {
			t.Errorf("%s: the description names no other tool", tool.Name)
		}
		var in struct {
			Type   string `json:"type"`
			Closed *bool  `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tool.InputSchema, &in); err != nil || in.Type != "object" || in.Closed == nil ||
			*in.Closed {
			t.Errorf("%s: got input schema %s, want a closed object", tool.Name, tool.InputSchema)
		}
		if strings.Contains(string(tool.OutputSchema)+string(tool.InputSchema), `"type":[`) {
			t.Errorf("%s: want no list of types in the schemas, because some clients reject it", tool.Name)
		}
		if tool.NeedsAccount && !strings.Contains(string(tool.OutputSchema), `"auth_required"`) {
			t.Errorf("%s: its schema does not say that it may ask for a link", tool.Name)
		}
	}
}

// TestSchemas_SayWhatIdsLookLike checks that an agent need not guess the id of a model or an app in its first call.
func TestSchemas_SayWhatIdsLookLike(t *testing.T) {
	for tool, argument := range map[string]string{"getCapabilityGuide": "deviceModel",
		"startLocalSimulation": "deviceModel", "setDevice": "deviceModel"} {
		if got := argumentOf(t, tool, argument); !slices.Equal(got.Enum, glasses.ModelIDs()) {
			t.Errorf("%s of %s accepts %v, want the model ids", argument, tool, got.Enum)
		}
	}
	for _, tool := range []string{"startLocalSimulation", "createSimulatorSession", "generateConnectionModule"} {
		if got := argumentOf(t, tool, "project"); !strings.Contains(got.Description, "com.example.app") {
			t.Errorf("project of %s is described as %q, want an example of an id", tool, got.Description)
		}
	}
}

// argumentOf returns an argument of a tool's input schema.
func argumentOf(t *testing.T, tool, argument string) (found struct {
	Description string
	Enum        []string
}) {
	t.Helper()
	list := newWorld().catalogue().List()
	i := slices.IndexFunc(list, func(one Tool) bool { return one.Name == tool })
	var schema struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(list[i].InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(schema.Properties[argument], &found); err != nil {
		t.Fatalf("argument %s of %s: %v", argument, tool, err)
	}
	return found
}

func TestDescriptions_AreOfToolsThatExist(t *testing.T) {
	if n, want := len(descriptions())-1, len(newWorld().catalogue().List()); n != want { // without the page's heading
		t.Errorf("%d descriptions for %d tools", n, want)
	}
}

func TestCall_RefusesWrongArguments(t *testing.T) {
	for _, test := range []struct{ tool, args, mention string }{
		{"createSimulatorSession", `{"projekt":"a.b"}`, "projekt"},
		{"createSimulatorSession", `{"Project":"a.b"}`, "Project"},
		{"createSimulatorSession", `{"fresh":"yes"}`, "fresh"},
		{"createSimulatorSession", `[]`, "object"},
		{"createSimulatorSession", `{"project":7}`, "project"},
		{"completeAuthLink", `{}`, "deviceCode"},
		{"completeAuthLink", `{"deviceCode":"x","maxWaitSeconds":1.5}`, `"maxWaitSeconds" is not an integer`},
		{"completeAuthLink", `{"deviceCode":"x","maxWaitSeconds":"600"}`, "integer"},
		{"getEventLog", `{"since":"now"}`, `"since" is not an integer`},
		{"whoAmI", `{"verbose":true}`, "verbose"},
	} {
		w := newWorld().linked()
		result, fields := w.call(t, test.tool, test.args, IO{})
		if !result.IsError || fields["code"] != problem.CodeInvalidRequest || fields["retryable"] != false {
			t.Errorf("%s %s: %v", test.tool, test.args, fields)
		}
		if message, _ := fields["message"].(string); !strings.Contains(message, test.mention) {
			t.Errorf("%s %s: %q does not mention %q", test.tool, test.args, message, test.mention)
		}
		if w.gated != nil || len(w.browsed) > 0 {
			t.Errorf("%s %s: the call had an effect before its arguments were refused", test.tool, test.args)
		}
	}
	if result, fields := newWorld().call(t, "nope", `{}`, IO{}); !result.IsError || fields["code"] != "unknown_tool" {
		t.Errorf("calling an unknown tool: %v, want unknown_tool", fields)
	}
}

func TestCall_WithoutArguments(t *testing.T) {
	for _, args := range []string{"", "null", "{}", " { } "} {
		if result, fields := newWorld().linked().call(t, "getSessionStatus", args, IO{}); result.IsError {
			t.Errorf("%q: %v", args, fields)
		}
	}
}

func TestCall_RecordsNoContent(t *testing.T) {
	w := newWorld()
	w.call(t, "createSimulatorSession", `{}`, IO{})
	w.call(t, "whoAmI", `{}`, IO{})
	w.call(t, "secret-tool-name", `{}`, IO{})
	want := []string{"createSimulatorSession auth_required", "whoAmI ok"}
	for i, event := range w.events {
		if got := fmt.Sprint(event["tool"], " ", event["outcome"]); event["event"] != telemetry.ToolCalled ||
			event["client"] != "agent" || got != want[i] {
			t.Errorf("event %d is %v", i, event)
		}
		for _, value := range event {
			if text := fmt.Sprint(value); strings.Contains(text, testUser) || strings.Contains(text, testDevice) {
				t.Errorf("event %d contains a code: %v", i, event)
			}
		}
	}
	if len(w.events) != len(want) {
		t.Errorf("%d events, want one per call", len(w.events))
	}
}

func TestCall_ReturnsBackendErrors(t *testing.T) {
	for _, p := range []*problem.Error{
		{Code: problem.CodeBackendUnreachable, Message: "the backend cannot be reached", Retryable: true},
		{Code: problem.CodeNotFound, Message: "there is no such session"},
		{Code: problem.CodeRateLimited, Message: "too many requests", Retryable: true, FixHint: "wait 7 seconds"},
		{Code: "permission_denied", Message: "the grant for analytics is off"},
	} {
		for _, tool := range []string{"createSimulatorSession", "getSessionStatus", "getEventLog"} {
			w := newWorld().linked()
			w.sessionErr = p
			result, fields := w.call(t, tool, `{}`, IO{})
			if !result.IsError || fields["code"] != p.Code || fields["retryable"] != p.Retryable ||
				fields["message"] != p.Message {
				t.Errorf("%s: %v", tool, fields)
			}
			if p.FixHint != "" && fields["fixHint"] != p.FixHint {
				t.Errorf("%s: the fix hint is %v, want the backend's", tool, fields["fixHint"])
			}
		}
	}
}
