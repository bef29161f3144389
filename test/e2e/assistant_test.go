//go:build unix

package e2e

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const milkScript = `{"rules": [
	{"when": {"contains": "milk"}, "reply": {"toolCall": {"name": "add_item", "arguments": {"item": "milk"}}}},
	{"when": {"toolResult": "add_item"}, "reply": {"text": "It is on the list.", "delayMs": 3000}},
	{"when": {"contains": "bread"}, "reply": {"error": {"code": "no_credit"}}}
]}`

// The assistant of getCodeExample answers a spoken question after calling its tool, in virtual time and without an
// account. The Swift example does not run because this machine has no compiler for it.
func TestAssistantExample_InEachLanguage(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "assistant.json")
	writeInto(t, script, milkScript)
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		app := exampleApp(t, a, language, "assistant")
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual",
			"deviceModel": "rayban_display", "assistantScript": script})
		startApp(t, w, app, s)
		sees := func(typ string, payload map[string]any) {
			t.Helper()
			if row := a.call("waitForEvent", map[string]any{"type": typ, "payload": payload,
				"timeoutSeconds": 20}); row.Structured["status"] != "found" {
				t.Fatalf("wait for event %s %v: got %v, want status found", typ, payload, row.Structured)
			}
		}
		shows := func(texts ...string) {
			t.Helper()
			if verdict := a.call("expectDisplay", map[string]any{"text": texts}); verdict.Structured["status"] != "pass" {
				t.Errorf("display: want %q, got %v", texts, verdict.Structured)
			}
		}
		advance := func(ms int) {
			t.Helper()
			if moved := a.call("advanceTime", map[string]any{"ms": ms}); moved.IsError ||
				moved.Structured["settled"] != true {
				t.Errorf("advanceTime: got %v, want settled", moved.Structured)
			}
		}
		sees("transcription.start", map[string]any{})
		say := func(text string) {
			t.Helper()
			if said := a.call("injectTranscript", map[string]any{"text": text}); said.IsError {
				t.Fatalf("injectTranscript: %v", said.Structured)
			}
		}
		say("We need milk")
		sees("assistant.tool_called", map[string]any{"name": "add_item", "arguments": map[string]any{"item": "milk"}})
		// The app loses its connection while it waits for the answer, and still receives the answer when it is
		// due.
		if got := a.call("injectFault", map[string]any{"dropApp": true}); got.IsError {
			t.Errorf("injectFault dropApp: %v", got.Structured)
		}
		advance(2990)
		shows("We need milk", "…")
		advance(10)
		shows("We need milk", "It is on the list.")
		sees("speech.say", map[string]any{"text": "It is on the list."})
		say("And bread")
		advance(0)
		shows("And bread", "I cannot answer now.")
	})
}

type junitReport struct {
	Failures int `xml:"failures,attr"`
	Suites   []struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// passage returns the code block that starts with fence from a passage of the documentation.
func passage(t *testing.T, a *agent, id, fence string) string {
	t.Helper()
	found := a.call("searchDocs", map[string]any{"query": id})
	for _, p := range found.Structured["passages"].([]any) {
		text, _ := p.(map[string]any)["passage"].(string)
		if _, code, ok := strings.Cut(text, "```"+fence+"\n"); ok {
			code, _, _ = strings.Cut(code, "```")
			return code
		}
	}
	t.Fatalf("the passage %s has no %s block: %v", id, fence, found.Structured)
	return ""
}

// askingExample adds an assistant to the example app hello.ts. It returns the app's folder and the documentation's
// scenario that tests it.
func askingExample(t *testing.T, a *agent) (dir, scenario string) {
	t.Helper()
	// The example of the topic hello also needs the client module from the topic assistant.
	dir = exampleInto(t, a, "typescript", "assistant")
	hello := a.call("getCodeExample", map[string]any{"language": "typescript", "topic": "hello"})
	code := hello.Structured["files"].([]any)[0].(map[string]any)["content"].(string)
	const start = "await draw();\n"
	if strings.Count(code, "\n"+start) != 1 {
		t.Fatalf("the example hello.ts no longer contains the line to replace:\n%s", code)
	}
	code = strings.Replace(code, "\n"+start, "\n"+start+"await answerQuestions(glasses);\n", 1)
	writeInto(t, filepath.Join(dir, "hello.ts"), "import { answerQuestions } from \"./questions.ts\";\n"+code)
	writeInto(t, filepath.Join(dir, "questions.ts"), passage(t, a, "app-assistant#in-an-app", "ts assistant"))
	return dir, passage(t, a, "app-assistant#test-it", "json scenario")
}

// An agent adds an assistant to the example app and tests it headless. It gets all code from tool results.
func TestAgent_AddsAnAssistant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	guide := a.call("getCapabilityGuide", map[string]any{"capability": "assistant"})
	if guide.IsError || !strings.Contains(fmt.Sprint(guide.Structured), "stopAsking") {
		t.Fatalf("the guide does not contain stopAsking: %v", guide.Structured)
	}
	dir, milk := askingExample(t, a)
	file := filepath.Join(dir, "milk.json")
	writeInto(t, file, milk)

	report := filepath.Join(dir, "report.xml")
	out, errs, exit := w.ctl("session", "run", file, "--junit", report, "--", nodeTool(t, "node/bin/node"),
		filepath.Join(dir, "hello.ts"))
	if exit != 0 {
		t.Fatalf("session run: exit %d, want 0: %s%s", exit, out, errs)
	}
	called := toolCases(t, report)
	if len(called) != 1 || strings.HasPrefix(called[0], "failed") {
		t.Errorf("test cases of tool calls: got %q, want one that passed", called)
	}

	// The test case fails if the script does not call the tool.
	writeInto(t, file, strings.Replace(milk, `{"contains": "milk"}`, `{"contains": "eggs"}`, 1))
	if _, _, exit := w.ctl("session", "run", file, "--junit", report, "--", nodeTool(t, "node/bin/node"),
		filepath.Join(dir, "hello.ts")); exit != 1 {
		t.Errorf("session run with a script that calls no tool: exit %d, want 1", exit)
	}
	if called := toolCases(t, report); len(called) != 1 || !strings.HasPrefix(called[0], "failed") {
		t.Errorf("test cases of tool calls: got %q, want one that failed", called)
	}
}

