//go:build unix

package osservice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kardianos/service"

	"github.com/service-dev/service/internal/problem"
)

// fake is a service manager that registers files. If install fails, it leaves its file behind.
type fake struct {
	path, text string
	fails      map[string]bool
	running    bool
	calls      []string
}

func (f *fake) do(action string) error {
	f.calls = append(f.calls, action)
	if f.fails[action] {
		return errors.New("no " + action)
	}
	return nil
}

func (f *fake) Install() error {
	if err := os.WriteFile(f.path, []byte(f.text), 0o600); err != nil {
		return err
	}
	return f.do("install")
}

func (f *fake) Uninstall() error {
	if err := f.do("uninstall"); err != nil {
		return err
	}
	return os.Remove(f.path)
}

func (f *fake) Start() error {
	f.running = !f.fails["start"]
	return f.do("start")
}

func (f *fake) Stop() error {
	f.running = false
	return f.do("stop")
}

func (f *fake) Restart() error { return f.do("restart") }

func (f *fake) Status() (service.Status, error) {
	if f.running {
		return service.StatusRunning, nil
	}
	return service.StatusStopped, nil
}

// in returns an OpenRC manager with its files in a temporary directory, and its fake service.
func in(t *testing.T) (manager, *fake) {
	t.Helper()
	dir := t.TempDir()
	m := managers()["linux-openrc"]
	m.path, m.boot, m.links = filepath.Join(dir, Name), "", filepath.Join(dir, "S??"+Name)
	return m, &fake{path: m.path, text: m.text(sample), fails: map[string]bool{}}
}

func TestRegister_CreatesUpdatesAndLeavesAlone(t *testing.T) {
	m, f := in(t)
	if _, _, err := m.read(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	change, err := m.register(t.Context(), f, sample, registered{})
	if err != nil || change != Created {
		t.Fatalf("got %q, %v; want created", change, err)
	}
	if info, err := os.Stat(m.path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v; want mode 0755", info, err)
	}
	text, s, err := m.read()
	if diff := cmp.Diff(sample, s); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if change, err := m.register(t.Context(), f, sample, registered{text: text}); err != nil || change != Unchanged {
		t.Errorf("got %q, %v; want unchanged", change, err)
	}
	f.running, f.calls = true, nil
	if change, err := m.register(t.Context(), f, sample, registered{text: text + "# changed\n"}); err != nil || change != Updated {
		t.Errorf("got %q, %v; want updated", change, err)
	}
	if diff := cmp.Diff([]string{"stop", "uninstall", "install"}, f.calls); diff != "" {
		t.Error(diff)
	}
	m.boot = filepath.Join(t.TempDir(), "none") // not enabled: disabled by the user, or install was interrupted
	if change, err := m.register(t.Context(), f, sample, registered{text: text}); err != nil || change != Updated {
		t.Errorf("got %q, %v; want updated", change, err)
	}
}

func TestRegister_LeavesNothingHalfDone(t *testing.T) {
	m, f := in(t)
	f.fails["install"] = true
	_, err := m.register(t.Context(), f, sample, registered{})
	refused(t, err, problem.CodeServiceManagerRefused)
	if _, err := os.Stat(m.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat after a failed registration: got %v, want not exist", err)
	}
	f.fails["uninstall"] = true // unregistering fails as well
	_, err = m.register(t.Context(), f, sample, registered{})
	refused(t, err, problem.CodeServiceManagerRefused)
	if _, err := os.Stat(m.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat after a failed registration: got %v, want not exist", err)
	}
}

// TestRegister_RestoresWhatRanBeforeAFailedUpdate fails each step of an update in turn.
func TestRegister_RestoresWhatRanBeforeAFailedUpdate(t *testing.T) {
	for _, step := range []string{"stop", "uninstall", "install"} {
		for _, runs := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s fails, running: %v", step, runs), func(t *testing.T) {
				m, f := in(t)
				old := sample
				old.Program = filepath.Join(t.TempDir(), "old")
				if err := os.WriteFile(old.Program, nil, 0o755); err != nil {
					t.Fatal(err)
				}
				was := &fake{path: m.path, text: m.text(old) + "# of an earlier version\n", fails: map[string]bool{}}
				before := registered{text: was.text, spec: old, control: was, runs: runs}
				if err := m.create(was); err != nil {
					t.Fatal(err)
				}
				f.running, f.fails[step] = runs || step == "stop", true
				_, err := m.register(t.Context(), f, sample, before)
				refused(t, err, problem.CodeServiceManagerRefused)
				if text, _, err := m.read(); err != nil || text != was.text {
					t.Errorf("got description %q, %v; want the previous one", text, err)
				}
				if info, err := os.Stat(m.path); err != nil || info.Mode().Perm() != m.mode {
					t.Errorf("got file %v, %v; want the manager's mode", info, err)
				}
				if was.running != runs {
					t.Errorf("after the failed update, running is %v, want the state before it", was.running)
				}
			})
		}
	}
}

// TestRegister_KeepsTheDescriptionItCannotRestore checks that the previous settings remain in the file that the next
// install reads, and that the error names both failures.
func TestRegister_KeepsTheDescriptionItCannotRestore(t *testing.T) {
	m, f := in(t)
	was := &fake{path: m.path, text: f.text + "# old\n", fails: map[string]bool{}}
	if err := m.create(was); err != nil {
		t.Fatal(err)
	}
	f.fails["install"], was.fails["install"] = true, true
	_, err := m.register(t.Context(), f, sample, registered{text: was.text, spec: sample, control: was, runs: true})
	refused(t, err, problem.CodeServiceManagerRefused)
	if strings.Count(err.Error(), "no install") != 2 {
		t.Error(err)
	}
	if text, _, err := m.read(); err != nil || text != was.text {
		t.Errorf("got description %q, %v; want the previous one", text, err)
	}
}

