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

	"github.com/service-dev/service/proto/rendezvous"
)

// fake is a service manager's command: it answers by the beginning of the command line and notes what was asked.
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

// here is a daemon whose home and program exist.
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
	d.paths = rendezvous.Paths{Dir: dir, Run: dir + "/run", Sockets: dir + "/run", Control: dir + "/run/control.sock", MCP: dir + "/run/mcp.sock"}
	return d
}

func refusedWith(t *testing.T, err error, code, words string) {
	t.Helper()
	var told *Error
	if !errors.As(err, &told) || told.Code != code || !strings.Contains(told.Message, words) || told.FixHint == "" {
		t.Errorf("got %#v (%v), want %s with %q and a next step", told, err, code, words)
	}
}

func TestSystemdThatDoesNotAnswer(t *testing.T) {
	cases := map[string]struct {
		answer outcome
		words  string
	}{
		"no systemd": {outcome{code: -1, err: &exec.Error{Name: "systemctl", Err: exec.ErrNotFound}}, "systemctl is not there"},
		"no bus":     {outcome{code: 1, errs: "Failed to connect to bus: No medium found\n"}, "no systemd answers for this user: Failed to connect to bus: No medium found"},
		"hangs":      {outcome{code: -1, err: context.DeadlineExceeded}, "deadline"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := here(t)
			f := &fake{answers: map[string]outcome{"systemctl": c.answer}}
			s := newSystemd(d, "", f.run)
			_, err := s.install(t.Context())
			refusedWith(t, err, CodeNoManager, c.words)
			if units, err := s.found(); err != nil || len(units) != 0 {
				t.Errorf("files were written: %v, %v", units, err)
			}
			_, err = s.start(t.Context())
			refusedWith(t, err, CodeNotInstalled, "not installed")

			if _, err := s.write(); err != nil { // installed in better days
				t.Fatal(err)
			}
			r, err := s.status(t.Context())
			if err != nil || r.State != StateUnknown || !strings.Contains(r.Detail, c.words) {
				t.Errorf("status: %+v, %v", r, err)
			}
			_, err = s.stop(t.Context())
			refusedWith(t, err, CodeNoManager, c.words)
			if r, err := s.uninstall(t.Context()); err != nil || r.Change != Removed || len(r.Files) != 2 {
				t.Errorf("uninstall: %+v, %v", r, err)
			}
			_, err = s.uninstall(t.Context())
			refusedWith(t, err, CodeNotInstalled, "not installed")
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
	cases := map[string]struct {
		answers     map[string]outcome
		code, words string
	}{
		"masked":        {map[string]outcome{"systemctl --user show --property=Id": show("LoadState=masked", "")}, CodeRefused, "is masked"},
		"elsewhere":     {map[string]outcome{"systemctl --user show --property=Id": show("LoadState=loaded\nFragmentPath=/x/serviced.socket", "")}, CodeRefused, "from /x/serviced.socket"},
		"not read":      {map[string]outcome{"systemctl --user show --property=Id": show("LoadState=not-found\nLoadError=gone", "")}, CodeRefused, "does not read " + path + ": gone"},
		"no sense":      {map[string]outcome{"systemctl --user show --property=Id": {out: "what?"}}, CodeRefused, "cannot be read"},
		"enable fails":  {map[string]outcome{"systemctl --user show --property=Id": show(loaded, ""), "systemctl --user --quiet enable": {code: 1, errs: "one\nRead-only file system.\n"}}, CodeRefused, "systemctl enable: Read-only file system"},
		"restart fails": {map[string]outcome{"systemctl --user show --property=Id": show(loaded, ""), "systemctl --user --quiet restart": {code: 1}}, CodeRefused, "systemctl restart: it said nothing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fake{answers: c.answers}
			_, err := newSystemd(d, "", f.run).install(t.Context())
			refusedWith(t, err, c.code, c.words)
		})
	}
	t.Run("a link in place of a unit", func(t *testing.T) {
		_ = os.Remove(path)
		if err := os.Symlink(os.DevNull, path); err != nil {
			t.Fatal(err)
		}
		_, err := newSystemd(d, "", (&fake{}).run).install(t.Context())
		refusedWith(t, err, CodeFile, "symbolic link")
		for sign, systemd := range map[string]bool{unitSign: true, plistSign: false} { // a Mac has no systemctl
			var e *Error
			if _, err := own(path, sign); !errors.As(err, &e) || strings.Contains(e.FixHint, "systemctl") != systemd {
				t.Errorf("%s: %+v", sign, e)
			}
		}
	})
	t.Run("a path that no unit can hold", func(t *testing.T) {
		odd := d
		odd.program = "/a\nExecStart=/bin/evil"
		_, err := newSystemd(odd, "", (&fake{}).run).install(t.Context())
		refusedWith(t, err, CodeUnsupported, "control character")
		odd.program = "/it's/serviced"
		_, err = newSystemd(odd, "", (&fake{}).run).install(t.Context())
		refusedWith(t, err, CodeUnsupported, "/it's/serviced")
	})
}

func TestSystemdStates(t *testing.T) {
	cases := []struct {
		socket, service map[string]string
		state           string
		pid             int
	}{
		{map[string]string{"ActiveState": "inactive"}, map[string]string{"ActiveState": "inactive"}, StateStopped, 0},
		{map[string]string{"ActiveState": "active"}, map[string]string{"ActiveState": "inactive"}, StateListening, 0},
		{map[string]string{"ActiveState": "active"}, map[string]string{"ActiveState": "active", "MainPID": "7"}, StateRunning, 7},
		{map[string]string{"ActiveState": "active"}, map[string]string{"ActiveState": "activating", "MainPID": "7"}, StateRunning, 7},
		{map[string]string{"ActiveState": "active"}, map[string]string{"ActiveState": "activating", "MainPID": "0"}, StateListening, 0},
		{map[string]string{"ActiveState": "failed", "Result": "trigger-limit-hit"}, map[string]string{"ActiveState": "inactive"}, StateFailed, 0},
		{map[string]string{"ActiveState": "active"}, map[string]string{"ActiveState": "failed", "Result": "exit-code"}, StateFailed, 0},
	}
	for _, c := range cases {
		if state, pid, _ := stateOf(shown{c.socket, c.service}); state != c.state || pid != c.pid {
			t.Errorf("%v %v: %s %d", c.socket, c.service, state, pid)
		}
	}
}

func TestLaunchdLife(t *testing.T) {
	d := here(t)
	const target = "gui/501/dev.service.serviced"
	f := &fake{answers: map[string]outcome{"launchctl print": {code: 113, errs: "Could not find service"}}}
	l := newLaunchd(d, 501, f.run)
	if r, err := l.status(t.Context()); err != nil || r.State != StateAbsent {
		t.Errorf("before: %+v, %v", r, err)
	}
	_, err := l.start(t.Context())
	refusedWith(t, err, CodeNotInstalled, "not installed")
	f.asked = nil
	r, err := l.install(t.Context())
	if err != nil || r.Change != Created || r.Program != d.program || !r.AtLogin || r.Outdated {
		t.Fatalf("install: %+v, %v", r, err)
	}
	want := []string{
		"launchctl print " + target, "launchctl print " + target, "launchctl bootstrap gui/501 " + l.path,
		"launchctl kickstart " + target, "launchctl print " + target,
	}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Error(diff)
	}

	loaded := outcome{out: target + " = {\n\tactive count = 1\n\tstate = running\n\n\tpid = 42\n\tlast exit code = (never exited)\n}"}
	f.answers["launchctl print"] = loaded
	if r, err := l.install(t.Context()); err != nil || r.Change != Unchanged || r.State != StateRunning || r.PID != 42 {
		t.Errorf("again: %+v, %v", r, err)
	}
	if err := os.WriteFile(l.path, []byte(plistSign+" long ago -->"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := l.status(t.Context()); err != nil || !r.Outdated {
		t.Errorf("other content: %+v, %v", r, err)
	}
	// Unloading goes on for a while; only then the new one is loaded.
	f.asked = nil
	f.answers["launchctl bootout"] = outcome{code: underWay, errs: "Boot-out failed: 36: Operation now in progress"}
	gone, looks := outcome{code: 113, errs: "Could not find service"}, 0
	l.pause = 0
	l.run = func(ctx context.Context, program string, args ...string) outcome {
		if args[0] == "print" {
			if looks++; looks > 4 {
				f.answers["launchctl print"] = gone
			}
		}
		if args[0] == "kickstart" {
			f.answers["launchctl print"] = loaded
			looks = -100
		}
		return f.run(ctx, program, args...)
	}
	r, err = l.install(t.Context())
	want = []string{
		"launchctl print " + target, "launchctl bootout " + target,
		"launchctl print " + target, "launchctl print " + target, "launchctl print " + target, "launchctl print " + target, // the last says it is gone
		"launchctl print " + target, "launchctl print " + target, "launchctl bootstrap gui/501 " + l.path, "launchctl kickstart " + target, "launchctl print " + target,
	}
	if diff := cmp.Diff(want, f.asked); err != nil || r.Change != Updated || diff != "" {
		t.Errorf("update: %+v, %v: %s", r, err, diff)
	}
	l.run = f.run
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refusedWith(t, l.bootout(ctx), CodeRefused, "launchctl bootout: ") // for it never ends
	f.answers["launchctl bootout"] = outcome{code: 5, errs: "Boot-out failed: 5: Input/output error"}
	_, err = l.uninstall(t.Context())
	refusedWith(t, err, CodeRefused, "Boot-out failed")
	delete(f.answers, "launchctl bootout")
	f.answers["launchctl print"] = gone
	if r, err := l.uninstall(t.Context()); err != nil || r.Change != Removed {
		t.Errorf("uninstall: %+v, %v", r, err)
	}
	_, err = l.uninstall(t.Context())
	refusedWith(t, err, CodeNotInstalled, "not installed")
	f.answers["launchctl"] = outcome{code: -1, err: exec.ErrNotFound}
	delete(f.answers, "launchctl print")
	_, err = l.install(t.Context())
	refusedWith(t, err, CodeNoManager, "launchctl is not there")
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
	f := &fake{answers: map[string]outcome{"schtasks /Query": {code: 1, errs: "ERROR: The system cannot find the file specified."}}}
	s := newScheduler(d, `DESK\ada`, f.run)
	_, err := s.start(t.Context())
	refusedWith(t, err, CodeNotInstalled, "not installed")
	_, err = s.uninstall(t.Context())
	refusedWith(t, err, CodeNotInstalled, "not installed")

	f.answers["schtasks /Create"] = outcome{code: 1, errs: "ERROR: Access is denied.\r\n"}
	_, err = s.install(t.Context())
	refusedWith(t, err, CodeRefused, "schtasks /Create: ERROR: Access is denied")
	delete(f.answers, "schtasks /Create")

	f.answers["schtasks /Query"] = outcome{out: "\xff\xfe" + taskXML(d, `DESK\ada`)}
	f.asked = nil
	r, err := s.install(t.Context())
	if err != nil || r.Change != Unchanged || r.Program != d.program || r.State != StateUnknown || !r.AtLogin {
		t.Errorf("again: %+v, %v", r, err)
	}
	if got := strings.Join(f.asked, "\n"); strings.Contains(got, "/Create") || !strings.Contains(got, "schtasks /Run /TN serviced") {
		t.Error(got)
	}
	other := d
	other.program = filepath.Join(d.home, "gone", "serviced")
	f.answers["schtasks /Query"] = outcome{out: taskXML(other, "x")}
	_, err = s.start(t.Context())
	refusedWith(t, err, CodeProgram, "which is not there")
	if r, err := s.status(t.Context()); err != nil || !r.Outdated || !r.ProgramMissing {
		t.Errorf("moved: %+v, %v", r, err)
	}
	if r, err := s.uninstall(t.Context()); err != nil || r.Change != Removed || r.State != StateAbsent {
		t.Errorf("uninstall: %+v, %v", r, err)
	}
	other.usual = false
	_, err = newScheduler(other, "x", f.run).install(t.Context())
	refusedWith(t, err, CodeUnsupported, "default directory")
}

// TestDirectoriesAreServicesOfTheirOwn: two directories are two daemons.
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
		t.Errorf("%d bytes", b.Len())
	}
}
