package usersystemd

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed inside.sh
var script string

const (
	// nobody is the ordinary user: not root, and no one's account.
	nobody = 65534
	// limit is how long a test may take inside.
	limit = 100 * time.Second
)

// Enter runs the calling test again under a user's systemd, with $HOME/tools and the programs of the directory bin before
// others in PATH. It gives true there, when systemd is up, and the test goes on; it gives false outside, once that run has passed.
// A run that failed fails the test. Where something that it needs is missing the test is skipped with the reason, and
// fails in CI, which has it all.
func Enter(t *testing.T, bin string) bool {
	t.Helper()
	if Inside() {
		boot(t)
		return true
	}
	program(t)
	for _, name := range []string{"systemctl", "unshare", "setpriv", "mount", "umount", "find"} {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, name, "apt-get install systemd util-linux")
		}
	}
	if os.Getuid() != 0 {
		missing(t, "root, whom a systemd of its own needs for namespaces,", "run the tests as root")
	}
	groups := cgroup2()
	if groups == "" {
		missing(t, "cgroup2, which systemd needs,", "mount it")
	}
	dir := directory(t)
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script, "sh", groups, dir, strconv.Itoa(nobody), exe, src, t.Name())
	cmd.Env = append(os.Environ(), "BIN="+bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if _, entered := os.Stat(filepath.Join(dir, "entered")); entered != nil {
		missing(t, "the right to make namespaces", fmt.Sprintf("run this on a machine that allows them: %v\n%s", err, out))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		journal, _ := os.ReadFile(filepath.Join(dir, "home", "systemd.log"))
		t.Fatalf("under systemd: %v\n%s\nsystemd's own words:\n%s", err, out, journal)
	}
	t.Logf("under systemd:\n%s", out)
	return false
}

// directory is the test's: home, run and tmp are the user's; the others are where the tree is bound to.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // short, for sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]int{"home": nobody, "run": nobody, "tmp": nobody, "exe": 0, "src": 0, "bin": 0} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// cgroup2 is where the unified hierarchy is mounted; empty for nowhere.
func cgroup2() string {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	return ""
}

// program is systemd itself.
func program(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/usr/lib/systemd/systemd", "/lib/systemd/systemd"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	missing(t, "systemd", "apt-get install systemd")
	return ""
}

// boot starts the user's systemd and waits until it is up. It ends with the process namespace.
func boot(t *testing.T) {
	t.Helper()
	log, err := os.Create(filepath.Join(os.Getenv("HOME"), "systemd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(t.Context(), program(t), "--user", "--log-target=console")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended by then
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, _ := exec.CommandContext(t.Context(), "systemctl", "--user", "is-system-running").Output()
		if s := strings.TrimSpace(string(out)); s == "running" || s == "degraded" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("systemd is not up: %s", out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "systemctl", "--user", "import-environment", "PATH").CombinedOutput(); err != nil {
		t.Fatalf("telling systemd of PATH: %v: %s", err, out) // as desktops do
	}
}
