//go:build release

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// addedAdapter is the adapter of the documentation, built from the source of oldDeb.
const addedAdapter = "/release-test/my-glasses"

// usedInstall is a machine with an account, an added adapter, a project and two agents, each with its own session.
type usedInstall struct {
	w       *world
	agents  []*agent
	ids     []string
	taps    int               // that each session has received
	content map[string]string // files that no version changes, by path
}

func newUsedInstall(t *testing.T, w *world) *usedInstall {
	t.Helper()
	u := &usedInstall{w: w, content: map[string]string{}}
	for _, protocol := range []string{"legacy", "modern"} {
		a := startAgent(w, protocol, false)
		u.agents = append(u.agents, a)
		u.ids = append(u.ids, a.call("startLocalSimulation", map[string]any{"project": "com.example." + protocol}).
			str(t, "sessionId"))
	}
	asked := u.agents[0].call("generateConnectionModule", map[string]any{"language": "python",
		"project": "com.example.trails"})
	newPerson(t).approve(asked.str(t, "verificationUrl"), "ada@example.org")
	u.agents[0].call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
	if out, errs, exit := w.ctl("plugin", "add", "--yes", addedAdapter); exit != 0 {
		t.Fatalf("plugin add: exit %d: %s%s", exit, out, errs)
	}
	for _, path := range []string{
		filepath.Join(w.dir, "auth.json"), filepath.Join(w.dir, "adapters.json"), filepath.Join(w.project, "service.json"),
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		u.content[path] = string(data)
	}
	return u
}

// call calls tools through each agent: one that the daemon serves itself, and one that its adapter for backends serves.
func (u *usedInstall) call(t *testing.T, when string) {
	t.Helper()
	u.taps++
	for i, a := range u.agents {
		if r := a.call("injectInput", map[string]any{"sessionId": u.ids[i], "kind": "tap"}); r.IsError {
			t.Errorf("%s: injectInput: %v", when, r.Structured)
		}
		if r := a.call("createSimulatorSession", map[string]any{"openBrowser": false}); r.IsError {
			t.Errorf("%s: createSimulatorSession: %v", when, r.Structured)
		}
	}
}

// check checks that the daemon of a version has everything that the machine had before.
func (u *usedInstall) check(t *testing.T, version string) {
	t.Helper()
	u.call(t, "with version "+version)
	if s := statusOf(t, u.w); s.Version != version || s.Replaced {
		t.Errorf("the daemon is %+v, want version %s", s, version)
	}
	for i, a := range u.agents {
		taps := 0
		for _, row := range eventRows(t, a, u.ids[i]) {
			if row["type"] == "input" {
				taps++
			}
		}
		if taps != u.taps {
			t.Errorf("with version %s: the log of session %d has %d taps, want %d", version, i, taps, u.taps)
		}
	}
	for path, want := range u.content {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("with version %s: %s was changed from\n%s\nto\n%s (%v)", version, path, want, got, err)
		}
	}
	for _, command := range []string{
		"whoami", "doctor", "tool call startLocalSimulation --arg transport=" + filepath.Base(addedAdapter),
	} {
		if out, errs, exit := u.w.ctl(strings.Fields(command)...); exit != 0 {
			t.Errorf("with version %s: %s: exit %d, want 0: %s%s", version, command, exit, out, errs)
		}
	}
}

// wantOtherAdapters checks that a call tells the next step if its adapter was started after another version of it was
// installed. ctl has the running daemon's servicectl.
func (u *usedInstall) wantOtherAdapters(t *testing.T, ctl *world) {
	t.Helper()
	out, errs, exit := ctl.ctl("plugin", "list", "--json")
	var list struct {
		Plugins []struct {
			Name string
			PID  int
		}
	}
	if exit != 0 || json.Unmarshal([]byte(out), &list) != nil {
		t.Fatalf("plugin list: exit %d, want 0 and JSON: %s%s", exit, out, errs)
	}
	for _, p := range list.Plugins {
		if p.Name != "browsersim" && p.Name != "backendlocal" || p.PID == 0 { // it may rest
			continue
		}
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil || !waitGone(p.PID, 30*time.Second) {
			t.Fatalf("the adapter (pid %d) was not ended: %v", p.PID, err)
		}
	}
	var answer toolResult
	must(t, "the adapter is started again", func() bool {
		answer = u.agents[0].call("createSimulatorSession", map[string]any{"openBrowser": false})
		return answer.Structured["retryable"] != true
	})
	if hint, _ := answer.Structured["fixHint"].(string); !strings.Contains(hint, "servicectl daemon restart") {
		t.Errorf("with an adapter of the other version: %v, want the command to run", answer.Structured)
	}
}

