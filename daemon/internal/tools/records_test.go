package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// recordTools are the tools for records, with valid arguments.
var recordTools = map[string]map[string]any{
	"listProjects": {}, "getAssistantConfig": {}, "getCredentialStatus": {}, "getProjectAnalytics": {},
	"getGatewayUsage":         {},
	"getConnectionPageConfig": {},
	"setAssistantConfig":      {"version": 4, "voice": "slate"},
	"setCredential":           {"provider": "openai"},
	"setConnectionPageConfig": {"version": 2, "title": "New"},
}

func (w *world) record(t *testing.T, name string, more map[string]any) (Result, map[string]any) {
	t.Helper()
	args := maps.Clone(recordTools[name])
	maps.Copy(args, more)
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return w.call(t, name, string(data), IO{})
}

// Each tool asks for a link, and works once there is one.
func TestRecordTools_AreRepeatedAfterLinking(t *testing.T) {
	for name := range recordTools {
		for _, here := range []string{"com.example.app", ""} {
			w := newWorld()
			w.here = here
			c, args := w.catalogue(), recordTools[name]
			data, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			result := c.Call(t.Context(), name, data, IO{})
			if result.Outcome != "auth_required" || !strings.Contains(result.Text, testUser) || w.account.calls != 0 {
				t.Errorf("%s without a link: %s, want auth_required", name, result.Text)
			}
			result = c.Call(t.Context(), "completeAuthLink", json.RawMessage(`{"deviceCode":"`+testDevice+`"}`), IO{})
			var linked struct {
				Retried map[string]any
			}
			if err := json.Unmarshal(result.Structured, &linked); err != nil {
				t.Fatal(err)
			}
			switch {
			case here == "" && name != "listProjects":
				if hint, _ := linked.Retried["fixHint"].(string); linked.Retried["code"] != problem.CodeInvalidRequest ||
					!strings.Contains(hint, "listProjects") {
					t.Errorf("%s without a project: %v, want invalid_request", name, linked.Retried)
				}
			case linked.Retried["summary"] == "" || linked.Retried["status"] == nil || linked.Retried["code"] != nil:
				t.Errorf("%s, repeated after linking: %v, want a success", name, linked.Retried)
			}
		}
	}
}

// codeRequester has no live code, so the backend is called anonymously and refuses with a new one.
type codeRequester struct {
	*world
	refused error
}

func (k *codeRequester) Ask(ctx context.Context, target backend.Target, gated link.GatedCall,
	request func(context.Context) error) (link.Code, error) {
	k.refused = request(ctx)
	return k.world.Ask(ctx, target, gated, request)
}

func TestRecordTools_RequestACode(t *testing.T) {
	for here, asked := range map[string]string{"": unnamedProject, "com.example.other": "com.example.other"} {
		w := newWorld()
		w.here = here
		k := &codeRequester{world: w}
		r := records{gate: &gate{links: k, browser: browser{w}}, sessions: sessions{w}}
		out, err := r.run(t.Context(), call{}, recordCall{},
			func(_ context.Context, to backend.Target, project string) (any, error) {
				return nil, w.account.authorise(to, project)
			})
		if _, ok := out.(AuthRequired); !ok || err != nil || w.account.asked != asked {
			t.Errorf("directory of %q: got %v, %v; requested project %q; want auth_required", here, out, err, w.account.asked)
		}
		if p := problem.From(k.refused); p == nil || p.Code != problem.CodeAuthRequired {
			t.Errorf("directory of %q: refused with %v, want auth_required", here, k.refused)
		}
	}
}

