package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/service-dev/service/test/reaper"
	"github.com/service-dev/service/test/usersystemd"
)

// bin is the directory of the real programs, built once.
var bin string

func TestMain(m *testing.M) {
	// The tests mostly wait for other programs.
	reaper.Parallel(6)
	os.Exit(reaper.Run(func() int { return runTests(m) }))
}

func runTests(m *testing.M) int {
	if usersystemd.Inside() {
		bin = usersystemd.Bin()
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "ctl-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := buildPrograms(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	return m.Run()
}

// buildPrograms builds the programs of an installation and its checksum manifest into one folder.
func buildPrograms(dir string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "./daemon/serviced",
		"./ctl/service-mcp", "./ctl/servicectl", "./examples/apps/hello-glasses")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, text)
	}
	data, err := os.ReadFile(filepath.Join(dir, "serviced"))
	if err != nil {
		return err
	}
	manifest := fmt.Appendf(nil, "%x  serviced\n", sha256.Sum256(data))
	return os.WriteFile(filepath.Join(dir, "plugins.sha256"), manifest, 0o644)
}

// opener replaces xdg-open. It records the URL for the script command approve.
const opener = "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \"$HOME/opened\"\n"

// TestStories runs the scripts in testdata/script against a real daemon, real adapters and a real backend.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			home, tools := filepath.Join(e.WorkDir, "home"), filepath.Join(e.WorkDir, "tools")
			for _, dir := range []string{home, tools} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
			}
			if err := os.WriteFile(filepath.Join(tools, "xdg-open"), []byte(opener), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(e.WorkDir, "client.mjs"), []byte(documented("```js client\n")),
				0o644); err != nil {
				return err
			}
			for _, ci := range []string{"github", "gitlab"} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, ci+".sh"), []byte(recipe(ci)), 0o644); err != nil {
					return err
				}
			}
			e.Setenv("PATH", strings.Join([]string{bin, tools, os.Getenv("PATH")}, string(os.PathListSeparator)))
			e.Setenv("HOME", home)
			e.Setenv("STATE", filepath.Join(home, ".service"))
			e.Setenv("BIN", bin)
			fonts, err := filepath.Abs("../../../glasses/render/fonts/testdata")
			if err != nil {
				return err
			}
			e.Setenv("FONTS", fonts)
			e.Setenv("DISPLAY", ":99")
			e.Defer(func() { stopDaemonOf(home) })
			return nil
		},
		Cmds: verbs(),
	})
}

// recipe returns the servicectl commands in the documentation's CI recipe as a shell script.
func recipe(ci string) string {
	script := "set -e\n"
	for line := range strings.Lines(documented("```yaml " + ci + "\n")) {
		if _, command, ok := strings.Cut(line, "servicectl "); ok {
			script += "servicectl " + command
		}
	}
	return script
}

// verbs are the script commands in addition to testscript's own.
func verbs() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"approve":  func(ts *testscript.TestScript, _ bool, _ []string) { decideOpened(ts, "approve") },
		"deny":     func(ts *testscript.TestScript, _ bool, _ []string) { decideOpened(ts, "deny") },
		"mode":     fileMode,
		"exitis":   exitIs,
		"until":    until,
		"cut":      cutAfterOpen,
		"opened":   func(ts *testscript.TestScript, _ bool, _ []string) { ts.Logf("%s", openedURL(ts)) },
		"attached": appAttached,
		"follows":  telemetryFollows,
		"fontbomb": writeFontBomb, "ownadapter": writeOwnAdapter,
	}
}

// stopDaemonOf stops the daemon of a finished script.
func stopDaemonOf(home string) {
	cmd := exec.Command(filepath.Join(bin, "servicectl"), "daemon", "stop")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	_ = cmd.Run()
}

// fileMode implements `mode 0600 FILE`.
func fileMode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: mode MODE FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// exitIs implements `exitis CODE PROGRAM ARGS...`, because testscript's exec cannot check exit codes. It writes the
// output to the files out and err.
func exitIs(ts *testscript.TestScript, _ bool, args []string) {
	cmd, outs := program(ts, args[1:])
	err := cmd.Run()
	outs()
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		out, _ := os.ReadFile(ts.MkAbs("out"))
		errText, _ := os.ReadFile(ts.MkAbs("err"))
		ts.Fatalf("exit code %s (%v), want %s\n%s%s", got, err, args[0], out, errText)
	}
}

// until implements `until PROGRAM ARGS...`. It repeats the command until it exits with 0, to wait for another program.
func until(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		cmd, outs := program(ts, args)
		err := cmd.Run()
		outs()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v did not succeed in time: %v", args, err)
		}
	}
}

func program(ts *testscript.TestScript, args []string) (*exec.Cmd, func()) {
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	errOut, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	executable := filepath.Join(bin, args[0])
	if _, err := os.Stat(executable); err != nil {
		executable = args[0] // a program of the system
	}
	cmd := exec.Command(executable, args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), out, errOut
	for _, name := range []string{"PATH", "HOME", "DISPLAY", "SERVICE_CONFIG_DIR", "SERVICE_BACKEND_URL",
		"SERVICE_NO_AUTO_OPEN", "SERVICE_TELEMETRY", "XDG_RUNTIME_DIR"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd, func() { out.Close(); errOut.Close() }
}

// cutAfterOpen implements `cut CODE PROGRAM ARGS...`: it sends Ctrl-C once the page was opened.
func cutAfterOpen(ts *testscript.TestScript, _ bool, args []string) {
	cmd, outs := program(ts, args[1:])
	ts.Check(cmd.Start())
	openedURL(ts)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	outs()
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// openedURL waits until the command opened a page and returns its URL.
func openedURL(ts *testscript.TestScript) string {
	path := filepath.Join(ts.Getenv("HOME"), "opened")
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(text), "\n") {
			ts.Check(os.Remove(path))
			lines := strings.Fields(string(text))
			return lines[len(lines)-1]
		}
	}
	ts.Fatalf("no page was opened")
	return ""
}

// appAttached implements `attached DIR`: it waits until an app is connected to a session of that directory's account.
func appAttached(ts *testscript.TestScript, _ bool, args []string) {
	var text []byte
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		cmd := exec.Command(filepath.Join(bin, "servicectl"), "tool", "call", "getSessionStatus")
		cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"),
			"SERVICE_CONFIG_DIR=" + ts.MkAbs(args[0])}
		text, _ = cmd.CombinedOutput()
		if strings.Contains(string(text), `"apps": 1`) || strings.Contains(string(text), `"appsConnected": 1`) {
			return
		}
	}
	ts.Fatalf("no app is attached:\n%s", text)
}
