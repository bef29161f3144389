package osservice

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// fake answers service-manager commands by the prefix of the command line, and records them.
type fake struct {
	answers map[string]outcome
	asked   []string
}

func (f *fake) run(_ context.Context, program string, args ...string) outcome {
	line := strings.Join(append([]string{program}, args...), " ")
	f.asked = append(f.asked, line)
	best, found := "", outcome{}
	for start, answer := range f.answers {
		if strings.HasPrefix(line, start) && len(start) >= len(best) {
			best, found = start, answer
		}
	}
	return found
}

// here returns a daemon whose home directory and program exist.
func here(t *testing.T) daemon {
	t.Helper()
	home := t.TempDir()
	program := filepath.Join(home, "serviced")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	d := sample
	dir := filepath.Join(home, ".service")
	d.home, d.program = home, program
	run := dir + "/run"
	d.paths = rendezvous.Paths{Dir: dir, Run: run, Sockets: run, Control: run + "/control.sock", MCP: run + "/mcp.sock"}
	return d
}

func refusedWith(t *testing.T, err error, code, words string) {
	t.Helper()
	var told *problem.Error
	if !errors.As(err, &told) || told.Code != code || !strings.Contains(told.Message, words) || told.FixHint == "" {
		t.Errorf("got %#v (%v), want %s with %q and a fix hint", told, err, code, words)
	}
}

func TestSystemdThatDoesNotAnswer(t *testing.T) {
	cases := map[string]struct {
		answer outcome
		words  string
	}{
		"no systemd": {
			outcome{code: -1, err: &exec.Error{Name: "systemctl", Err: exec.ErrNotFound}}, "systemctl was not found",
		},
		"no bus": {
			outcome{code: 1, errs: "Failed to connect to bus: No medium found\n"},
			"systemd does not respond for this user: Failed to connect to bus: No medium found",
		},
		"hangs": {outcome{code: -1, err: context.DeadlineExceeded}, "deadline"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := here(t)
			f := &fake{answers: map[string]outcome{"systemctl": c.answer}}
			s := newSystemd(d, "", f.run)
			_, err := s.install(t.Context())
			refusedWith(t, err, problem.CodeNoServiceManager, c.words)
			if units, err := s.files().read(); err != nil || len(units) != 0 {
				t.Errorf("files were written: %v, %v", units, err)
			}
			_, err = s.start(t.Context())
			refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")

			if _, _, err := s.files().write(); err != nil { // installed while that was still allowed
				t.Fatal(err)
			}
			r, err := s.status(t.Context())
			if err != nil || r.State != StateUnknown || !strings.Contains(r.Detail, c.words) {
				t.Errorf("status: %+v, %v; want an unknown state with the reason", r, err)
			}
			_, err = s.stop(t.Context())
			refusedWith(t, err, problem.CodeNoServiceManager, c.words)
			if r, err := s.uninstall(t.Context()); err != nil || r.Change != Removed || len(r.Files) != 2 {
				t.Errorf("uninstall: %+v, %v; want two files removed", r, err)
			}
			_, err = s.uninstall(t.Context())
			refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")
		})
	}
}

