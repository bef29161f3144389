//go:build unix

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

const app = "com.example.records"

// accountTools lists the tools for a project's records, with valid arguments. A tool that changes a record gets the
// record's version from the tool that reads it.
var accountTools = []struct {
	name, reads string // reads is the tool that returns the version
	args        map[string]any
	capability  string // empty if no grant is needed
	field       string // in the assistant's configuration
	level       string
}{
	{name: "listProjects", args: map[string]any{}},
	{name: "getAssistantConfig", capability: "assistant_config", level: "read"},
	{name: "setAssistantConfig", reads: "getAssistantConfig", args: map[string]any{"sounds": false},
		capability: "assistant_config", field: "sounds", level: "read_write"},
	{name: "getCredentialStatus", capability: "credentials", level: "read"},
	{name: "setCredential", args: map[string]any{"provider": "openai", "openBrowser": false},
		capability: "credentials", level: "read_write"},
	{name: "getProjectAnalytics", args: map[string]any{"range": "7d"}, capability: "analytics", level: "read"},
	{name: "getConnectionPageConfig"},
	{name: "setConnectionPageConfig", reads: "getConnectionPageConfig", args: map[string]any{"title": "Hello glasses"}},
	{name: "createSimulatorSession", args: map[string]any{"openBrowser": false}},
	{name: "generateConnectionModule", args: map[string]any{"language": "python"}},
}

// callRecord calls a tool for the project with the current version of its record.
func callRecord(t *testing.T, a *agent, i int, project string) toolResult {
	t.Helper()
	tool := accountTools[i]
	args := map[string]any{}
	for name, value := range tool.args {
		args[name] = value
	}
	if tool.name != "listProjects" {
		args["project"] = project
	}
	if tool.reads != "" {
		args["version"] = 0
		if now := a.call(tool.reads, map[string]any{"project": project}); !now.IsError &&
			now.Structured["version"] != nil {
			args["version"] = now.Structured["version"]
		}
	}
	return a.call(tool.name, args)
}

// linkAgent signs up a new user, who links the agent's install. It returns the user's browser, which does not run
// scripts.
func linkAgent(t *testing.T, a *agent, email string) *person {
	t.Helper()
	return linkAgentOf(t, a, newPerson(t), email)
}

func linkAgentOf(t *testing.T, a *agent, someone *person, email string) *person {
	t.Helper()
	asked := a.call("listProjects", map[string]any{})
	someone.approve(asked.str(t, "verificationUrl"), email)
	linked := a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	if linked.Structured["linked"] != true {
		t.Fatalf("linkAgent: completeAuthLink did not link: %v", linked.Structured)
	}
	return someone
}

// Every account tool works over service-mcp against a real backend, unlinked and linked, with and without grants, on
// both databases. A grant changed in the dashboard applies to the next call.
func TestAccountTools(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "service.db") },
		"postgres": newPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBackend(t, database(t))
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
			a := startAgent(w, "modern", false)
			for i, tool := range accountTools {
				r := callRecord(t, a, i, app)
				if r.IsError || r.str(t, "status") != "auth_required" || r.str(t, "userCode") == "" ||
					r.str(t, "verificationUrl") == "" {
					t.Errorf("%s, unlinked: got %v, want auth_required with a user code and URL", tool.name, r.Structured)
				}
			}
			owner := linkAgent(t, a, "owner@example.org")
			for i, tool := range accountTools {
				if tool.name == "createSimulatorSession" || tool.name == "generateConnectionModule" ||
					tool.name == "listProjects" {
					continue
				}
				if r := callRecord(t, a, i, app); !r.IsError || r.str(t, "code") != "not_found" ||
					r.str(t, "fixHint") == "" {
					t.Errorf("%s, unknown project: got %v, want not_found with a fixHint", tool.name, r.Structured)
				}
			}
			if s := a.call("createSimulatorSession", map[string]any{"project": app, "openBrowser": false}); s.IsError {
				t.Fatalf("create the project: %v", s.Structured)
			}
			for i, tool := range accountTools {
				r := callRecord(t, a, i, app)
				if r.IsError || r.str(t, "summary") == "" {
					t.Errorf("%s, granted: got %v, want a result with a summary", tool.name, r.Structured)
				}
			}
			grantsInTheDashboard(t, b, a)
			recordsOfOthers(t, b, owner)
		})
	}
}

// grantsInTheDashboard sets each grant to Off and back in Chromium, and calls every tool after each change.
func grantsInTheDashboard(t *testing.T, b *remoteBackend, a *agent) {
	browser := newBrowser(t)
	run(t, browser, "sign in", chromedp.Navigate(b.url+"/signin?next=/account/mcp-access"),
		chromium.Type("input[name=email]", "owner@example.org"), chromium.Type("input[name=password]",
			password),
		chromedp.Submit("input[name=email]"), until(`location.pathname === "/account/mcp-access"`))
	picture(t, browser, "access")
	for _, level := range []string{"off", "read", "read_write"} {
		setEveryGrant(t, browser, level)
		for i, tool := range accountTools {
			r := callRecord(t, a, i, app)
			allowed := tool.capability == "" || slices.Index(levels, level) >= slices.Index(levels, tool.level)
			switch {
			case allowed && r.IsError:
				t.Errorf("%s with grant %s: got %v, want success", tool.name, level, r.Structured)
			case !allowed && (!r.IsError || r.str(t, "code") != "permission_denied" ||
				r.str(t, "capability") != tool.capability ||
				r.str(t, "needed") != tool.level || r.str(t, "granted") != level || r.str(t, "fixHint") == ""):
				t.Errorf("%s with grant %s: got %v, want permission_denied that names the grant", tool.name, level, r.Structured)
			}
		}
	}
}

var levels = []string{"off", "read", "read_write"}

// setEveryGrant selects the level in every radio group of the project's form and saves.
func setEveryGrant(t *testing.T, browser context.Context, level string) {
	t.Helper()
	run(t, browser, "set every grant to "+level, chromedp.WaitVisible("form input[type=radio]"),
		until(fmt.Sprintf(`(() => { const all = [...document.querySelectorAll('main form input[type=radio][value=%s]')]; all.forEach(r => r.click()); return all.length >= 7 && all.every(r => r.checked) })()`, level)),
		until(`(() => { window.before = true; document.querySelector('main form input[type=radio]').form.requestSubmit(); return true })()`),
		until(`document.readyState === "complete" && !window.before && location.pathname === "/account/mcp-access"`))
}

// recordsOfOthers checks that every tool reports another account's project as not found.
func recordsOfOthers(t *testing.T, b *remoteBackend, _ *person) {
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
	a := startAgent(w, "legacy", false)
	linkAgent(t, a, "other@example.org")
	for i, tool := range accountTools[1:8] {
		theirs, missing := callRecord(t, a, i+1, app), callRecord(t, a, i+1, "com.example.missin0")
		if !theirs.IsError || theirs.str(t, "code") != "not_found" {
			t.Errorf("%s, another account's project: got %v, want not_found", tool.name, theirs.Structured)
		}
		if one, two := fmt.Sprint(theirs.Structured), strings.ReplaceAll(fmt.Sprint(missing.Structured),
			"com.example.missin0", app); one != two {
			t.Errorf("%s distinguishes another account's project from a missing one:\n%s\n%s", tool.name, one, two)
		}
	}
	if r := a.call("listProjects", map[string]any{}); r.IsError || len(r.Structured["projects"].([]any)) != 0 {
		t.Errorf("listProjects in another account: got %v, want an empty list", r.Structured)
	}
}
