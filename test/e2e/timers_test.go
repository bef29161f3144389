//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// exampleInto writes the files returned by getCodeExample into a new folder and returns the folder.
func exampleInto(t *testing.T, a *agent, language, topic string) string {
	t.Helper()
	got := a.call("getCodeExample", map[string]any{"language": language, "topic": topic, "includeModule": true})
	files, ok := got.Structured["files"].([]any)
	if got.IsError || !ok || len(files) < 2 {
		t.Fatalf("getCodeExample: got %v, want at least two files", got.Structured)
	}
	dir := t.TempDir()
	writeInto(t, filepath.Join(dir, "package.json"), `{"type":"module"}`)
	for _, f := range files {
		file := f.(map[string]any)
		writeInto(t, filepath.Join(dir, file["path"].(string)), file["content"].(string))
	}
	return dir
}

func writeInto(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The timer of getCodeExample counts down in virtual time while taps pause and resume it. The Swift example does not
// run because this machine has no compiler for it.
func TestTimerExample_InEachLanguage(t *testing.T) {
	t.Parallel()
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		app := exampleApp(t, a, language, "timer")
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"})
		startApp(t, w, app, s)
		if row := a.call("waitForEvent", map[string]any{"type": "display.show",
			"timeoutSeconds": 60}); row.Structured["status"] != "found" {
			t.Fatalf("the example showed nothing on the display: %v", row.Structured)
		}
		shows := func(texts ...string) {
			t.Helper()
			if verdict := a.call("expectDisplay",
				map[string]any{"text": texts, "withinMs": 0}); verdict.Structured["status"] != "pass" {
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
		tap := func() {
			t.Helper()
			a.call("injectInput", map[string]any{"kind": "tap", "x": 20, "y": 20})
			advance(0)
		}
		advance(2500)
		shows("3", "Tap to pause")
		tap()
		shows("3", "Paused")
		advance(10_000)
		shows("3", "Paused")
		tap()
		if got := a.call("injectFault", map[string]any{"dropApp": true}); got.IsError {
			t.Errorf("injectFault dropApp: %v", got.Structured)
		}
		// A late display result does not slow the countdown.
		if got := a.call("injectFault", map[string]any{"command": "display.show", "latencyMs": 1500}); got.IsError {
			t.Errorf("injectFault latencyMs: %v", got.Structured)
		}
		advance(999)
		shows("3", "Tap to pause")
		advance(2001)
		shows("0", "Done")
		if row := a.call("waitForEvent", map[string]any{"type": "sound.play",
			"timeoutSeconds": 5}); row.Structured["status"] != "found" {
			t.Errorf("the example played no sound: %v", row.Structured)
		}
	})
}

// exampleApp returns the command that starts an example of getCodeExample.
func exampleApp(t *testing.T, a *agent, language, topic string) []string {
	t.Helper()
	return appCommand(t, exampleInto(t, a, language, topic), language, topic)
}

// appCommand returns the command that starts the app called name in dir.
func appCommand(t *testing.T, dir, language, name string) []string {
	t.Helper()
	switch language {
	case "typescript":
		return []string{nodeTool(t, "node/bin/node"), filepath.Join(dir, name+".ts")}
	case "python":
		return []string{program(t, "python3"), "-B", filepath.Join(dir, name+".py")}
	}
	return []string{program(t, "java"), "-XX:TieredStopAtLevel=1", "-jar", kotlinJar(t, dir, name)}
}

// kotlinJar compiles the app called name. An optimizing Java compiler would double the time without any benefit.
func kotlinJar(t *testing.T, dir, name string) string {
	t.Helper()
	jar := filepath.Join(dir, "app.jar")
	compile := exec.Command(program(t, "kotlinc"), name+".kt", "service/Glasses.kt", "-include-runtime", "-d", jar)
	compile.Dir = dir
	compile.Env = append(os.Environ(), "JAVA_OPTS=-Xmx512M -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("kotlinc: %v\n%s", err, out)
	}
	return jar
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name, "install it")
	}
	return path
}

// Of two timers that are due in the same virtual millisecond, the app handles the first completely, however long its
// own requests take, before the second is due.
func TestTimers_DueAtOnceKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	dir := exampleInto(t, a, "typescript", "timer")
	answered := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Duration(answered%3*10) * time.Millisecond) // a local server that is slow at times
		answered++
		fmt.Fprint(rw, answered)
	}))
	t.Cleanup(server.Close)
	writeInto(t, filepath.Join(dir, "twice.ts"), `import { connect } from "./service/glasses.js";
const glasses = await connect({ app: { name: "Twice", version: "1.0" } });
const show = (text: string) => glasses.show({ type: "text", text });
const ask = async () => (await fetch("`+server.URL+`")).text();
await show("waiting");
glasses.after(1000, async () => {
  await ask();
  await show("first");
  await ask();
  await show("first, again");
});
glasses.after(1000, () => show("second"));
`)
	for range full(30, 5) {
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"})
		startApp(t, w, []string{nodeTool(t, "node/bin/node"), filepath.Join(dir, "twice.ts")}, s)
		steps := json.RawMessage(`[{"expectDisplay":{"text":["waiting"]}},{"advance":1000}]`)
		if verdict := a.call("runSteps", map[string]any{"steps": steps}); verdict.Structured["verdict"] != "pass" {
			t.Fatalf("runSteps: got %v, want pass", verdict.Structured)
		}
		var shown []string
		for _, row := range eventRows(t, a, s.str(t, "sessionId")) {
			if row["type"] == "display.show" {
				shown = append(shown, fmt.Sprint(dig(row, "payload", "tree", "text")))
			}
		}
		if got := strings.Join(shown, " | "); got != "waiting | first | first, again | second" {
			t.Fatalf("the app showed %s, want the first timer handled before the second", got)
		}
		a.call("closeSession", map[string]any{})
	}
}
