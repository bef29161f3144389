//go:build release

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests in this file change the packages of the machine, so the release checks run them in a separate root, with
// the programs of an installed package and with these variables.
const (
	oldDeb = "SERVICE_E2E_OLD_DEB" // the package that is installed first
	newDeb = "SERVICE_E2E_NEW_DEB" // the same programs as nextVersion
)

const packageIdle = "idle_timeout: 2\n"

// dpkg runs dpkg with additional environment variables. Its error contains the output.
func dpkg(t *testing.T, variables []string, args ...string) error {
	t.Helper()
	cmd := exec.Command("dpkg", args...)
	cmd.Env = append(os.Environ(), variables...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("dpkg %s: %v\n%s", strings.Join(args, " "), err, tail(string(out), 5))
	}
	return err
}

func mustDpkg(t *testing.T, args ...string) {
	t.Helper()
	if err := dpkg(t, nil, args...); err != nil {
		t.Fatal(err)
	}
}

// crew is five agents, each working in its own session, on a machine with the package.
type crew struct {
	w      *world
	agents []*agent
	ids    []string
	ends   []string // app endpoints
	taps   []*taps
	stop   chan struct{}
	wg     sync.WaitGroup
}

func newCrew(t *testing.T, w *world, agents int) *crew {
	t.Helper()
	c := &crew{w: w}
	for i := range agents {
		a := startAgent(w, "modern", false)
		c.agents = append(c.agents, a)
		started := a.call("startLocalSimulation", map[string]any{"project": fmt.Sprintf("com.example.crew%d", i)})
		c.ids, c.ends = append(c.ids, started.str(t, "sessionId")), append(c.ends, started.str(t, "appEndpoint"))
		c.taps = append(c.taps, &taps{done: map[string]bool{}, maybe: map[string]bool{}})
	}
	return c
}

func (c *crew) work(t *testing.T) {
	c.stop = make(chan struct{})
	for i, a := range c.agents {
		c.wg.Go(func() { c.taps[i].work(t, a, c.ids[i], c.stop) })
	}
	c.progress(t, "the agents are at work")
}

// progress waits until every agent has completed more work.
func (c *crew) progress(t *testing.T, what string) {
	t.Helper()
	for _, p := range c.taps {
		before := p.count()
		must(t, what, func() bool { return p.count() > before+5 })
	}
}

// rest stops the work, and compares the answers with the logs.
func (c *crew) rest(t *testing.T) {
	t.Helper()
	close(c.stop)
	c.wg.Wait()
	for i, p := range c.taps {
		p.check(t, eventRows(t, c.agents[i], c.ids[i]))
	}
}

// wantVersion waits until the idle daemon has exited, and checks that the next one has the given version and no
// problems.
func (c *crew) wantVersion(t *testing.T, version string) {
	t.Helper()
	old := c.w.daemonPID()
	if old != 0 && !waitGone(old, 30*time.Second) {
		t.Errorf("the replaced daemon is still running, although it has nothing to do")
	}
	for i, a := range c.agents { // the same shims, and the same sessions
		if r := a.call("getDisplayState", map[string]any{"sessionId": c.ids[i]}); r.IsError {
			t.Errorf("with version %s: %v, want the session's panel", version, r.Structured)
		}
	}
	if s := statusOf(t, c.w); s.Version != version || s.Replaced || s.PID == old {
		t.Errorf("after the idle time the daemon is %+v, want version %s", s, version)
	}
	if out, errs, exit := c.w.ctl("doctor"); exit != 0 {
		t.Errorf("doctor: exit %d, want 0: %s%s", exit, out, errs)
	}
}

// A package is upgraded and downgraded while agents work and an app is attached, once with a daemon started by a
// client and once with one started by systemd's socket. No call is lost or executed twice, and the other version
// answers as soon as the daemon is idle.
func TestPackage_UpgradesUnderWork(t *testing.T) {
	mustDpkg(t, "-i", os.Getenv(oldDeb))
	first := newCrew(t, newWorld(t, packageIdle), 3)
	activated := newWorld(t, packageIdle)
	startActivator(activated)
	second := newCrew(t, activated, 2)
	version := statusOf(t, first.w).Version
	if version == nextVersion {
		t.Fatal("the first package has the next version")
	}
	for _, step := range []struct{ deb, version string }{{newDeb, nextVersion}, {oldDeb, version}} {
		stopApp := attachDesk(t, first)
		first.work(t)
		second.work(t)
		before := first.w.daemonPID()
		mustDpkg(t, "-i", os.Getenv(step.deb))
		first.progress(t, "the agents continue after the package was replaced")
		second.progress(t, "the agents of the activated daemon continue")
		if now := first.w.daemonPID(); now != before {
			t.Errorf("the daemon ended while an app was attached")
		}
		first.rest(t)
		second.rest(t)
		stopApp()
		first.wantVersion(t, step.version)
		second.wantVersion(t, step.version)
	}
}

