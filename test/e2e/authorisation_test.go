//go:build unix

package e2e

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden tables")

// toolArguments maps each tool that needs arguments to those that succeed if the caller is authorised. {session} is a
// browser session of the owner.
var toolArguments = map[string]map[string]any{
	"getCapabilityGuide": {"capability": "display"}, "getPermissions": {"platform": "web"},
	"searchDocs": {"query": "photo"}, "getCodeExample": {"language": "python", "topic": "hello"},
	"generateConnectionModule": {"language": "python", "project": app},
	"startLocalSimulation":     {"project": "com.example.local"},
	"connectRealDevice":        {"project": "com.example.real", "timeoutSeconds": 1},
	"createSimulatorSession":   {"project": app, "openBrowser": false},
	"completeAuthLink":         {"deviceCode": "sdc_unknown", "maxWaitSeconds": 1},
	"getSessionStatus":         {"sessionId": "{session}"},
	"getEventLog":              {"sessionId": "{session}"},
	"waitForEvent": {"sessionId": "{session}", "type": "session.opened", "since": 0,
		"timeoutSeconds": 1},
	"closeSession":     {"sessionId": "{session}"},
	"getDisplayState":  {"sessionId": "{session}"},
	"expectDisplay":    {"sessionId": "{session}", "text": []string{"x"}, "withinMs": 0},
	"injectInput":      {"sessionId": "{session}", "kind": "tap"},
	"injectTranscript": {"sessionId": "{session}", "text": "hello"},
	"injectSensor":     {"sessionId": "{session}", "state": map[string]any{"worn": true}},
	"injectFault":      {"sessionId": "{session}", "command": "camera.photo", "code": "timeout"},
	"setDevice":        {"sessionId": "{session}", "deviceModel": "even_g1"},
	"advanceTime":      {"sessionId": "{session}", "ms": 1},
	"runSteps":         {"sessionId": "{session}", "steps": []any{map[string]any{"advance": 1}}},
	"recordSession":    {"sessionId": "{session}", "dir": "recording"},
	"replaySession":    {"sessionId": "{session}", "file": "recording.json"},

	"getAssistantConfig":      {"project": app},
	"setAssistantConfig":      {"project": app, "version": "{version}", "sounds": true},
	"getCredentialStatus":     {"project": app},
	"setCredential":           {"project": app, "provider": "openai", "openBrowser": false},
	"getGatewayUsage":         {"project": app},
	"getProjectAnalytics":     {"project": app},
	"getConnectionPageConfig": {"project": app},
	"setConnectionPageConfig": {"project": app, "version": "{version}", "title": "x"},
}

// For every tool, the outcome matches the table in testdata/authorisation.md for callers that are unlinked, of
// another account, revoked, suspended, or the owner at each grant level. closeSession comes last because the other
// tools need the session.
func TestToolAuthorisation(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "service.db")
	b := startBackend(t, database)
	machine := func() *world { return newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1") }

	owner := startAgent(machine(), "modern", false)
	someone := linkAgent(t, owner, "owner@example.org")
	session := owner.call("createSimulatorSession", map[string]any{"project": app, "openBrowser": false}).str(t,
		"sessionId")

	columns := []string{"not linked", "other account", "revoked", "suspended", "owner, grants off",
		"owner, grants read", "owner, read_write"}
	rows := map[string][]string{}
	ask := func(a *agent) {
		for _, name := range toolNames(t, a) {
			if name == "closeSession" && a == owner {
				rows[name] = append(rows[name], "-")
				continue
			}
			filled := map[string]any{}
			for k, v := range toolArguments[name] {
				switch v {
				case "{session}":
					v = session
				case app:
					if a != owner && (name == "createSimulatorSession" || name == "generateConnectionModule") {
						v = "com.example.mine" // otherwise they would own the project too, because ids are unique only within an account
					}
				case "{version}":
					v = 0
					if now := a.call(strings.Replace(name, "set", "get", 1),
						map[string]any{"project": app}); now.Structured["version"] != nil {
						v = now.Structured["version"]
					}
				}
				filled[k] = v
			}
			outcome := outcomeOf(a.call(name, filled))
			if outcome == "invalid_request" {
				t.Errorf("%s needs arguments: add them to toolArguments", name)
			}
			rows[name] = append(rows[name], outcome)
		}
	}
	ask(startAgent(machine(), "modern", false))
	other := startAgent(machine(), "modern", false)
	linkAgent(t, other, "other@example.org")
	ask(other)
	revoked := startAgent(machine(), "modern", false)
	linkAgent(t, revoked, "revoked@example.org")
	b.admin("revoke", "--email", "revoked@example.org")
	ask(revoked)
	suspended := startAgent(machine(), "modern", false)
	linkAgent(t, suspended, "suspended@example.org")
	execSQLite(t, database, "UPDATE accounts SET state = 'suspended' WHERE email = 'suspended@example.org'")
	ask(suspended)
	for _, level := range levels {
		someone.open(b.url + "/account/mcp-access?project=" + app)
		someone.grantAll(app, level)
		ask(owner)
	}
	rows["closeSession"][len(columns)-1] = outcomeOf(owner.call("closeSession", map[string]any{"sessionId": session}))

	var table strings.Builder
	table.WriteString("| tool | " + strings.Join(columns, " | ") + " |\n|---|" + strings.Repeat("---|",
		len(columns)) + "\n")
	for _, name := range toolNames(t, owner) {
		table.WriteString("| " + name + " | " + strings.Join(rows[name], " | ") + " |\n")
	}
	file := filepath.Join("testdata", "authorisation.md")
	if *update {
		if err := os.WriteFile(file, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil || string(golden) != table.String() {
		t.Errorf("the authorisation table changed (error %v); want\n%s\ngot\n%s", err, golden, table.String())
	}
}

// toolNames returns the name of every tool.
func toolNames(t *testing.T, a *agent) []string {
	t.Helper()
	_, answer := a.send(map[string]any{"list": true})
	var list struct{ Tools []struct{ Name string } }
	line := <-answer
	if line.Error != nil || json.Unmarshal(line.Result, &list) != nil || len(list.Tools) < 30 {
		t.Fatalf("tools/list: got error %v and %d tools, want at least 30", line.Error, len(list.Tools))
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// outcomeOf returns "ok", "auth_required" or the error's code.
func outcomeOf(r toolResult) string {
	switch {
	case r.IsError:
		return fmt.Sprint(r.Structured["code"])
	case r.Structured["status"] == "auth_required":
		return "auth_required"
	}
	return "ok"
}

func execSQLite(t *testing.T, file, statement string) {
	t.Helper()
	execSQL(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(5000)", statement)
}

// execDatabase executes a statement on a database created by newDatabase.
func execDatabase(t *testing.T, database, statement string, args ...any) {
	t.Helper()
	if strings.HasPrefix(database, "postgres") {
		execSQL(t, "pgx", database, statement, args...)
		return
	}
	execSQL(t, "sqlite", "file:"+database+"?_pragma=busy_timeout(5000)", statement, args...)
}

func execSQL(t *testing.T, driver, name, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}