func TestSystemdRefusals(t *testing.T) {
	d := here(t)
	show := func(socket, service string) outcome {
		return outcome{out: "Id=serviced.socket\n" + socket + "\n\nId=serviced.service\n" + service + "\n"}
	}
	path := filepath.Join(d.home, ".config/systemd/user/serviced.socket")
	loaded := "LoadState=loaded\nFragmentPath=" + path
	asks := "systemctl --user show --property=Id"
	enable, restart := "systemctl --user --quiet enable", "systemctl --user --quiet restart"
	type answers map[string]outcome
	cases := map[string]struct {
		answers answers
		words   string
	}{
		"masked": {answers{asks: show("LoadState=masked", "")}, "is masked"},
		"elsewhere": {
			answers{asks: show("LoadState=loaded\nFragmentPath=/x/serviced.socket", "")}, "from /x/serviced.socket",
		},
		"not read": {answers{asks: show("LoadState=not-found\nLoadError=gone", "")}, "does not read " + path + ": gone"},
		"nonsense": {answers{asks: {out: "what?"}}, "cannot be read"},
		"enable fails": {
			answers{asks: show(loaded, ""), enable: {code: 1, errs: "one\nRead-only file system.\n"}},
			"systemctl enable: Read-only file system",
		},
		"restart fails": {answers{asks: show(loaded, ""), restart: {code: 1}}, "systemctl restart: no output"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: c.answers}
			_, err := newSystemd(d, "", f.run).install(t.Context())
			refusedWith(t, err, problem.CodeServiceManagerRefused, c.words)
		})
	}
	t.Run("a symbolic link at a unit's path", func(t *testing.T) {
		_ = os.Remove(path)
		if err := os.Symlink(os.DevNull, path); err != nil {
			t.Fatal(err)
		}
		_, err := newSystemd(d, "", (&fake{}).run).install(t.Context())
		refusedWith(t, err, problem.CodeServiceFile, "symbolic link")
		for sign, systemd := range map[string]bool{unitSign: true, plistSign: false} { // macOS has no systemctl
			var e *problem.Error
			if _, err := readOwn(path, sign); !errors.As(err, &e) || strings.Contains(e.FixHint, "systemctl") != systemd {
				t.Errorf("%s: %+v", sign, e)
			}
		}
	})
	t.Run("a path that no unit can contain", func(t *testing.T) {
		odd := d
		odd.program = "/a\nExecStart=/bin/evil"
		_, err := newSystemd(odd, "", (&fake{}).run).install(t.Context())
		refusedWith(t, err, problem.CodeServiceUnsupported, "control character")
		odd.program = "/it's/serviced"
		_, err = newSystemd(odd, "", (&fake{}).run).install(t.Context())
		refusedWith(t, err, problem.CodeServiceUnsupported, "/it's/serviced")
	})
}

func TestSystemdStates(t *testing.T) {
	type unit map[string]string
	inactive, active := unit{"ActiveState": "inactive"}, unit{"ActiveState": "active"}
	cases := []struct {
		socket, service unit
		state           string
		pid             int
	}{
		{inactive, inactive, StateStopped, 0},
		{active, inactive, StateListening, 0},
		{active, unit{"ActiveState": "active", "MainPID": "7"}, StateRunning, 7},
		{active, unit{"ActiveState": "activating", "MainPID": "7"}, StateRunning, 7},
		{active, unit{"ActiveState": "activating", "MainPID": "0"}, StateListening, 0},
		{unit{"ActiveState": "failed", "Result": "trigger-limit-hit"}, inactive, StateFailed, 0},
		{active, unit{"ActiveState": "failed", "Result": "exit-code"}, StateFailed, 0},
	}
	for _, c := range cases {
		if state, pid, _ := stateOf(shown{c.socket, c.service}); state != c.state || pid != c.pid {
			t.Errorf("%v %v: %s %d", c.socket, c.service, state, pid)
		}
	}
}

const launchdTarget = "gui/501/dev.service.serviced"

// The output of `launchctl print` for an agent that is not loaded, and for a running one.
var (
	notLoaded = outcome{code: 113, errs: "Could not find service"}
	running   = outcome{out: launchdTarget + " = {\n\tactive count = 1\n\tstate = running\n\n\tpid = 42\n" +
		"\tlast exit code = (never exited)\n}"}
)

