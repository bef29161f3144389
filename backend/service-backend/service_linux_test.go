package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/test/reaper"
	"github.com/service-dev/service/test/usersystemd"
)

// bin is the directory of the program under test.
var bin string

func TestMain(m *testing.M) { os.Exit(reaper.Run(func() int { return runTests(m) })) }

func runTests(m *testing.M) int {
	if usersystemd.Inside() {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "backend-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "service-backend"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build service-backend: %v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

const (
	program  = "/usr/local/bin/service-backend"
	unitFile = "/etc/systemd/system/service-backend.service"
	settings = "/etc/service/backend.yaml"
	dataDir  = "/var/lib/service-backend"
)

// outcome is the output of one command.
type outcome struct {
	code        int
	out, errOut string
}

// service runs `service-backend service ...` and fails the test if the exit code is not want.
func service(t *testing.T, want int, args ...string) outcome {
	t.Helper()
	return run(t, want, exec.Command(program, append([]string{"service"}, args...)...))
}

func run(t *testing.T, want int, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	o := outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
	if o.code != want {
		t.Fatalf("%v: exit code %d (%v), want %d\n%s%s", cmd.Args, o.code, err, want, o.out, o.errOut)
	}
	t.Logf("%v:\n%s%s", cmd.Args[1:], o.out, o.errOut)
	return o
}

// report is the part of the --json output that the tests read.
type report struct {
	State, Change, User, Detail string
	AtBoot, Outdated            bool
	PID                         int
	Created, Kept               []string
}

func serviceJSON(t *testing.T, want int, action string, args ...string) report {
	t.Helper()
	var r report
	o := service(t, want, append([]string{action, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(o.out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing from:\n%s", part, text)
		}
	}
}

func healthy(t *testing.T) {
	t.Helper()
	resp, err := http.Get("http://localhost:8080/api/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health: %s", resp.Status)
	}
}

// until polls the state of the service.
func until(t *testing.T, what string, ok func(report) bool) report {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		out, _ := exec.Command(program, "service", "status", "--json").Output()
		var r report
		if json.Unmarshal(out, &r) == nil && ok(r) {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service did not become %s: %s", what, out)
		}
	}
}

// TestServiceUnderSystemd installs, uses and uninstalls the service like an operator.
func TestServiceUnderSystemd(t *testing.T) {
	t.Parallel()
	if !usersystemd.EnterSystem(t, bin) {
		return
	}
	o := service(t, 1, "status")
	contains(t, o.out, "service     not installed")
	contains(t, o.errOut, "next: run `service-backend service install`")
	for _, action := range []string{"start", "stop", "restart", "uninstall"} {
		contains(t, service(t, 1, action).errOut, "the service is not installed",
			"next: run `service-backend service install`")
	}

	o = service(t, 0, "install")
	contains(t, o.out, "The service is installed.", "running, pid ", "systemd, as service-backend", "at boot     yes",
		program, settings, dataDir, "user service-backend", "/etc/service/hmac.key")
	healthy(t)
	checkPrivacy(t)

	again := serviceJSON(t, 0, "install")
	if again.Change != "unchanged" || len(again.Created) != 0 || again.State != "running" {
		t.Errorf("a second install: got %+v, want no change", again)
	}
	status := serviceJSON(t, 0, "status")
	if status.PID != again.PID || !status.AtBoot || status.Outdated || status.User != "service-backend" {
		t.Errorf("got status %+v, want the same process, started at boot", status)
	}

	contains(t, service(t, 0, "stop").out, "service     stopped")
	service(t, 1, "status")
	service(t, 0, "stop") // a second time
	service(t, 0, "start")
	healthy(t)
	before := serviceJSON(t, 0, "status").PID
	if after := serviceJSON(t, 0, "restart").PID; after == before || after == 0 {
		t.Errorf("restart: got pid %d after %d, want another process", after, before)
	}

	crashed := serviceJSON(t, 0, "status").PID
	if err := syscall.Kill(crashed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "running again", func(r report) bool { return r.State == "running" && r.PID != crashed && r.PID > 0 })
	healthy(t)

	o = service(t, 0, "uninstall")
	contains(t, o.out, "no longer installed", settings, "/etc/service/hmac.key", dataDir)
	for _, path := range []string{unitFile, "/etc/systemd/system/multi-user.target.wants/service-backend.service"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s remains after uninstall", path)
		}
	}
	kept := []string{settings, "/etc/service/hmac.key", "/etc/service/credentials.key", dataDir + "/service.db"}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	service(t, 1, "uninstall")
	if r := serviceJSON(t, 0, "install"); r.Change != "created" || len(r.Created) != 0 { // uninstall kept the files
		t.Errorf("installed again: got %+v, want no new files", r)
	}
	healthy(t)
}

// checkPrivacy looks for the keys in all places that other users of the machine can read.
func checkPrivacy(t *testing.T) {
	t.Helper()
	for path, mode := range map[string]os.FileMode{
		"/etc/service/hmac.key": 0o400, "/etc/service/credentials.key": 0o400, settings: 0o600, dataDir: 0o700,
		dataDir + "/service.db": 0o600, unitFile: 0o644,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), mode)
		}
		if root := info.Sys().(*syscall.Stat_t).Uid == 0; root != (path == unitFile) {
			t.Errorf("%s belongs to root: %v, want the opposite", path, root)
		}
	}
	key, err := os.ReadFile("/etc/service/hmac.key")
	if err != nil {
		t.Fatal(err)
	}
	proc := "/proc/" + strconv.Itoa(serviceJSON(t, 0, "status").PID)
	for _, path := range []string{unitFile, proc + "/cmdline", proc + "/environ", settings} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), strings.TrimSpace(string(key))) {
			t.Errorf("%s contains the key", path)
		}
	}
	text, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "NoNewPrivs:\t1", "Seccomp:\t2")
	if strings.Contains(string(text), "Uid:\t0\t") {
		t.Error("the server runs as root")
	}
}