// attachDesk runs the example app on the first agent's session until the returned function is called.
func attachDesk(t *testing.T, c *crew) (stop func()) {
	t.Helper()
	cmd := exec.Command("/release-test/desk-go")
	cmd.Env = append([]string{
		"SERVICE_GLASSES_URL=" + c.ends[0],
		"SERVICE_GLASSES_SECRET_FILE=" + filepath.Join(c.w.dir, "sessions", c.ids[0], "app.token"),
	}, c.w.env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.agents[0].call("waitForEvent", map[string]any{"sessionId": c.ids[0], "type": "app.attached", "timeoutSeconds": 20})
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// The package is removed while agents work. Running calls finish, the daemon exits, and the agents' next calls return
// the next step. After the package is installed again, the same agents continue.
func TestPackage_IsRemovedUnderWork(t *testing.T) {
	mustDpkg(t, "-i", os.Getenv(oldDeb))
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	id := a.call("startLocalSimulation", map[string]any{}).str(t, "sessionId")
	_, running := a.start("waitForEvent",
		map[string]any{"sessionId": id, "type": "input", "timeoutSeconds": 8}, false, time.Minute)
	pid := w.daemonPID()
	mustDpkg(t, "-r", "service-toolkit")
	select {
	case line := <-running:
		if line.Error != nil || !strings.Contains(string(line.Result), `"status":"timeout"`) {
			t.Errorf("the running call got %s, %v; want its own result", line.Result, line.Error)
		}
	case <-time.After(time.Minute):
		t.Fatal("the running call got no answer")
	}
	if !waitGone(pid, 30*time.Second) {
		t.Error("the daemon still runs, although its program is gone")
	}
	r := a.call("getPlatformInfo", nil)
	if !r.IsError || !strings.Contains(r.str(t, "fixHint"), "Install the service again") {
		t.Errorf("the next call got %v; want an error that says to install", r.Structured)
	}
	mustDpkg(t, "-i", os.Getenv(oldDeb))
	if r := a.call("getSessionStatus", map[string]any{"sessionId": id}); r.IsError {
		t.Errorf("with the package back: %v, want the session", r.Structured)
	}
}

// An installation that was killed halfway is repaired by installing again. Until then, a call gets its answer or a
// retryable error.
func TestPackage_SurvivesAKilledInstallation(t *testing.T) {
	library := filepath.Join(t.TempDir(), "killer.so")
	gcc := exec.Command("gcc", "-shared", "-fPIC", "-o", library, "testdata/killer.c", "-ldl")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	every := 11
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		every = 1
	}
	killed := 0
	for n := 1; ; n += every {
		mustDpkg(t, "-i", os.Getenv(oldDeb))
		err := dpkg(t, []string{"LD_PRELOAD=" + library, "KILL_AT_RENAME=" + strconv.Itoa(n)}, "-i", os.Getenv(newDeb))
		if err == nil {
			break // there are fewer than n files
		}
		killed++
		w := newWorld(t, "")
		out, errs, exit := w.ctl("tool", "call", "startLocalSimulation", "--json", "{}")
		if exit != 0 && !strings.Contains(out+errs, `"retryable": true`) && !strings.Contains(out+errs, `"retryable":true`) {
			t.Errorf("killed at file %d: exit %d, want a result or a retryable error: %s%s", n, exit, out, errs)
		}
		w.ctl("daemon", "stop")
		if n%2 == 1 {
			mustDpkg(t, "-i", os.Getenv(newDeb))
		} else if dpkg(t, nil, "--configure", "-a") != nil {
			mustDpkg(t, "-i", os.Getenv(newDeb))
		}
		if out, errs, exit := w.ctl("doctor"); exit != 0 {
			t.Errorf("killed at file %d and installed again: doctor: exit %d, want 0: %s%s", n, exit, out, errs)
		}
	}
	t.Logf("killed %d installations", killed)
	if killed < 3 {
		t.Errorf("only %d installations were killed", killed)
	}
}