func TestRecordTools_ReturnRefusals(t *testing.T) {
	for name := range recordTools {
		for _, test := range []struct {
			p    problem.Error
			hint string
		}{
			{problem.Error{Code: problem.CodePermissionDenied, Message: "no", Capability: "assistant_config", Field: "voice",
				Needed: "read_write", Granted: "read",
				FixHint: "Ask the owner at http://localhost:1/account/mcp-access."},
				"Do not try another way. Ask the owner at http://localhost:1/account/mcp-access"},
			{problem.Error{Code: problem.CodeVersionConflict, Message: "the config is at version 7",
				CurrentVersion: new(int64(7)),
				Retryable:      true}, "again"},
			{problem.Error{Code: problem.CodeNotConfigured, Message: "no key is set"}, "operator"},
			{problem.Error{Code: problem.CodeBackendUnreachable, Message: "no answer", Retryable: true}, "network"},
		} {
			w := newWorld().linked()
			w.account.err = &test.p
			result, fields := w.record(t, name, nil)
			hint, _ := fields["fixHint"].(string)
			if !result.IsError || fields["code"] != test.p.Code ||
				fields["retryable"] != (test.p.Retryable && (test.p.Code != problem.CodeVersionConflict ||
					name == "listProjects")) {
				t.Errorf("%s %s: %v", name, test.p.Code, fields)
			}
			if name != "listProjects" && !strings.Contains(hint, test.hint) {
				t.Errorf("%s %s: the hint is %q, want %q in it", name, test.p.Code, hint, test.hint)
			}
			switch test.p.Code {
			case problem.CodePermissionDenied:
				if fields["capability"] != "assistant_config" || fields["field"] != "voice" || fields["needed"] != "read_write" ||
					fields["granted"] != "read" {
					t.Errorf("%s: %v", name, fields)
				}
				if name != "listProjects" && !strings.Contains(fields["message"].(string),
					"assistant_config (voice) of com.example.app is Read for agents, and this needs Read + Write") {
					t.Errorf("%s: %v, want the missing grant", name, fields["message"])
				}
			case problem.CodeVersionConflict:
				if fields["currentVersion"] != 7.0 {
					t.Errorf("%s: %v", name, fields)
				}
				if strings.HasPrefix(name, "set") && strings.HasSuffix(name, "Config") &&
					!strings.Contains(hint, "Call get"+strings.TrimPrefix(name, "set")+" again") {
					t.Errorf("%s: %q", name, hint)
				}
			}
		}
		if name == "listProjects" {
			continue
		}
		w := newWorld().linked()
		if _, fields := w.record(t, name,
			map[string]any{"project": "com.example.other"}); fields["code"] != problem.CodeNotFound ||
			!strings.Contains(fields["fixHint"].(string), "listProjects") ||
			!strings.Contains(fields["message"].(string), "com.example.other") ||
			strings.Contains(fields["fixHint"].(string), "getCredentialStatus") != (name == "setCredential") {
			t.Errorf("%s for another project: %v, want not_found with the project", name, fields)
		}
		w.gated = nil
		if _, fields := newWorld().record(t, name,
			map[string]any{"project": "not-an-id"}); fields["code"] != problem.CodeInvalidRequest {
			t.Errorf("%s with an invalid app id: %v, want invalid_request", name, fields)
		}
		w = newWorld().linked()
		w.account.err = &problem.Error{Code: problem.CodeAuthRequired, Message: "the token was revoked", HTTPStatus: 401}
		if _, fields := w.record(t, name, nil); fields["status"] != "auth_required" || fields["reason"] != "revoked" {
			t.Errorf("%s with a revoked link: %v, want auth_required", name, fields)
		}
	}
}