// TestServiceRefusalsUnderSystemd checks that the commands refuse to change foreign files, and refuse actions that
// cannot succeed.
func TestServiceRefusalsUnderSystemd(t *testing.T) {
	t.Parallel()
	if !usersystemd.EnterSystem(t, bin) {
		return
	}
	t.Run("not root", func(t *testing.T) {
		cmd := exec.Command(program, "service", "install")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		contains(t, run(t, 2, cmd).errOut, "only an administrator", "next: run it with sudo")
		cmd = exec.Command(program, "service", "status", "--json")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		contains(t, run(t, 1, cmd).out, `"state": "not_installed"`)
	})
	t.Run("a packaged unit", func(t *testing.T) { refusesForeign(t, "/usr/lib/systemd/system/service-backend.service") })
	t.Run("the operator's own unit", func(t *testing.T) { refusesForeign(t, unitFile) })
	t.Run("a masked unit", func(t *testing.T) {
		if err := os.Symlink("/dev/null", unitFile); err != nil {
			t.Fatal(err)
		}
		contains(t, service(t, 2, "install").errOut, unitFile, "unmask")
		if target, err := os.Readlink(unitFile); err != nil || target != "/dev/null" {
			t.Errorf("the mask: got %q, error %v; want /dev/null", target, err)
		}
		if err := os.Remove(unitFile); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a setting as a flag", func(t *testing.T) {
		o := service(t, 2, "install", "--listen", "localhost:9")
		contains(t, o.errOut, "takes no --listen", "next: write the setting to the settings file")
	})
	t.Run("settings without a key file", func(t *testing.T) {
		path := "/etc/other.yaml"
		if err := os.WriteFile(path, []byte("data_dir: /var/lib\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "service", "install", "--config", path)
		// The service must not receive this variable.
		cmd.Env = append(os.Environ(), "SERVICE_BACKEND_HMAC_KEY="+strings.Repeat("ab", 32))
		contains(t, run(t, 2, cmd).errOut, "the user service-backend cannot run the server with "+path,
			"hmac_key_file", "next: ")
		if _, err := os.Lstat(unitFile); err == nil {
			t.Error("a unit was written, want none")
		}
	})
	t.Run("a server that cannot start", cannotStart)
}

// refusesForeign checks that no action changes a unit that install did not write.
func refusesForeign(t *testing.T, path string) {
	const theirs = "[Service]\nExecStart=/bin/sleep 1000\n"
	if err := os.WriteFile(path, []byte(theirs), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"install", "uninstall", "start", "stop", "restart", "status"} {
		contains(t, service(t, 2, action).errOut, path+" was not installed by `service-backend service install`", "next: ")
	}
	contains(t, service(t, 2, "install", "--json").out, `"code": "service_not_ours"`)
	if text, err := os.ReadFile(path); err != nil || string(text) != theirs {
		t.Errorf("the foreign unit is now %q (error %v), want no change", text, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// cannotStart occupies the server's port. The service recovers when it is started again after the port is free.
func cannotStart(t *testing.T) {
	busy := &http.Server{Addr: "localhost:8080"}
	done := make(chan error, 1)
	go func() { done <- busy.ListenAndServe() }()
	for _, err := http.Get("http://localhost:8080"); err != nil; _, err = http.Get("http://localhost:8080") {
		time.Sleep(10 * time.Millisecond)
	}
	contains(t, service(t, 2, "install").errOut, "systemd could not start the service",
		"next: read the log: journalctl -u service-backend")
	until(t, "failed", func(r report) bool { return r.State == "failed" })
	contains(t, service(t, 1, "status").errOut, "next: read the log")
	busy.Close()
	<-done
	service(t, 0, "start")
	healthy(t)

	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unitFile, append(text, "# changed\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := serviceJSON(t, 0, "status"); !r.Outdated {
		t.Errorf("status of a changed unit: got %+v, want it outdated", r)
	}
	if r := serviceJSON(t, 0, "install"); r.Change != "updated" || r.State != "running" || r.Outdated {
		t.Errorf("install over a changed unit: got %+v, want it updated and running", r)
	}
	service(t, 0, "uninstall")
}

// TestDocumentedInstallation runs the commands of the documentation in order.
func TestDocumentedInstallation(t *testing.T) {
	t.Parallel()
	if !usersystemd.EnterSystem(t, bin) {
		return
	}
	page, ok := docs.Find("operating")
	_, section, found := strings.Cut(page.Markdown, "\n## Install as a service\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !ok || !found {
		t.Fatal("the page does not describe the installation")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, 0, exec.Command("mv", program, filepath.Join(dir, "bin")))
	if err := os.WriteFile("/usr/local/bin/sudo", []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	commands, shell := 0, false
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "```") {
			shell = strings.HasPrefix(line, "```sh")
			continue
		}
		if shell {
			commands++
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = dir
			run(t, 0, cmd)
		}
	}
	if commands != 7 {
		t.Errorf("ran %d commands, want 7", commands)
	}
}
