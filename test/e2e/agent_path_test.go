//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// An agent that knows only service-mcp builds and tests an app. It gets everything that it needs from tool results:
// the order of the tools, the frames, the variables and the arguments.
func TestAgent_BuildsAppFromToolAnswers(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t, "")
			newcomer{t: t, agent: startAgent(w, protocol, false), dir: w.project}.proveAnApp()
			if urls := w.openedURLs(); len(urls) > 0 {
				t.Errorf("browsers were opened although nobody asked for one: %v", urls)
			}
		})
	}
}

// The agent writes the example from a tool result to disk, starts it as instructed, and drives it.
func TestAgent_RunsGivenExample(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		missing(t, "python3", "install Python 3.9 or newer")
	}
	w := newWorld(t, "")
	n := newcomer{t: t, agent: startAgent(w, "modern", false), dir: t.TempDir()}
	example := n.ask("getCodeExample", map[string]any{"language": "python", "includeModule": true})
	files, _ := example["files"].([]any)
	for _, f := range files {
		file, _ := f.(map[string]any)
		path := filepath.Join(n.dir, file["path"].(string))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file["content"].(string)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session := n.ask("startLocalSimulation", n.proposed(example, "startLocalSimulation"))
	command, _, _ := strings.Cut(example["run"].(string), " (")
	app := exec.Command("sh", "-c", "exec "+command)
	app.Dir, app.Env, app.Stderr = n.dir, w.env, os.Stderr
	for name, value := range session["environment"].(map[string]any) {
		app.Env = append(app.Env, name+"="+value.(string))
	}
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Process.Kill(); _ = app.Wait() })

	if row := n.ask("waitForEvent", n.proposed(session, "waitForEvent")); row["status"] != "found" {
		t.Fatalf("wait for the app: got %v, want status found", row)
	}
	n.expect("Tap me")
	n.ask("injectInput", n.proposed(session, "injectInput"))
	n.expect("Taps: 1")
	n.ask("setDevice", map[string]any{"deviceModel": "even_g1"})
	n.ask("injectInput", n.proposed(session, "injectInput"))
	n.expect("Taps: 2")
	if verdict := n.ask("validateIntegration", map[string]any{"dir": n.dir}); verdict["verdict"] != "ready" {
		t.Errorf("validateIntegration: got %v, want verdict ready", verdict)
	}
}

func (n newcomer) expect(text string) {
	n.t.Helper()
	if verdict := n.ask("expectDisplay", map[string]any{"text": []string{text},
		"withinMs": 10_000}); verdict["status"] != "pass" {
		n.t.Fatalf("expectDisplay %q: got %v, want pass", text, verdict)
	}
}

// newcomer is an agent without prior knowledge of the service.
type newcomer struct {
	t     *testing.T
	agent *agent
	dir   string
}

// ask calls a tool and requires a successful result with a summary.
func (n newcomer) ask(tool string, args map[string]any) map[string]any {
	n.t.Helper()
	r := n.agent.call(tool, args)
	if summary, _ := r.Structured["summary"].(string); r.IsError || summary == "" {
		n.t.Fatalf("%s %v: got %v, want a summary", tool, args, r.Structured)
	}
	return r.Structured
}

// proposed returns the arguments of the call to tool among the calls that a result suggests.
func (n newcomer) proposed(answer map[string]any, tool string) map[string]any {
	n.t.Helper()
	calls, _ := answer["nextCalls"].([]any)
	for _, c := range calls {
		if next, _ := c.(map[string]any); next["tool"] == tool {
			args, _ := next["arguments"].(map[string]any)
			return args
		}
	}
	n.t.Fatalf("%s is not among the suggested calls %v", tool, calls)
	return nil
}

