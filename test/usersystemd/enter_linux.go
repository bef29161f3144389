package usersystemd

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed inside.sh
var userScript string

//go:embed system.sh
var systemScript string

const (
	// nobody is an ordinary user without privileges or an account.
	nobody = 65534
	// limit is the maximum duration of a test under systemd.
	limit = 5 * time.Minute
)

// Enter runs the calling test again under the systemd of an ordinary user, with $HOME/tools and the directory bin
// first in PATH. It returns true in that second run, once systemd is running, and false in the first one after the
// second one has passed. If the run fails, the test fails. If a requirement is missing, Enter skips the test with the
// reason, or fails it in CI.
func Enter(t *testing.T, bin string) bool {
	t.Helper()
	if Inside() {
		boot(t)
		return true
	}
	run(t, bin, userScript, "setpriv")
	return false
}

// EnterSystem runs the calling test again as root under a system-wide systemd, with the programs of the directory bin
// in /usr/local/bin and a separate network. /etc and /var are the machine's own, but changes to them disappear when
// the test ends. Otherwise it works like Enter.
func EnterSystem(t *testing.T, bin string) bool {
	t.Helper()
	if Inside() {
		if err := raiseLoopback(); err != nil {
			t.Fatalf("raise the loopback interface: %v", err)
		}
		return true
	}
	run(t, bin, systemScript)
	return false
}

// raiseLoopback activates the interface lo of a new network namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// run runs the calling test inside the environment that script sets up, or skips it if the machine lacks one of the
// tools.
func run(t *testing.T, bin, script string, tools ...string) {
	t.Helper()
	systemd := program(t)
	for _, name := range append(tools, "systemctl", "unshare", "mount", "umount", "find") {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, name, "apt-get install systemd util-linux")
		}
	}
	if os.Getuid() != 0 {
		missing(t, "root, which systemd needs for namespaces,", "run the tests as root")
	}
	groups := cgroup2()
	if groups == "" {
		missing(t, "cgroup2, which systemd needs,", "mount it")
	}
	dir := directory(t)
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, noProgram := os.Executable()
	src, noDirectory := os.Getwd()
	if err := errors.Join(noProgram, noDirectory); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script, "sh", groups, dir, strconv.Itoa(nobody), exe, src, t.Name())
	cmd.Env = append(os.Environ(), "BIN="+bin, "SYSTEMD="+systemd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if _, entered := os.Stat(filepath.Join(dir, "entered")); entered != nil {
		missing(t, "permission to create namespaces", fmt.Sprintf("run this on a machine that allows them: %v\n%s", err, out))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		journal, _ := os.ReadFile(filepath.Join(dir, "home", "systemd.log"))
		t.Fatalf("the test failed under systemd: %v\n%s\nsystemd's log:\n%s", err, out, journal)
	}
	t.Logf("under systemd:\n%s", out)
}

// directory creates the test's directory. home, run and tmp belong to the user; the other directories are mount
// points.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // short, because it contains sockets
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

// cgroup2 returns the mount point of the unified hierarchy, or "".
func cgroup2() string {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	return ""
}

// program returns the path of systemd.
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

// boot starts the user's systemd and waits until it is running. The systemd ends with the process namespace.
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
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended before this
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, _ := exec.CommandContext(t.Context(), "systemctl", "--user", "is-system-running").Output()
		if s := strings.TrimSpace(string(out)); s == "running" || s == "degraded" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("systemd did not start: %s", out)
		}
	}
	cmd = exec.CommandContext(t.Context(), "systemctl", "--user", "import-environment", "PATH")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pass PATH to systemd: %v: %s", err, out) // desktops do the same
	}
}
