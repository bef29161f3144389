package osservice

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/reaper"
	"github.com/service-dev/service/test/usersystemd"
)

func TestMain(m *testing.M) { os.Exit(reaper.Run(m.Run)) }

var sample = spec{
	Program: "/usr/local/bin/service-backend", Settings: "/etc/service/backend.yaml", Data: "/var/lib/service-backend",
	User: "service-backend", Stop: 40,
}

// golden compares got with a file in testdata. UPDATE_GOLDEN=1 rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestDescriptions(t *testing.T) {
	mac := sample
	mac.Settings, mac.Data, mac.User = defaults("darwin")
	windows := spec{
		Program: `C:\Program Files\Service\service-backend.exe`, Settings: `C:\ProgramData\service\backend.yaml`,
		Data: `C:\ProgramData\service\data`, User: `NT SERVICE\service-backend`, Stop: 40,
	}
	golden(t, "systemd.service", describe("systemd.service")(sample))
	golden(t, "openrc.sh", describe("openrc.sh")(sample))
	golden(t, "sysv.sh", describe("sysv.sh")(sample))
	golden(t, "launchd.plist", describe("launchd.plist")(mac))
	c := managers()["windows-service"].config(windows, describeWindows(windows))
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "windows.json", string(text)+"\n")
	for goos, s := range map[string]spec{"linux": sample, "darwin": mac, "windows": windows} {
		if err := s.validate(goos); err != nil {
			t.Errorf("%s: the sample is invalid: %v", goos, err)
		}
	}
}

func TestParse_ReadsEveryDescription(t *testing.T) {
	for name, m := range managers() {
		got, ours := parse(m.text(sample))
		if diff := cmp.Diff(sample, got); !ours || diff != "" {
			t.Errorf("%s: got %v from parse, want true and the same values:\n%s", name, ours, diff)
		}
	}
	for _, text := range []string{"", "[Service]\nExecStart=/bin/true\n", "Program: /x\nStop: 9\n"} {
		if s, ours := parse(text); ours {
			t.Errorf("parse(%q) returned %+v, want false", text, s)
		}
	}
}

func TestDescriptions_HoldNoSecretAndNoTemplate(t *testing.T) {
	for name, m := range managers() {
		text := m.text(sample)
		if strings.Contains(text, "{{") { // kardianos/service would expand it
			t.Errorf("%s contains a template action", name)
		}
		if strings.Contains(strings.ToUpper(text), "SERVICE_BACKEND_") || strings.Contains(text, "hmac") {
			t.Errorf("%s mentions a secret", name)
		}
	}
}

func TestValidate_RefusesWhatAScriptWouldNotTakeLiterally(t *testing.T) {
	odds := []string{"", "relative", "/a b", "/a\nb", "/$(id)", "/a;b", "/a%b", `/a"b`, "/{{x}}", "/ü", `/a\b`}
	for _, odd := range odds {
		for _, set := range []func(*spec){
			func(s *spec) { s.Program = odd }, func(s *spec) { s.Settings = odd }, func(s *spec) { s.Data = odd },
		} {
			s := sample
			set(&s)
			refused(t, s.validate("linux"), problem.CodeServiceUnsupported)
		}
	}
	for _, odd := range []string{"/a<b", "/a&b", "/a--b", "/a\nb", ""} {
		s := sample
		s.Settings = odd
		refused(t, s.validate("darwin"), problem.CodeServiceUnsupported)
	}
	for _, odd := range []string{"", "-x", "a b", "a;b", "root:root"} {
		s := sample
		s.User = odd
		refused(t, s.validate("linux"), problem.CodeServiceUser)
	}
}

func refused(t *testing.T, err error, code string) {
	t.Helper()
	var e *problem.Error
	if !errors.As(err, &e) || e.Code != code || e.FixHint == "" {
		t.Errorf("got %#v, want code %s with a fix hint", err, code)
	}
}

// TestSystemdAcceptsTheUnit runs systemd-analyze to verify the unit and rate its sandboxing.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("systemd-analyze is missing: apt-get install systemd")
		}
		t.Skip("SKIPPED, systemd-analyze is missing: apt-get install systemd")
	}
	dir := t.TempDir()
	s := sample
	s.Program = filepath.Join(dir, "server")
	if err := os.WriteFile(s.Program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(dir, Name+".service")
	if err := os.WriteFile(unit, []byte(describe("systemd.service")(s)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--man=no", "verify", unit}, {"security", "--offline=true", "--threshold=35", unit}} {
		out, err := exec.Command("systemd-analyze", append([]string{"--no-pager"}, args...)...).CombinedOutput()
		if err != nil || args[1] == "verify" && strings.TrimSpace(string(out)) != "" {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
	}
}

// TestScripts_AreShell parses the scripts with a shell.
func TestScripts_AreShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: there is no sh")
	}
	for _, name := range []string{"openrc.sh", "sysv.sh"} {
		if out, err := exec.Command("sh", "-n", filepath.Join("testdata", name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestSysVScript runs the script with a test server that stops on SIGTERM.
func TestSysVScript(t *testing.T) {
	if !usersystemd.EnterSystem(t, serverDir(t)) {
		return
	}
	s := sample
	s.Program, s.User = "/usr/local/bin/server", "nobody"
	script := "/etc/init.d/" + Name
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte(describe("sysv.sh")(s)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		action string
		code   int
		says   string
	}{
		{"status", 3, "Stopped"}, {"stop", 0, ""}, {"start", 0, ""}, {"start", 0, "Running"}, {"status", 0, "Running"},
		{"restart", 0, ""}, {"status", 0, "Running"}, {"stop", 0, ""}, {"status", 3, "Stopped"}, {"what", 2, "usage"},
	} {
		cmd := exec.Command(script, step.action)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != step.code || !strings.Contains(string(out), step.says) {
			t.Errorf("%s: exit code %d, want %d: %s", step.action, code, step.code, out)
		}
	}
	log, err := os.ReadFile(logFile)
	if want := "--config " + s.Settings + " as nobody\nended\n"; err != nil || string(log) != want+want {
		t.Errorf("got log %q, error %v; want the lines of two runs", log, err)
	}
	if err := os.WriteFile(s.Program, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "start")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "exited immediately") {
		t.Errorf("a failing server: want exit code 1 and \"exited immediately\", got %s", out)
	}
}

// serverDir returns a directory that contains a server for the script to run.
func serverDir(t *testing.T) string {
	dir := t.TempDir()
	const server = "#!/bin/sh\ntrap 'echo ended; exit 0' TERM\necho \"$* as $(id -un)\"\nwhile :; do sleep 0.1; done\n"
	if err := os.WriteFile(filepath.Join(dir, "server"), []byte(server), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRunAs_HasTheUsersGroups reads a file that only a supplementary group of the user may read.
func TestRunAs_HasTheUsersGroups(t *testing.T) {
	if !usersystemd.EnterSystem(t, serverDir(t)) {
		return
	}
	const file = "/etc/server.key"
	for _, step := range [][]string{
		{"groupadd", "keys"}, {"useradd", "--system", "--groups", "keys", "server"}, {"touch", file}, {"chgrp", "keys", file},
		{"chmod", "640", file},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", step, err, out)
		}
	}
	u, err := user.Lookup("server")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat", file)
	if err := runAs(cmd, u); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
