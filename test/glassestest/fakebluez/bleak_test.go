package fakebluez_test

import (
	"bufio"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/echo"
)

//go:embed testdata/drive.py
var driveScript string

// Python's bleak, which is independent of this repository, uses the fake like the real BlueZ.
func TestRadio_ServesBleak(t *testing.T) {
	python := needBleak(t)
	left := echo.New("C0:FF:EE:00:00:01", "Echo_L")
	right := echo.New("C0:FF:EE:00:00:02", "Echo_R")
	r := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{left, right}, MTU: 247})
	startBleak(t, r, python, driveScript, "Echo_R", echo.Write, echo.Notify).want(
		"found C0:FF:EE:00:00:02 Echo_R",
		"connected, payload 244",
		"echo command 0", "echo request 1", "echo command 2", "echo request 3", "echo command 4",
		"read Echo_R",
		"too long refused",
		"disconnected",
		"connected again",
	)
	r.Emulate(func(int64) {
		if len(left.Received) > 0 || len(right.Received) != 5 {
			t.Errorf("left received %q, right %q", left.Received, right.Received)
		}
	})
	if n, m := r.Calls("WriteValue command"), r.Calls("WriteValue request"); n != 3 || m != 3 {
		t.Errorf("%d writes without and %d with response, want 3 and 3", n, m)
	}
}

// bleakRun is a Python script that uses bleak.
type bleakRun struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Scanner
	lines  []string
	stderr strings.Builder
}

// startBleak runs a script with the given Python and the fake as its Bluetooth.
func startBleak(t *testing.T, r *fakebluez.Radio, python, script string, args ...string) *bleakRun {
	t.Helper()
	run := &bleakRun{t: t}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	run.cmd = exec.CommandContext(ctx, python, append([]string{"-u", "-c", script}, args...)...)
	run.cmd.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+r.Address)
	run.cmd.Stderr = &run.stderr
	stdout, err := run.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	run.out = bufio.NewScanner(stdout)
	return run
}

// await waits until the script prints a line.
func (r *bleakRun) await(line string) {
	r.t.Helper()
	for r.out.Scan() {
		if r.lines = append(r.lines, r.out.Text()); r.out.Text() == line {
			return
		}
	}
	r.t.Fatalf("bleak printed %q (%v) without %q\n%s", r.lines, r.cmd.Wait(), line, r.stderr.String())
}

// want waits until the script exits, and checks its output.
func (r *bleakRun) want(lines ...string) {
	r.t.Helper()
	for r.out.Scan() {
		r.lines = append(r.lines, r.out.Text())
	}
	if err := r.cmd.Wait(); err != nil {
		r.t.Fatalf("bleak: %v\n%q\n%s", err, r.lines, r.stderr.String())
	}
	if diff := cmp.Diff(lines, r.lines); diff != "" {
		r.t.Errorf("bleak saw\n%s", diff)
	}
}

// needBleak returns a Python with bleak. Without one it skips the test, or in CI fails it.
func needBleak(t *testing.T) string {
	t.Helper()
	// Debian's package belongs to Debian's Python, which may not be the first one in PATH.
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import bleak").Run() == nil {
			return python
		}
	}
	missing(t, "Python's bleak", "python3-bleak")
	return ""
}

// missing skips a test that needs a program, or in CI fails it.
func missing(t *testing.T, what, name string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: apt-get install %s", what, name)
	}
	t.Skipf("SKIPPED, %s is missing: apt-get install %s", what, name)
}