func TestListProjects(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.record(t, "listProjects", nil)
	list, _ := fields["projects"].([]any)
	if len(list) != 1 || fields["currentProject"] != "com.example.app" ||
		!strings.Contains(fields["summary"].(string), "com.example.app") {
		t.Fatalf("listed %v", fields)
	}
	if p, _ := list[0].(map[string]any); p["project"] != "com.example.app" || p["platforms"] == nil ||
		p["access"].(map[string]any)["analytics"] != "read" {
		t.Errorf("project %v", p)
	}
	w.account.projects = nil
	if _, fields = w.record(t, "listProjects", nil); len(fields["projects"].([]any)) != 0 ||
		!strings.Contains(fields["summary"].(string), "no project") {
		t.Errorf("an empty account: %v, want no projects", fields)
	}
	for i := range 12 {
		w.account.projects = append(w.account.projects, backendapi.Project{Project: fmt.Sprintf("com.example.a%d", i),
			CreatedAt:    "2026-01-02T03:04:05.000Z",
			DashboardURL: "http://localhost:1/p", Access: backendapi.Access{Credentials: "off", Analytics: "off"}})
	}
	if _, fields = w.record(t, "listProjects", nil); !strings.Contains(fields["summary"].(string), "12 projects") ||
		!strings.Contains(fields["summary"].(string), "2 more") {
		t.Errorf("a large account: %v, want 12 projects", fields["summary"])
	}
}

func TestAssistantConfig(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.record(t, "getAssistantConfig", map[string]any{"project": "com.example.app"})
	if value, there := fields["sounds"]; !there || value != nil || fields["version"] != 4.0 ||
		fields["voice"] != "ember" {
		t.Errorf("read %v", fields)
	}
	for _, want := range []string{"voice ember", "memory within a session on", "sounds hidden from agents", "$0.061",
		"(an estimate)"} {
		if !strings.Contains(fields["summary"].(string), want) {
			t.Errorf("the summary is %q, want %q in it", fields["summary"], want)
		}
	}
	_, fields = w.record(t, "setAssistantConfig", nil)
	if fields["status"] != "changed" || fmt.Sprint(fields["changed"]) != "[voice]" || fields["version"] != 5.0 ||
		fields["voice"] != "slate" {
		t.Errorf("changed %v", fields)
	}
	if c := w.account.changed; c.Version != 4 || *c.Voice != "slate" || c.Sounds != nil || c.RealtimeModel != nil {
		t.Errorf("requested the change %+v, want version 4 and only the voice", c)
	}
	if s := fields["summary"].(string); !strings.Contains(s, "cost $0.061 before and costs $1.081 now") {
		t.Errorf("summary %q", s)
	}
	// The answer contains only changed fields, even if the call also sets a field to its current value.
	_, fields = w.record(t, "setAssistantConfig", map[string]any{"sessionMemory": true})
	for _, name := range []string{"sessionMemory", "realtimeModel", "access", "choices"} {
		if _, there := fields[name]; there || fmt.Sprint(fields["changed"]) != "[voice]" {
			t.Errorf("changed %v, but the answer contains %s", fields["changed"], name)
		}
	}
	_, fields = w.record(t, "setAssistantConfig", map[string]any{"voice": "ember"})
	if fields["status"] != "unchanged" || len(fields["changed"].([]any)) != 0 {
		t.Errorf("setting the current value: %v, want unchanged", fields)
	}
	w.record(t, "setAssistantConfig", map[string]any{"version": 0, "sounds": false, "sessionMemory": true})
	if c := w.account.changed; c.Version != 0 || *c.Sounds || !*c.SessionMemory {
		t.Errorf("requested the change %+v, want version 0, sounds and sessionMemory", c)
	}
}

func TestDescribeCost(t *testing.T) {
	if got := describeCost(backendapi.AssistantCost{Note: "no prices are set"}); got != "The cost is unknown (no "+
		"prices are set)." {
		t.Error(got)
	}
	if got := describeCost(backendapi.AssistantCost{MicroUSDPerMinute: some[int64](10_000),
		BeforeMicroUSDPerMinute: some[int64](10_000)}); got != "A minute of conversation costs $0.01, as before." {
		t.Error(got)
	}
}

