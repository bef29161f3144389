//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// If the programs are deleted under a running daemon, running calls finish, the daemon exits, and the agent's next
// call returns what to do. After the programs are installed again, the same agent works again.
func TestRemovedPrograms_EndTheDaemonInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.install(t)
	a := startAgent(w, "modern", false)
	session := a.call("startLocalSimulation", map[string]any{}).str(t, "sessionId")
	input := map[string]any{"sessionId": session, "type": "input", "timeoutSeconds": 30}
	_, waiting := a.start("waitForEvent", input, false, time.Minute)
	pid := w.daemonPID()
	if err := os.RemoveAll(w.bin); err != nil {
		t.Fatal(err)
	}
	// Longer than the daemon waits before it exits.
	if eventually(8*time.Second, func() bool { return w.daemonPID() != pid }) {
		t.Fatal("the daemon ended during a call")
	}
	if r := a.call("injectInput", map[string]any{"sessionId": session, "kind": "tap", "x": 1, "y": 1}); r.IsError {
		t.Errorf("a call of the daemon without files: got %v, want success", r.Structured)
	}
	var r toolResult
	if line := <-waiting; line.Error != nil || json.Unmarshal(line.Result, &r) != nil || r.IsError {
		t.Errorf("the running call: got %v %v, want the tap", line.Error, r.Structured)
	}
	if !waitGone(pid, 15*time.Second) {
		t.Fatal("the daemon still runs 15 s after its programs were deleted")
	}
	gone := a.call("getSessionStatus", map[string]any{"sessionId": session})
	wantError(t, gone, "program_missing", false)
	hint := fmt.Sprint(gone.Structured["fixHint"])
	if !strings.Contains(hint, "Install the service again") || !strings.Contains(hint, "MCP settings") {
		t.Errorf("fixHint: got %q, want both next steps", hint)
	}
	w.install(t)
	must(t, "the same agent continues with the same session", func() bool {
		return !a.call("getDisplayState", map[string]any{"sessionId": session}).IsError
	})
}

// A package manager replaces the files one after the other while agents are working. No input is lost or executed
// twice. In the meantime, a call that has to start an adapter gets a retryable error, and doctor reports no failure.
// Then the new version takes over from the idle daemon, even though agents are connected.
func TestUpgrade_OfFilesOneByOne(t *testing.T) {
	t.Parallel()
	next := nextRelease(t)
	w := newWorld(t, "idle_timeout: 2\n")
	w.install(t)
	a := startAgent(w, "modern", false)
	session := a.call("startLocalSimulation", map[string]any{}).str(t, "sessionId")
	pid := w.daemonPID()
	p := &taps{done: map[string]bool{}, maybe: map[string]bool{}}
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() { p.work(t, a, session, stop) })
	}
	must(t, "the agents are at work", func() bool { return p.count() > 20 })

	upgrade(t, filepath.Join(next, "plugins.sha256"), filepath.Join(w.bin, "plugins.sha256"))
	r := a.call("createSimulatorSession", map[string]any{"project": "com.example.app"})
	wantError(t, r, "adapter_unavailable", true)
	if message := fmt.Sprint(r.Structured["message"]); !strings.Contains(message, "upgrade is being installed") {
		t.Errorf("message in the window: %s", message)
	}
	if out, errs, exit := w.ctl("doctor"); exit != 0 || !strings.Contains(out, "upgrade is being installed") {
		t.Errorf("doctor in the window: exit %d, want 0 and a warning: %s%s", exit, out, errs)
	}
	for _, name := range []string{"service-mcp", "servicectl", "serviced"} {
		upgrade(t, filepath.Join(next, name), filepath.Join(w.bin, name))
	}
	before := p.count()
	must(t, "the agents work on", func() bool { return p.count() > before+20 })
	close(stop)
	workers.Wait()
	if len(p.maybe) > 0 {
		t.Errorf("%d calls failed, want none", len(p.maybe))
	}
	if !waitGone(pid, 30*time.Second) {
		t.Fatal("the replaced daemon did not hand over although it was idle")
	}
	if r := a.call("getDisplayState", map[string]any{"sessionId": session}); r.IsError {
		t.Errorf("after the upgrade: got %v, want the same session", r.Structured)
	}
	p.check(t, eventRows(t, a, session))
	if s := statusOf(t, w); s.Version != nextVersion || s.Replaced || s.MCPClients != 1 {
		t.Errorf("status: got %+v, want the new version and the connected agent", s)
	}
	out, errs, exit := w.ctl("doctor")
	if exit != 0 || strings.Contains(out, "replaced") || strings.Contains(out, "upgrade") {
		t.Errorf("doctor after the upgrade: exit %d, want 0 without warnings: %s%s", exit, out, errs)
	}
}

// installBeside installs the programs as a version in a separate folder, and switches the links in w.bin to it. Like
// install.sh it uses one link, or like Homebrew one link per program.
func (w *world) installBeside(t *testing.T, layout, version string) (dir string) {
	t.Helper()
	root := filepath.Dir(w.dir)
	lib := filepath.Join(root, map[string]string{"install.sh": "lib", "Homebrew": "Cellar"}[layout], "service")
	dir = filepath.Join(lib, version)
	links := map[string]string{filepath.Join(lib, "current"): dir}
	w.bin = filepath.Join(lib, "current", "bin")
	if layout == "Homebrew" {
		w.bin = filepath.Join(root, "bin")
		links = map[string]string{filepath.Join(root, "opt", "service"): dir}
		for _, program := range []string{"servicectl", "service-mcp"} {
			links[filepath.Join(w.bin, program)] = filepath.Join(dir, "bin", program)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "bin"), os.DirFS(bin)); err != nil {
		t.Fatal(err)
	}
	for link, target := range links {
		err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target, link+".new"),
			os.Rename(link+".new", link))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An upgrade that removes the running version does not end the session of an attached app. Once the app has
// disconnected, the daemon hands over immediately, even though an agent is connected.
func TestUpgrade_RemovesTheRunningVersion(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"install.sh", "Homebrew"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			first := w.installBeside(t, layout, "0.1.0")
			a := startAgent(w, "modern", false)
			s := a.call("startLocalSimulation", map[string]any{})
			session := s.str(t, "sessionId")
			app := attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile")))
			pid := w.daemonPID()
			w.installBeside(t, layout, "0.1.1")
			if err := os.RemoveAll(first); err != nil {
				t.Fatal(err)
			}
			// Longer than the daemon waits after its program was deleted.
			if eventually(8*time.Second, func() bool { return w.daemonPID() != pid }) {
				t.Fatal("the daemon ended under an attached app")
			}
			if out, errs, _ := w.ctl("doctor"); !strings.Contains(out, "was replaced after the daemon started") {
				t.Errorf("doctor: %s%s, want the upgrade", out, errs)
			}
			app.ws.CloseNow()
			if !waitGone(pid, 15*time.Second) {
				t.Fatal("the daemon still runs 15 s after the app has left")
			}
			must(t, "the agent continues with the same session and the version that is installed", func() bool {
				r := a.call("getSessionStatus", map[string]any{"sessionId": session})
				return !r.IsError && !statusOf(t, w).Replaced
			})
		})
	}
}
