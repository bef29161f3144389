//go:build unix

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// TestDoctorSeesWhatStopsTheSwitches checks that doctor reports every cause that makes decline-privacy and purge fail,
// because their errors refer to doctor.
func TestDoctorSeesWhatStopsTheSwitches(t *testing.T) {
	d := start(t, short(t), Options{})
	at := func(path ...string) string {
		return filepath.Join(append([]string{d.paths.Dir, "telemetry"}, path...)...)
	}
	lock := func(path string) func() error {
		return func() error { return os.Chmod(path, 0o500) }
	}
	cases := []struct {
		name, check, says string
		spoil             func() error
		asRoot            bool // whether it is a failure for root as well
	}{
		{"spool is a file", "telemetry", "spool must be a directory",
			func() error { return os.WriteFile(at("spool"), nil, 0o600) }, true},
		{"spool leads elsewhere", "telemetry", "spool must be a directory",
			func() error { return os.Symlink(t.TempDir(), at("spool")) }, true},
		{"log is a directory", "telemetry", "events.jsonl must be a regular file",
			func() error { return os.Mkdir(at("events.jsonl"), 0o700) }, true},
		{"telemetry cannot be written to", "telemetry", "permission denied", lock(at()), false},
		{"state directory cannot be written to", "state directory", "permission denied", lock(d.paths.Dir), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !c.asRoot && os.Getuid() == 0 {
				t.Skip("SKIPPED: root may write anywhere; the test under systemd covers this as an ordinary user")
			}
			t.Cleanup(func() {
				for _, dir := range []string{d.paths.Dir, at()} {
					_ = os.Chmod(dir, 0o700)
				}
			})
			if err := os.RemoveAll(at()); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(at(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(); err != nil {
				t.Fatal(err)
			}
			r, err := controltest.Call(t.Context(), d.ctl, control.RunDoctor, control.None{})
			if err != nil {
				t.Fatal(err)
			}
			seen := false
			for _, check := range r.Checks {
				if check.Name == c.check {
					seen = check.State == "fail" && strings.Contains(check.Detail, c.says) && check.Fix != ""
				}
			}
			if !seen {
				t.Errorf("doctor does not report the fault: %v", r.Checks)
			}
		})
	}
}

// TestDoctor_ReportsDamageOnce damages the file that contains all adapters, which is also the daemon's program. Once
// the service is installed again, in another folder, the next step is to restart this daemon.
func TestDoctor_ReportsDamageOnce(t *testing.T) {
	root := t.TempDir()
	dir, other, current := filepath.Join(root, "1.0.0"), filepath.Join(root, "1.0.0.2"), filepath.Join(root, "current")
	for _, folder := range []string{dir, other} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	point := func(to string) {
		t.Helper()
		_ = os.Remove(current)
		if err := os.Symlink(to, current); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "serviced")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("whole")
	if err := list(dir, "serviced"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "serviced"), []byte("whole"), 0o755); err != nil {
		t.Fatal(err)
	}
	point(dir)
	now, running := time.Now(), programAt(filepath.Join(current, "serviced"))
	host, err := pluginhost.New(pluginhost.Options{
		Dir: dir, ConfigDir: t.TempDir(), Now: func() time.Time { return now }, Elsewhere: running.isElsewhere,
	})
	if err != nil {
		t.Fatal(err)
	}
	checks := checkAdapters(host.Plugins(), host.Check(), now)
	if adapters := len(host.Plugins()); len(checks) != adapters || checks[0].State != checkOK {
		t.Errorf("with whole files: %+v, want %d that are fine", checks, adapters)
	}
	if c := checkProgram(running, false); c.State != checkOK {
		t.Errorf("with whole files: %+v", c)
	}
	write("damaged")
	if c := checkProgram(running, true); c.State != checkWarn || !strings.HasPrefix(c.Fix, "Do not restart") {
		t.Errorf("with a damaged program: %+v, want the daemon to keep running", c)
	}
	for _, c := range []struct {
		age              time.Duration
		current          string
		state, says, fix string
	}{
		{0, dir, checkWarn, "an upgrade is being installed", "Try again"},
		{time.Hour, dir, checkFail, "the checksum of " + program, "Install the service again"},
		{time.Hour, other, checkFail, "the checksum of " + program, "servicectl daemon restart"},
	} {
		now = time.Now().Add(c.age)
		point(c.current)
		checks = checkAdapters(host.Plugins(), host.Check(), now)
		if len(checks) != 1 || checks[0].Name != "adapters" || checks[0].State != c.state ||
			!strings.Contains(checks[0].Detail, c.says) || !strings.Contains(checks[0].Detail, "backendhttp, backendlocal") ||
			!strings.Contains(checks[0].Fix, c.fix) {
			t.Errorf("%v later: %+v, want one check of state %s with %q and %q", c.age, checks, c.state, c.says, c.fix)
		}
	}
	c := checkProgram(running, true)
	if c.State != checkWarn || !strings.HasPrefix(c.Fix, "Run `servicectl daemon restart`") {
		t.Errorf("with a whole program elsewhere: %+v, want a restart", c)
	}
}
