package osservice

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// fromPackage returns a daemon that a package installed, and the folder of the package's units.
func fromPackage(t *testing.T) (d daemon, units string) {
	t.Helper()
	d = here(t)
	lib := filepath.Join(d.home, "usr", "lib")
	d.program = filepath.Join(lib, "service", "serviced")
	units = filepath.Join(lib, "systemd", "user")
	for path, text := range map[string]string{
		d.program: "", filepath.Join(units, "serviced.socket"): "[Socket]\n",
		filepath.Join(units, "serviced.service"): "[Service]\nExecStart=" + d.program + " run --managed\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return d, units
}

// enable links a unit as `systemctl --user enable` does, and returns the link.
func enable(t *testing.T, s *systemd, unit string) string {
	t.Helper()
	link := filepath.Join(s.dir, "sockets.target.wants", s.socket())
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(unit, link); err != nil {
		t.Fatal(err)
	}
	return link
}

var noBus = outcome{code: 1, errs: "Failed to connect to bus: No medium found\n"}

// Under su, sudo or cron, systemd does not respond. Uninstall still disables the package's socket, and status reports
// that it is enabled.
func TestPackagedUnits_SystemdDoesNotAnswer(t *testing.T) {
	d, units := fromPackage(t)
	s := newSystemd(d, "", (&fake{answers: map[string]outcome{"systemctl": noBus}}).run)
	link := enable(t, s, filepath.Join(units, "serviced.socket"))
	r, err := s.status(t.Context())
	if err != nil || r.State != StateUnknown || !r.AtLogin || !strings.Contains(r.Detail, "No medium found") {
		t.Errorf("status: %+v, %v; want unknown, at login, with the reason", r, err)
	}
	r, err = s.uninstall(t.Context())
	if err != nil || r.Change != Removed || !slices.Equal(r.Files, []string{link}) {
		t.Errorf("uninstall: %+v, %v; want %s removed", r, err, link)
	}
	if _, err := os.Lstat(link); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", link, err)
	}
	_, err = s.uninstall(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")

	other := filepath.Join(d.home, "mine.socket")
	link = enable(t, s, other)
	_, err = s.uninstall(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")
	if target, err := os.Readlink(link); target != other {
		t.Errorf("the person's link: %s, %v; want it kept", target, err)
	}
}

// A package's units that are not enabled do not count as an installed service, even if systemd is not available.
func TestPackagedUnits_NotEnabledWithoutSystemd(t *testing.T) {
	d, _ := fromPackage(t)
	for name, answer := range map[string]outcome{
		"no systemd": {code: -1, err: &exec.Error{Name: "systemctl", Err: exec.ErrNotFound}}, "no bus": noBus,
	} {
		s := newSystemd(d, "", (&fake{answers: map[string]outcome{"systemctl": answer}}).run)
		if r, err := s.status(t.Context()); err != nil || r.State != StateAbsent || r.Detail != "" {
			t.Errorf("%s: status %+v, %v; want not installed", name, r, err)
		}
	}
}

// A daemon from a package uses the package's units: install writes none and removes the units of an earlier install,
// and uninstall disables them. Another state directory still gets units of its own.
func TestSystemdUsesPackagedUnits(t *testing.T) {
	d, units := fromPackage(t)
	f := &fake{answers: map[string]outcome{}}
	show := func(enabled, active string) {
		f.asked = nil
		f.answers["systemctl --user show --property=Id"] = outcome{out: "Id=serviced.socket\nLoadState=loaded\n" +
			"FragmentPath=" + filepath.Join(units, "serviced.socket") + "\nUnitFileState=" + enabled +
			"\nActiveState=" + active + "\n\nId=serviced.service\nActiveState=inactive\n"}
	}
	s := newSystemd(d, "", func(ctx context.Context, program string, args ...string) outcome {
		o := f.run(ctx, program, args...)
		if slices.Contains(args, "enable") {
			asked := f.asked
			show("enabled", "active")
			f.asked = asked
		}
		return o
	})
	show("disabled", "inactive")
	if r, err := s.status(t.Context()); err != nil || r.State != StateAbsent {
		t.Errorf("status before install: %+v, %v; want not installed", r, err)
	}
	_, err := s.uninstall(t.Context())
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")

	// An earlier install wrote units. systemd loads that install's socket unit until it is removed.
	if _, _, err := s.files().write(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.status(t.Context()); err != nil || !r.Outdated {
		t.Errorf("status with own units: %+v, %v; want outdated", r, err)
	}
	show("disabled", "inactive")
	r, err := s.install(t.Context())
	if err != nil || r.Change != Updated {
		t.Errorf("install over own units: %+v, %v; want updated", r, err)
	}
	if left, err := s.files().read(); err != nil || len(left) != 0 {
		t.Errorf("own units are left: %v, %v", left, err)
	}
	if got := strings.Join(f.asked, "\n"); !strings.Contains(got, "systemctl --user --quiet enable serviced.socket") {
		t.Errorf("commands: %s", got)
	}

	show("enabled", "active")
	if r, err := s.install(t.Context()); err != nil || r.Change != Unchanged || r.State != StateListening || !r.AtLogin ||
		r.Program != d.program || len(r.Files) != 2 || filepath.Dir(r.Files[0]) != units || r.Outdated {
		t.Errorf("second install: %+v, %v", r, err)
	}
	if entries, err := os.ReadDir(s.dir); err == nil && len(entries) != 0 {
		t.Errorf("install wrote %v", entries)
	}
	if r, err := s.uninstall(t.Context()); err != nil || r.Change != Removed || len(r.Files) != 0 {
		t.Errorf("uninstall: %+v, %v", r, err)
	}
	if got := strings.Join(f.asked, "\n"); !strings.Contains(got, "systemctl --user --quiet disable serviced.socket") {
		t.Errorf("commands: %s", got)
	}
	for _, path := range []string{"serviced.socket", "serviced.service"} {
		if _, err := os.Stat(filepath.Join(units, path)); err != nil {
			t.Errorf("the package's unit: %v", err)
		}
	}

	d.usual, d.name = false, "serviced-1"
	if s := newSystemd(d, "", f.run); s.packaged != "" {
		t.Errorf("another state directory uses %s, want units of its own", s.packaged)
	}
	d.usual, d.name, d.program = true, "serviced", filepath.Join(d.home, "usr", "lib", "other", "serviced")
	if s := newSystemd(d, "", f.run); s.packaged != "" {
		t.Errorf("another program uses %s, want units of its own", s.packaged)
	}
}
