//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The scenarios of the example pass in each language: the wearer is asked, known later, and forgotten.
func TestMemoryExample_PassesItsTests(t *testing.T) {
	t.Parallel()
	w := inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		dir := exampleInto(t, a, language, "memory")
		app := append([]string{"env", "XDG_DATA_HOME=" + t.TempDir()}, appCommand(t, dir, language, "memory")...)
		for _, name := range []string{"memory", "memory-later", "memory"} {
			run := []string{"session", "run", filepath.Join(dir, "tests", name+".json"), "--"}
			if out, errs, exit := w.ctl(append(run, app...)...); exit != 0 {
				t.Errorf("session run %s: exit %d, want 0: %s%s", name, exit, out, errs)
			}
		}
	})
	if _, err := os.Stat(filepath.Join(w.dir, "memory.json")); err == nil {
		t.Error("runs of scenarios stored a profile in memory.json")
	}
}

// meets runs the app in a new session with a script, and then steps.
func meets(t *testing.T, w *world, a *agent, app []string, script string, steps ...string) {
	t.Helper()
	s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual", "assistantScript": script})
	startApp(t, w, app, s)
	list := json.RawMessage("[" + strings.Join(steps, ",") + "]")
	if verdict := a.call("runSteps", map[string]any{"steps": list}); verdict.Structured["verdict"] != "pass" {
		t.Errorf("runSteps %s: got %v, want pass", list, verdict.Structured)
	}
	a.call("closeSession", map[string]any{})
}

var userSecret = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Two sessions on the same device share what is remembered, also in a realtime conversation; another device and another
// app do not.
func TestMemory_OfOneDevice(t *testing.T) {
	t.Parallel()
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		dir, data := exampleInto(t, a, language, "memory"), t.TempDir()
		app := appCommand(t, dir, language, "memory")
		on := func(data string) []string { return append([]string{"env", "XDG_DATA_HOME=" + data}, app...) }
		script := filepath.Join(dir, "script.json")
		writeInto(t, script, `{"rules":[
				{"when":{"contains":"I am Ann"},"reply":{"text":"Hello Ann.","remember":"Name: Ann"}},
				{"when":{"memory":"Name: Ann"},"reply":{"text":"You are Ann."}},
				{"when":{"noMemory":true},"reply":{"text":"We have not met."}}]}`)
		const shows, says = `{"expectDisplay":{"text":["TEXT"],"contains":true}}`, `{"transcript":{"text":"TEXT"}}`
		step := func(form, text string) string { return strings.ReplaceAll(form, "TEXT", text) }
		meets(t, w, a, on(data), script, step(shows, "May I remember"), `{"input":{"target":"Yes"}}`,
			step(shows, "Tell me"), step(says, "I am Ann"), step(shows, "Hello Ann."))
		meets(t, w, a, on(data), script, step(shows, "Welcome back."), step(says, "Who am I?"),
			step(shows, "You are Ann."))
		meets(t, w, a, on(t.TempDir()), script, step(shows, "May I remember"), step(says, "Who am I?"),
			step(shows, "We have not met."))
		meets(t, w, a, on(data), script, step(shows, "Welcome back."), `{"input":{"target":"Forget"}}`,
			step(shows, "I remember nothing."), `{"expectMemory":{"empty":true}}`)
		meets(t, w, a, on(data), script, step(shows, "May I remember"))

		file := filepath.Join(data, "Companion", "glasses-user")
		secret, err := os.ReadFile(file)
		if err != nil || !userSecret.Match(secret) {
			t.Errorf("%s: got %q, %v, want a user's secret", file, secret, err)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %04o, want 0600", file, info.Mode().Perm())
		}
		remembersSpeech(t, w, a, dir, language)
	})
}

// remembersSpeech checks that a realtime conversation remembers.
func remembersSpeech(t *testing.T, w *world, a *agent, dir, language string) {
	t.Helper()
	given := map[string][2]string{
		"typescript": {`instructions: "Be brief.",`, `instructions: "Be brief.", remember: true,`},
		"python":     {`instructions="Be brief.",`, `instructions="Be brief.", remember=True,`},
		"kotlin":     {`listOf(addItem), `, `listOf(addItem), remember = true, `},
	}[language]
	for name, text := range talkingApps {
		writeInto(t, filepath.Join(dir, name), strings.Replace(text, given[0], given[1], 1))
	}
	app := append([]string{"env", "XDG_DATA_HOME=" + t.TempDir()}, appCommand(t, dir, language, "talk")...)
	script, sound := filepath.Join(dir, "talk.json"), writeSpeech(t, dir)
	writeInto(t, script, `{"rules":[{"when":{"noMemory":true},"reply":{"text":"Noted.","remember":"Needs milk"}},
		{"when":{"memory":"milk"},"reply":{"text":"Milk again."}}]}`)
	for _, said := range []string{"Noted.", "Milk again."} {
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual",
			"deviceModel": "system_audio", "assistantScript": script})
		startApp(t, w, app, s)
		a.sees("audio.start", nil)
		a.sees("assistant.started", nil)
		a.inject(map[string]any{"microphoneFile": sound})
		a.advance(3000)
		a.sees("assistant.said", map[string]any{"text": said})
		a.inject(map[string]any{"state": map[string]any{"battery": map[string]any{"level": 50, "charging": false}}})
		a.sees("assistant.ended", nil)
		steps := json.RawMessage(`[{"expectMemory":{"text":["Needs milk"]}}]`)
		if verdict := a.call("runSteps", map[string]any{"steps": steps}); verdict.Structured["verdict"] != "pass" {
			t.Errorf("after a conversation: got %v, want pass", verdict.Structured)
		}
		a.call("closeSession", map[string]any{})
	}
}