func TestUninstall_KeepsDataAndRemovesLinks(t *testing.T) {
	m, f := in(t)
	s := sample
	dir := t.TempDir()
	s.Settings, s.Data = filepath.Join(dir, "backend.yaml"), filepath.Join(dir, "data")
	link := filepath.Join(filepath.Dir(m.path), "S50"+Name)
	err := errors.Join(os.WriteFile(s.Settings, nil, 0o600), os.Mkdir(s.Data, 0o700), os.Symlink(m.path, link))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.register(t.Context(), f, s, registered{}); err != nil {
		t.Fatal(err)
	}
	f.running = true
	r, err := m.uninstall(t.Context(), f, s)
	if diff := cmp.Diff([]string{s.Settings, s.Data}, r.Kept); err != nil || r.Change != Removed || diff != "" {
		t.Errorf("%+v, %v\n%s", r, err, diff)
	}
	for _, path := range []string{m.path, link} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat %s after uninstall: got %v, want not exist", path, err)
		}
	}
	if f.running {
		t.Error("the service is still running after uninstall")
	}
}

func TestRead_RefusesWhatOthersInstalled(t *testing.T) {
	m, _ := in(t)
	if err := os.WriteFile(m.path, []byte("#!/sbin/openrc-run\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, _, err := m.read()
	refused(t, err, problem.CodeServiceNotOurs)
	if err := errors.Join(os.Remove(m.path), os.Symlink(os.DevNull, m.path)); err != nil {
		t.Fatal(err)
	}
	_, _, err = m.read()
	refused(t, err, problem.CodeServiceNotOurs)
	if err := os.Remove(m.path); err != nil {
		t.Fatal(err)
	}
	m.others = []string{filepath.Join(t.TempDir(), "packaged.service")}
	if err := os.WriteFile(m.others[0], []byte(m.text(sample)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _, err = m.read()
	refused(t, err, problem.CodeServiceNotOurs)
	for dir, step := range map[string]string{"/usr/lib/systemd/system": "systemctl enable --now", "/run/systemd/system": "remove it first"} {
		var told *problem.Error
		if err := m.foreign(dir + "/service-backend.service"); !errors.As(err, &told) || !strings.Contains(told.FixHint, step) {
			t.Errorf("a unit in %s: %+v, want the step %q", dir, told, step)
		}
	}
	// Files from an earlier install can still be removed after a package has added a unit.
	if err := os.WriteFile(m.path, []byte(m.text(sample)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, s, err := m.read(); err != nil || s.Program != sample.Program {
		t.Errorf("own description beside a package's: %+v, %v", s, err)
	}
}

// TestDetect_RefusesAServiceManagerThatDoesNotRun simulates each manager first as installed only, then as running.
func TestDetect_RefusesAServiceManagerThatDoesNotRun(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := os.WriteFile(filepath.Join(os.Getenv("PATH"), "service"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for platform, runs := range map[string][]string{
		"linux-systemd": {"run/systemd/system"}, "linux-openrc": {"run/openrc"}, "unix-systemv": {"proc/1", "etc/init.d"},
	} {
		root := t.TempDir()
		_, err := detect(platform, root)
		refused(t, err, problem.CodeNoServiceManager)
		for _, dir := range runs {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if platform == "unix-systemv" {
			_, err := detect(platform, root) // as in a container
			refused(t, err, problem.CodeNoServiceManager)
			if err := os.WriteFile(filepath.Join(root, "proc/1/comm"), []byte("init\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := detect(platform, root); err != nil || m.name != Name {
			t.Errorf("%s: %+v, %v", platform, m, err)
		}
	}
	for _, platform := range []string{"", "linux-upstart", "linux-procd", "linux-rcs"} {
		_, err := detect(platform, t.TempDir())
		refused(t, err, problem.CodeNoServiceManager)
	}
}

func TestStart_RefusesAProgramThatIsGone(t *testing.T) {
	m, f := in(t)
	s := sample
	s.Program = filepath.Join(t.TempDir(), "gone")
	refused(t, m.start(t.Context(), f, s), problem.CodeServiceFile)
	s.Program = f.path
	if err := os.WriteFile(s.Program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	f.fails["start"] = true
	refused(t, m.start(t.Context(), f, s), problem.CodeServiceManagerRefused)
}

func TestUserCommands(t *testing.T) {
	has := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if strings.Contains(strings.Join(names, " "), name) {
				return name, nil
			}
			return "", exec.ErrNotFound
		}
	}
	got := map[string][][]string{}
	for name, look := range map[string]func(string) (string, error){"shadow": has("useradd"), "BusyBox": has("adduser")} {
		commands, err := userCommands(sample, "linux", look)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = commands
	}
	want := map[string][][]string{
		"shadow": {{
			"useradd", "--system", "--user-group", "--no-create-home", "--home-dir", sample.Data,
			"--shell", "/usr/sbin/nologin", Name,
		}},
		"BusyBox": {
			{"addgroup", "-S", Name},
			{"adduser", "-S", "-D", "-H", "-h", sample.Data, "-s", "/sbin/nologin", "-G", Name, Name},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err := userCommands(sample, "linux", has())
	refused(t, err, problem.CodeServiceUser)
	_, err = userCommands(sample, "darwin", has("useradd"))
	refused(t, err, problem.CodeServiceUser)
	var e *problem.Error
	if !errors.As(err, &e) || !strings.Contains(e.FixHint, "sudo sysadminctl -addUser") {
		t.Errorf("want the command for macOS in the fix hint: %v", err)
	}
}