func TestDescribeAssistant_Effect(t *testing.T) {
	config := backendapi.AssistantConfig{Effective: []string{"realtimeModel", "voice", "textModel"},
		Cost: backendapi.AssistantCost{RealtimeModel: &backendapi.SoundPrice{In: 19_200, Out: 76_800}, Note: "an estimate",
			BeforeRealtimeModel: &backendapi.SoundPrice{In: 10_000, Out: 20_000}}}
	got := describeAssistant(config)
	for _, want := range []string{"No effect on this backend yet: memoryModel, sessionMemory, sounds. ",
		"A minute of sound costs $0.0192 heard and $0.0768 spoken, before $0.01 heard and $0.02 spoken."} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if got := describeEffect(config, "voice"); got != "" {
		t.Errorf("got %q for a setting that has an effect", got)
	}
}

func TestCredentials(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.record(t, "getCredentialStatus", nil)
	if s := fields["summary"].(string); len(fields["credentials"].([]any)) != 2 ||
		!strings.Contains(s, "openai (...wxyz), last test: refused") || !strings.Contains(s, "Not set: google") {
		t.Errorf("status %v", fields)
	}
	_, fields = w.record(t, "setCredential", nil)
	link := "http://localhost:1/account/credentials/scl_1"
	if fields["status"] != "link" || fields["url"] != link || fields["browserOpened"] != true ||
		!slices.Equal(w.browsed, []string{link}) || fields["expiresAt"] == nil {
		t.Errorf("got %v, opened %v; want the link opened once", fields, w.browsed)
	}
	if s := fields["summary"].(string); !strings.Contains(s, "Never ask them for the value") {
		t.Errorf("summary %q", s)
	}
	w = newWorld().linked()
	if _, fields = w.record(t, "setCredential",
		map[string]any{"openBrowser": false}); fields["browserOpened"] != false || len(w.browsed) != 0 {
		t.Errorf("opened %v", w.browsed)
	}
	// A key that an agent passes by mistake is neither sent nor repeated.
	for _, key := range []string{"sk-proj-CANARY0123456789", "CANARY", "canary/../x", strings.Repeat("canary", 20)} {
		w = newWorld().linked()
		result, fields := w.record(t, "setCredential", map[string]any{"provider": key})
		if fields["code"] != problem.CodeInvalidRequest || strings.Contains(result.Text, key) || w.account.calls != 0 {
			t.Errorf("%s: %s", key, result.Text)
		}
	}
}

func TestProjectAnalytics(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.record(t, "getProjectAnalytics", nil)
	if w.account.query != (backend.AnalyticsQuery{Range: "7d"}) || fields["estimated"] != true ||
		len(fields["series"].([]any)) != 0 {
		t.Errorf("requested %+v, got %v", w.account.query, fields)
	}
	if s := fields["summary"].(string); !strings.Contains(s, "3 sessions, 2 events, 1 errors") ||
		!strings.Contains(s, "Quiet.") || !strings.Contains(s, "estimates") {
		t.Errorf("summary %q", s)
	}
	for _, test := range []struct {
		args map[string]any
		want backend.AnalyticsQuery
	}{
		{map[string]any{"range": "24h", "interval": "hour"}, backend.AnalyticsQuery{Range: "24h", Interval: "hour"}},
		{map[string]any{"from": "2026-01-02", "to": "2026-01-03T02:00:00+02:00"},
			backend.AnalyticsQuery{From: "2026-01-02T00:00:00Z", To: "2026-01-03T00:00:00Z"}},
	} {
		w.record(t, "getProjectAnalytics", test.args)
		if w.account.query != test.want {
			t.Errorf("%v requested %+v", test.args, w.account.query)
		}
	}
	for _, args := range []map[string]any{
		{"range": "1y"}, {"interval": "minute"}, {"from": "2026-01-02"}, {"to": "2026-01-02"}, {"from": "yesterday",
			"to": "2026-01-02"},
		{"range": "7d", "from": "2026-01-01", "to": "2026-01-02"}, {"from": "2026-01-02", "to": "2026-01-02"},
	} {
		if _, fields := newWorld().record(t, "getProjectAnalytics", args); fields["code"] != problem.CodeInvalidRequest {
			t.Errorf("%v: %v", args, fields)
		}
	}
}