func TestLaunchdInstall(t *testing.T) {
	d := here(t)
	f := &fake{answers: map[string]outcome{"launchctl print": notLoaded}}
	l := newLaunchd(d, 501, f.run)
	if r, err := l.status(t.Context()); err != nil || r.State != StateAbsent {
		t.Errorf("status before install: %+v, %v; want absent", r, err)
	}
	_, err := l.start(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")
	f.asked = nil
	r, err := l.install(t.Context())
	if err != nil || r.Change != Created || r.Program != d.program || !r.AtLogin || r.Outdated {
		t.Fatalf("install: %+v, %v; want the agent created", r, err)
	}
	want := []string{
		"launchctl print " + launchdTarget, "launchctl print " + launchdTarget, "launchctl bootstrap gui/501 " + l.path,
		"launchctl kickstart " + launchdTarget, "launchctl print " + launchdTarget,
	}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Error(diff)
	}

	f.answers["launchctl print"] = running
	if r, err := l.install(t.Context()); err != nil || r.Change != Unchanged || r.State != StateRunning || r.PID != 42 {
		t.Errorf("second install: %+v, %v; want the agent unchanged and running", r, err)
	}
	f.answers["launchctl"] = outcome{code: -1, err: exec.ErrNotFound}
	delete(f.answers, "launchctl print")
	_, err = l.install(t.Context())
	refusedWith(t, err, problem.CodeNoServiceManager, "launchctl was not found")
}

// TestLaunchdUpdate checks that the new agent is loaded only after launchd has unloaded the old one, which takes a
// while.
func TestLaunchdUpdate(t *testing.T) {
	f := &fake{answers: map[string]outcome{"launchctl print": running}}
	l := newLaunchd(here(t), 501, f.run)
	l.pause = 0
	writeOldAgent(t, l)
	if r, err := l.status(t.Context()); err != nil || !r.Outdated {
		t.Errorf("status with other content: %+v, %v; want it outdated", r, err)
	}
	f.asked = nil
	f.answers["launchctl bootout"] = outcome{code: inProgress, errs: "Boot-out failed: 36: Operation now in progress"}
	asked := 0
	l.run = func(ctx context.Context, program string, args ...string) outcome {
		if args[0] == "print" {
			if asked++; asked > 5 {
				f.answers["launchctl print"] = notLoaded
			}
		}
		if args[0] == "kickstart" {
			f.answers["launchctl print"] = running
			asked = -100
		}
		return f.run(ctx, program, args...)
	}
	r, err := l.install(t.Context())
	printed := "launchctl print " + launchdTarget
	want := []string{
		printed, printed, "launchctl bootout " + launchdTarget, printed, printed, printed,
		printed, // the agent is now unloaded
		printed, printed, "launchctl bootstrap gui/501 " + l.path, "launchctl kickstart " + launchdTarget, printed,
	}
	if diff := cmp.Diff(want, f.asked); err != nil || r.Change != Updated || diff != "" {
		t.Errorf("update: %+v, %v; commands (-want +got): %s", r, err, diff)
	}
}