// wantNextStep checks that every command that asks the daemon prints one sentence and the next step.
func wantNextStep(t *testing.T, w *world, sentence, next string) {
	t.Helper()
	want := fmt.Sprintf("servicectl: %s\n  next: %s\n", sentence, next)
	for _, command := range []string{"status", "whoami", "plugin list", "login"} {
		if out, errs, exit := w.ctl(strings.Fields(command)...); exit != 2 || out != "" || errs != want {
			t.Errorf("%s: exit %d, want 2 and\n%s\ngot\n%s%s", command, exit, want, out, errs)
		}
	}
}

// withCopies returns the same machine with copies of the installed programs.
func withCopies(t *testing.T, w *world) *world {
	t.Helper()
	other := *w
	other.bin = filepath.Join(t.TempDir(), "programs")
	if out, err := exec.Command("cp", "-R", w.bin, other.bin).CombinedOutput(); err != nil {
		t.Fatalf("copy the programs: %v: %s", err, out)
	}
	return &other
}

// The package of a version whose control API is gRPC is upgraded and downgraded while two agents work. The agents
// continue, a servicectl that meets the daemon of the other version prints the next step, and nothing is lost.
func TestGRPCPackage_UpgradesUnderWork(t *testing.T) {
	mustDpkg(t, "-i", os.Getenv(oldDeb))
	w := newWorld(t, "")
	old := withCopies(t, w)
	u := newUsedInstall(t, w)
	before := statusOf(t, w).Version
	u.check(t, before)
	pid := w.daemonPID()

	mustDpkg(t, "-i", os.Getenv(newDeb))
	current := withCopies(t, w)
	out, _, _ := w.ctl("version")
	after := strings.Fields(out)[1]
	u.call(t, "with the new files")
	u.wantOtherAdapters(t, old)
	if w.daemonPID() != pid {
		t.Error("the old daemon ended while agents use it")
	}
	wantNextStep(t, w, fmt.Sprintf("the running daemon (%s) is too old for this program (%s)", before, after),
		"run `servicectl daemon restart`; connected agents continue with the new daemon")
	if out, errs, exit := w.ctl("daemon", "restart"); exit != 0 || !strings.Contains(out, after) {
		t.Fatalf("daemon restart: exit %d, want 0 and the new version: %s%s", exit, out, errs)
	}
	u.check(t, after)

	mustDpkg(t, "-i", os.Getenv(oldDeb))
	u.call(t, "with the old files")
	u.wantOtherAdapters(t, current)
	pid = w.daemonPID()
	for _, one := range []*world{old, w} {
		wantNextStep(t, one, fmt.Sprintf("this program is too old for the running daemon (%s)", after),
			fmt.Sprintf("use the servicectl of version %s, or, after a downgrade, run `kill %d`: connected agents continue "+
				"with the installed version", after, pid))
	}
	// The older program cannot revoke the link, and deletes nothing, because it cannot stop the daemon either.
	if out, errs, exit := w.ctl("uninstall", "--purge", "--yes"); exit != 2 ||
		!strings.Contains(errs, "stop the daemon: this program is too old for the running daemon") {
		t.Errorf("uninstall --purge: exit %d, want 2 and the reason: %s%s", exit, out, errs)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil || !waitGone(pid, 30*time.Second) {
		t.Fatalf("the daemon was not ended: %v", err)
	}
	u.check(t, before)

	mustDpkg(t, "-i", os.Getenv(newDeb))
	if out, errs, exit := w.ctl("uninstall", "--purge", "--yes", "--json"); !strings.Contains(out, `"link": "revoked"`) {
		t.Errorf("uninstall --purge with the old daemon: exit %d, want the link revoked: %s%s", exit, out, errs)
	}
}
