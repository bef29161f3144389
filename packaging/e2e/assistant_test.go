//go:build unix

package e2e

import (
	"path/filepath"
	"testing"
)

const milkScript = `{"rules": [
	{"when": {"contains": "milk"}, "reply": {"toolCall": {"name": "add_item", "arguments": {"item": "milk"}}}},
	{"when": {"toolResult": "add_item"}, "reply": {"text": "It is on the list.", "delayMs": 3000}},
	{"when": {"contains": "bread"}, "reply": {"error": {"code": "no_credit"}}}
]}`

// The assistant of getCodeExample answers a spoken question after a call of its tool, in virtual time and without an
// account. Swift is not run: there is no compiler for this machine.
func TestAssistantExample_InEachLanguage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	defer func() { a.t = t }()
	script := filepath.Join(t.TempDir(), "assistant.json")
	writeInto(t, script, milkScript)
	for _, language := range []string{"typescript", "python", "kotlin"} {
		t.Run(language, func(t *testing.T) {
			a.t = t
			app := exampleApp(t, a, language, "assistant")
			s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual",
				"deviceModel": "rayban_display", "assistantScript": script})
			startApp(t, w, app, s)
			sees := func(typ string, payload map[string]any) {
				t.Helper()
				if row := a.call("waitForEvent", map[string]any{"type": typ, "payload": payload,
					"timeoutSeconds": 20}); row.Structured["status"] != "found" {
					t.Fatalf("%s %v: %v", typ, payload, row.Structured)
				}
			}
			shows := func(texts ...string) {
				t.Helper()
				if verdict := a.call("expectDisplay", map[string]any{"text": texts}); verdict.Structured["status"] != "pass" {
					t.Errorf("want %q: %v", texts, verdict.Structured)
				}
			}
			advance := func(ms int) {
				t.Helper()
				if moved := a.call("advanceTime", map[string]any{"ms": ms}); moved.IsError ||
					moved.Structured["settled"] != true {
					t.Errorf("advanceTime: %v", moved.Structured)
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
}