func (n newcomer) proveAnApp() {
	info := n.ask("getPlatformInfo", map[string]any{})
	attach, _ := info["attach"].(map[string]any)
	guide := n.ask("getCapabilityGuide", n.proposed(info, "getCapabilityGuide"))
	frames := dig(guide, "example", "app").([]any)
	screen, _ := frames[0].(map[string]any)
	n.ask("getPermissions", map[string]any{"platform": "desktop",
		"capabilities": []string{guide["capability"].(string)}})

	session := n.ask("startLocalSimulation", map[string]any{"clock": "virtual"})
	app := n.startApp(attach, session, screen, "All done")
	n.ask("waitForEvent", n.proposed(session, "waitForEvent"))
	before := n.ask("getDisplayState", n.proposed(session, "getDisplayState"))
	if text, _ := before["text"].([]any); !slices.Contains(text, any("Shopping")) {
		n.t.Fatalf("the display shows %v, want Shopping", text)
	}
	n.ask("injectInput", n.tap(before, "done"))
	if verdict := n.ask("expectDisplay", map[string]any{"text": []string{"All done"},
		"absent": []string{"Milk"}}); verdict["status"] != "pass" {
		n.t.Fatalf("after the tap: got %v, want a pass", verdict)
	}
	after := n.ask("getDisplayState", map[string]any{})
	if dig(after, "picture", "sha256") == dig(before, "picture", "sha256") {
		n.t.Error("the tap did not change the picture")
	}

	recorded := n.ask("recordSession", map[string]any{"dir": filepath.Join(n.dir, "glasses", "main")})
	app()
	for _, build := range []struct{ words, verdict string }{{"All done", "pass"}, {"Oops", "fail"}} {
		fresh := n.ask("startLocalSimulation", n.proposed(recorded, "startLocalSimulation"))
		app := n.startApp(attach, fresh, screen, build.words)
		if report := n.ask("replaySession", n.proposed(recorded, "replaySession")); report["verdict"] != build.verdict {
			n.t.Errorf("replay against the build that says %q: got %v, want another verdict", build.words, report)
		}
		app()
		n.ask("closeSession", map[string]any{"sessionId": fresh["sessionId"]})
	}
	if items, _ := n.ask("getProductionChecklist",
		map[string]any{"platform": "desktop"})["items"].([]any); len(items) < 5 {
		n.t.Errorf("the checklist has %d items, want at least 5", len(items))
	}
}

// tap taps the middle of a target.
func (n newcomer) tap(display map[string]any, id string) map[string]any {
	n.t.Helper()
	targets, _ := display["targets"].([]any)
	for _, v := range targets {
		if target, _ := v.(map[string]any); target["id"] == id {
			number := func(name string) int { f, _ := target[name].(float64); return int(f) }
			return map[string]any{"kind": "tap", "x": number("x") + number("width")/2,
				"y": number("y") + number("height")/2}
		}
	}
	n.t.Fatalf("no target %s in %v", id, targets)
	return nil
}

// startApp runs the app that the agent writes. The app attaches as the results instruct, shows the guide's example,
// and shows words when its button is tapped. end stops it.
func (n newcomer) startApp(attach, session, screen map[string]any, words string) (end func()) {
	n.t.Helper()
	variable := func(name string) string {
		value, _ := dig(session, "environment", attach[name].(string)).(string)
		return value
	}
	secret, err := os.ReadFile(variable("secretVariable"))
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ws, _, err := websocket.Dial(ctx, variable("urlVariable"), nil)
	if err != nil {
		cancel()
		n.t.Fatal(err)
	}
	send := func(frame map[string]any, id string) {
		frame = maps.Clone(frame)
		frame["id"] = id
		data, err := json.Marshal(frame)
		if err == nil {
			err = ws.Write(ctx, websocket.MessageText, data)
		}
		if err != nil && ctx.Err() == nil {
			n.t.Errorf("the app failed to send: %v", err)
		}
	}
	hello, _ := attach["hello"].(map[string]any)
	hello = maps.Clone(hello)
	said, _ := hello["payload"].(map[string]any)
	said = maps.Clone(said)
	said["secret"] = strings.TrimSpace(string(secret))
	hello["payload"] = said
	send(hello, "mine-0")

	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			_, data, err := ws.Read(ctx)
			if err != nil {
				return
			}
			var frame map[string]any
			if json.Unmarshal(data, &frame) != nil {
				continue
			}
			switch {
			case frame["type"] == "welcome":
				send(screen, "mine-1")
			case frame["type"] == "barrier":
				send(frame, frame["id"].(string))
			case frame["type"] == "input" && dig(frame, "payload", "target") == "done":
				send(map[string]any{"v": 1, "type": screen["type"], "at": 0,
					"payload": map[string]any{"tree": map[string]any{"type": "text", "text": words}}}, "mine-2")
			}
		}
	}()
	end = func() {
		cancel()
		_ = ws.CloseNow()
		<-done
	}
	n.t.Cleanup(end)
	return end
}

// dig returns the value at a path of keys.
func dig(m map[string]any, keys ...string) any {
	var v any = m
	for _, key := range keys {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[key]
	}
	return v
}