func TestLaunchdUninstall(t *testing.T) {
	f := &fake{answers: map[string]outcome{"launchctl print": running}}
	l := newLaunchd(here(t), 501, f.run)
	writeOldAgent(t, l)
	f.answers["launchctl bootout"] = outcome{code: inProgress}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refusedWith(t, l.bootout(ctx), problem.CodeServiceManagerRefused, "launchctl bootout: ") // the unload never ends
	f.answers["launchctl bootout"] = outcome{code: 5, errs: "Boot-out failed: 5: Input/output error"}
	_, err := l.uninstall(t.Context())
	refusedWith(t, err, problem.CodeServiceManagerRefused, "Boot-out failed")
	delete(f.answers, "launchctl bootout")
	f.answers["launchctl print"] = notLoaded
	if r, err := l.uninstall(t.Context()); err != nil || r.Change != Removed {
		t.Errorf("uninstall: %+v, %v; want the agent removed", r, err)
	}
	_, err = l.uninstall(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")
}

// writeOldAgent writes the agent of another version.
func writeOldAgent(t *testing.T, l *launchd) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path, []byte(plistSign+" long ago -->"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLaunchdStates(t *testing.T) {
	for text, want := range map[string]string{
		"x = {\n\tstate = not running\n\tlast exit code = 1\n}":               StateFailed,
		"x = {\n\tstate = not running\n\tlast exit code = 0\n}":               StateStopped,
		"x = {\n\tstate = not running\n\tlast exit code = (never exited)\n}":  StateStopped,
		"x = {\n\tstate = running\n\tpid = 9\n\tspawn = {\n\t\tpid = 1\n\t}}": StateRunning,
	} {
		if state, pid, _ := printed(text); state != want || pid != map[bool]int{true: 9}[want == StateRunning] {
			t.Errorf("%q: %s %d", text, state, pid)
		}
	}
}

func TestSchedulerLife(t *testing.T) {
	d := here(t)
	missing := outcome{code: 1, errs: "ERROR: The system cannot find the file specified."}
	f := &fake{answers: map[string]outcome{"schtasks /Query": missing}}
	s := newScheduler(d, `DESK\ada`, f.run)
	_, err := s.start(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")
	_, err = s.uninstall(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")

	f.answers["schtasks /Create"] = outcome{code: 1, errs: "ERROR: Access is denied.\r\n"}
	_, err = s.install(t.Context())
	refusedWith(t, err, problem.CodeServiceManagerRefused, "schtasks /Create: ERROR: Access is denied")
	delete(f.answers, "schtasks /Create")

	f.answers["schtasks /Query"] = outcome{out: "\xff\xfe" + taskXML(d, `DESK\ada`)}
	f.asked = nil
	r, err := s.install(t.Context())
	if err != nil || r.Change != Unchanged || r.Program != d.program || r.State != StateUnknown || !r.AtLogin {
		t.Errorf("second install: %+v, %v; want the task unchanged", r, err)
	}
	got := strings.Join(f.asked, "\n")
	if strings.Contains(got, "/Create") || !strings.Contains(got, "schtasks /Run /TN serviced") {
		t.Error(got)
	}
	other := d
	other.program = filepath.Join(d.home, "gone", "serviced")
	f.answers["schtasks /Query"] = outcome{out: taskXML(other, "x")}
	_, err = s.start(t.Context())
	refusedWith(t, err, problem.CodeProgramMissing, "which does not exist")
	if r, err := s.status(t.Context()); err != nil || !r.Outdated || !r.ProgramMissing {
		t.Errorf("status after the program was moved: %+v, %v; want it outdated", r, err)
	}
	if r, err := s.uninstall(t.Context()); err != nil || r.Change != Removed || r.State != StateAbsent {
		t.Errorf("uninstall: %+v, %v; want the task removed", r, err)
	}
	other.usual = false
	_, err = newScheduler(other, "x", f.run).install(t.Context())
	refusedWith(t, err, problem.CodeServiceUnsupported, "default state directory")
}

// TestDirectoriesAreServicesOfTheirOwn checks that each state directory has a separate service.
func TestDirectoriesAreServicesOfTheirOwn(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	names := map[string]bool{}
	for _, dir := range []string{"", filepath.Join(home, ".service"), filepath.Join(home, "a"), filepath.Join(home, "b")} {
		t.Setenv("SERVICE_CONFIG_DIR", dir)
		d, err := describe()
		if err != nil {
			t.Fatal(err)
		}
		names[d.name] = true
		if d.usual != (d.name == Name) {
			t.Errorf("%s: %+v", dir, d)
		}
	}
	if len(names) != 3 {
		t.Errorf("names: %v", names)
	}
}

func TestOutputIsBounded(t *testing.T) {
	var b bounded
	for range 3 {
		if n, err := b.Write(make([]byte, maxOutput-1)); n != maxOutput-1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if b.Len() != maxOutput {
		t.Errorf("kept %d bytes of output, want maxOutput", b.Len())
	}
}