// toolCases returns the test cases of a JUnit file that check a tool call.
func toolCases(t *testing.T, report string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r junitReport
	if err := xml.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, suite := range r.Suites {
		for _, c := range suite.Cases {
			if !strings.Contains(c.Name, "assistant.tool_called") {
				continue
			}
			if c.Failure != nil {
				c.Name = fmt.Sprintf("failed: %s", c.Name)
			}
			names = append(names, c.Name)
		}
	}
	return names
}

// askingApp is an app that sends questions to its assistant, whose tools are add_item and finish.
const askingApp = `from service.glasses import AssistantTool, connect

def tool(name):
    return AssistantTool(name, "A tool.", lambda given: {"done": name}, {"type": "object", "properties": {}})

with connect("Shopping", "1.0") as glasses:
    glasses.ask("We need milk", tools=[tool("add_item"), tool("finish")])
    for event in glasses.events():
        pass
`

// The documentation's scenario supplies the script for a session of the simulator page whose app is already attached.
// A different script leads to a different result.
func TestAssistant_ScenarioInABrowserSession(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
	a := startAgent(w, "modern", false)
	browser := linkAnd(t, w, a)
	dir, milk := askingExample(t, a)
	s := a.call("createSimulatorSession", map[string]any{"project": "com.example.shopping", "openBrowser": false,
		"deviceModel": "rayban_display"})
	openSimulator(t, browser, s.str(t, "sessionUrl"))
	startApp(t, w, []string{nodeTool(t, "node/bin/node"), filepath.Join(dir, "hello.ts")}, s)
	listens := map[string]any{"sessionId": s.str(t, "sessionId"), "type": "transcription.start", "timeoutSeconds": 60}
	if row := a.call("waitForEvent", listens); row.Structured["status"] != "found" {
		t.Fatalf("the app did not start listening: %v", row.Structured)
	}
	file := filepath.Join(dir, "milk.json")
	milk = strings.NewReplacer(`{"expect": {"type": "transcription.start"}},`, "",
		`"expect": {`, `"expect": {"withinMs": 20000, `, `"expectDisplay": {`, `"expectDisplay": {"withinMs": 20000, `).
		Replace(milk)
	eggs := strings.NewReplacer(`{"contains": "milk"}`, `{"contains": "eggs"}`, `"withinMs": 20000, `, "").Replace(milk)
	for _, c := range []struct{ text, verdict string }{{milk, "pass"}, {eggs, "fail"}} {
		writeInto(t, file, c.text)
		report := a.call("runSteps", map[string]any{"sessionId": s.str(t, "sessionId"), "file": file})
		if report.IsError || report.Structured["verdict"] != c.verdict {
			t.Errorf("replay of %q: got %v, want the verdict in the table", c.text, report.Structured)
		}
	}
}

// A script answers the app of a backend session although the backend has no provider. The event log lists the tools
// that the assistant called. The second tool call depends on the result of the first.
func TestAssistant_OfBackendSessions(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
	a := startAgent(w, "modern", false)
	linkAgent(t, a, "ada@example.org")
	script := filepath.Join(t.TempDir(), "assistant.json")
	writeInto(t, script, `{"rules": [
		{"when": {"contains": "milk"}, "reply": {"toolCall": {"name": "add_item", "arguments": {"item": "milk"}}}},
		{"when": {"toolResult": "add_item", "contains": "done"}, "reply": {"toolCall": {"name": "finish"}}},
		{"when": {"always": true}, "reply": {"text": "It is on the list."}}]}`)
	s := a.call("createSimulatorSession", map[string]any{"project": "com.example.shopping", "assistantScript": script})
	if s.IsError || s.str(t, "status") != "active" {
		t.Fatalf("createSimulatorSession: got %v, want an active session", s.Structured)
	}
	dir := exampleInto(t, a, "python", "assistant")
	writeInto(t, filepath.Join(dir, "asking.py"), askingApp)
	startApp(t, w, []string{program(t, "python3"), "-B", filepath.Join(dir, "asking.py")}, s)
	for _, called := range []map[string]any{
		{"name": "add_item", "arguments": map[string]any{"item": "milk"}}, {"name": "finish"},
	} {
		row := a.call("waitForEvent", map[string]any{"sessionId": s.str(t, "sessionId"), "type": "assistant.tool_called",
			"payload": called, "timeoutSeconds": 60})
		if row.Structured["status"] != "found" {
			t.Fatalf("wait for the tool call %v: got %v, want status found", called, row.Structured)
		}
	}
	found := a.call("getEventLog", map[string]any{"sessionId": s.str(t, "sessionId")})
	text := fmt.Sprint(found.Structured)
	if !strings.Contains(text, "assistant.tool_called") || strings.Contains(text, "sgt_") {
		t.Errorf("the event log lacks the tool call or contains a token: %s", text)
	}
	if logs, err := os.ReadFile(b.logs); err != nil || strings.Contains(string(logs), "sgt_") {
		t.Errorf("the backend's log contains a token, or cannot be read: %v", err)
	}
}