func TestConnectionPageConfig(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.record(t, "getConnectionPageConfig", nil)
	if fields["version"] != 2.0 || fields["phrases"] == nil ||
		!strings.Contains(fields["summary"].(string), "http://localhost:1/connect/cp_1") {
		t.Errorf("read %v", fields)
	}
	_, fields = w.record(t, "setConnectionPageConfig", map[string]any{
		"phrases": []any{map[string]any{"phrase": "take a photo",
			"does": "takes one"}}, "toggles": []any{}, "capabilities": []string{"camera"}, "supportUrl": "",
	})
	if fields["status"] != "changed" || fmt.Sprint(fields["changed"]) != "[title capabilities phrases toggles "+
		"supportUrl]" || fields["version"] != 3.0 {
		t.Errorf("changed %v", fields)
	}
	if _, there := fields["theme"]; there || fields["title"] != "New" {
		t.Errorf("the answer must contain only the changed fields: %v", fields)
	}
	c := w.account.paged
	if c.Version != 2 || *c.Title != "New" || (*c.Phrases)[0].Does != "takes one" || c.Toggles == nil ||
		len(*c.Toggles) != 0 || *c.SupportURL != "" || c.Theme != nil {
		t.Errorf("requested the change %+v, want version 2 and the four fields", c)
	}
}

func TestRecordChanges_NeedAVersionAndAField(t *testing.T) {
	for name, get := range map[string]string{"setAssistantConfig": "getAssistantConfig",
		"setConnectionPageConfig": "getConnectionPageConfig"} {
		for _, args := range []string{`{"title":"x"}`, `{"voice":"x"}`, `{"version":-1,"theme":"auto"}`,
			`{"version":-1,"sounds":true}`, `{"version":3}`, `{"version":"3"}`} {
			w := newWorld()
			_, fields := w.call(t, name, args, IO{})
			if fields["code"] != problem.CodeInvalidRequest || w.gated != nil {
				t.Errorf("%s %s: %v", name, args, fields)
			}
		}
		if _, fields := newWorld().call(t, name, `{}`, IO{}); !strings.Contains(fields["fixHint"].(string), get) {
			t.Errorf("%s without a version: %v, want a hint to read it", name, fields)
		}
	}
}

// Every tool reports that the account is linked at another backend.
func TestRecordTools_ReportTheLinkOfAnotherBackend(t *testing.T) {
	w := newWorld()
	w.link = account.Link{State: account.Expired}
	if _, fields := w.record(t, "getAssistantConfig", nil); fields["reason"] != "expired" {
		t.Errorf("answered %v", fields)
	}
}

// A misnamed field of a phrase or a toggle is rejected, because its value would be lost when the whole list is
// replaced.
func TestConnectionPage_RefusesUnknownNamesInLists(t *testing.T) {
	for args, says := range map[string]string{
		`{"version":2,"project":"com.example.app","phrases":[{"phrase":"a","does":"b"},` +
			`{"phrase":"a","description":"b"}]}`: `phrases[1]: there is no argument "description"`,
		`{"version":2,"project":"com.example.app",` +
			`"toggles":[{"id":"a","label":"A","default":true}]}`: `toggles[0]: there is no argument "default"`,
		`{"version":2,"project":"com.example.app",` +
			`"toggles":["a"]}`: `toggles[0]: arguments are not a JSON object`,
	} {
		w := newWorld().linked()
		_, fields := w.call(t, "setConnectionPageConfig", args, IO{})
		if fields["code"] != problem.CodeInvalidRequest || fields["message"] != says || w.account.calls != 0 {
			t.Errorf("%s: %v after %d calls; want invalid_request and no call", args, fields, w.account.calls)
		}
	}
}
