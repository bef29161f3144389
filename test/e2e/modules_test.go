//go:build unix

package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/test/runtimes"
)

// helloApps returns the commands that start the example hello, by language and version of its runtime.
func helloApps(t *testing.T, a *agent) map[string][]string {
	t.Helper()
	apps := map[string][]string{"kotlin": exampleApp(t, a, "kotlin", "hello")}
	for _, python := range runtimes.Python(t) {
		app := exampleApp(t, a, "python", "hello")
		apps["python "+python.Version] = append([]string{python.Path}, app[1:]...)
	}
	app := helloScript(t, a)
	for _, node := range runtimes.Node(t) {
		apps["node "+node.Version] = []string{node.Path, app}
		if node.Version == "20" {
			apps["node 20"] = []string{node.Path, "--experimental-websocket", app}
		}
	}
	return apps
}

// helloScript compiles the TypeScript example hello to JavaScript, which every Node can run, and returns its path.
func helloScript(t *testing.T, a *agent) string {
	t.Helper()
	dir := exampleInto(t, a, "typescript", "hello")
	compile := exec.Command(nodeTool(t, "node/bin/node"), nodeTool(t, "typescript/bin/tsc"), "--strict",
		"--target", "ES2022", "--module", "ES2022", "--moduleResolution", "bundler", "--lib", "ES2023,DOM,DOM.Iterable",
		"hello.ts")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	return filepath.Join(dir, "hello.js")
}

// Apps on every supported runtime attach again after the daemon was killed and a new one was started two seconds
// later.
func TestModules_SurviveAKilledDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	type running struct {
		id    string
		since float64
	}
	started := map[string]running{}
	shown := func(name string, r running) running {
		t.Helper()
		row := a.call("waitForEvent", map[string]any{"sessionId": r.id, "type": "display.show", "since": r.since,
			"timeoutSeconds": 60})
		next, ok := row.Structured["next"].(float64)
		if row.Structured["status"] != "found" || !ok {
			t.Errorf("%s showed nothing on the display: %v", name, row.Structured)
		}
		return running{r.id, next}
	}
	for name, command := range helloApps(t, a) {
		s := a.call("startLocalSimulation", map[string]any{"fresh": true})
		startApp(t, w, command, s)
		started[name] = shown(name, running{id: s.str(t, "sessionId")})
	}
	syscall.Kill(w.daemonPID(), syscall.SIGKILL)
	time.Sleep(2 * time.Second) // so that connections are refused for a while
	for name, r := range started {
		tap := a.call("injectInput", map[string]any{"sessionId": r.id, "kind": "tap", "x": 20, "y": 20})
		if tap.IsError {
			t.Errorf("injectInput for %s: %v", name, tap.Structured)
		}
	}
	back := time.Now()
	for name, r := range started {
		shown(name, r)
		t.Logf("%s drew %v after the daemon was back", name, time.Since(back).Round(time.Millisecond))
	}
}

// On Node 20, WebSocket must be enabled first. The error explains how.
func TestTypeScriptModule_WithoutWebSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	nodes := runtimes.Node(t)
	if len(nodes) == 0 || nodes[0].Version != "20" {
		missing(t, "Node 20", "make npm")
	}
	app, s := helloScript(t, a), a.call("startLocalSimulation", map[string]any{"fresh": true})
	cmd := exec.Command(nodes[0].Path, app)
	cmd.Env = append(append([]string{}, w.env...), "SERVICE_GLASSES_URL="+s.str(t, "appEndpoint"),
		"SERVICE_GLASSES_SECRET_FILE="+s.str(t, "appTokenFile"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "Node 22 or newer") ||
		!strings.Contains(string(out), "--experimental-websocket") {
		t.Errorf("without WebSocket the app ended with %v, want an error that explains the fix: %s", err, out)
	}
}
