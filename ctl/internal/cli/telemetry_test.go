package cli

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/service-dev/service/ctl/internal/command"
)

// telemetryFollows implements `follows TOOL`: a follower of the telemetry log prints a call that is made while it
// runs.
func telemetryFollows(ts *testscript.TestScript, _ bool, args []string) {
	follower, _ := program(ts, []string{"servicectl", "telemetry", "tail", "--follow"})
	follower.Stdout = nil
	out, err := follower.StdoutPipe()
	ts.Check(err)
	ts.Check(follower.Start())
	lines := bufio.NewScanner(out)
	called := false
	for lines.Scan() {
		if strings.Contains(lines.Text(), "tool="+args[0]) {
			break
		}
		// The first line means that the follower has printed the older events and is now following.
		if !called {
			called = true
			call, closeOuts := program(ts, []string{"servicectl", "tool", "call", args[0]})
			err := call.Run()
			closeOuts()
			ts.Check(err)
		}
	}
	ts.Check(lines.Err())
	ts.Check(follower.Process.Signal(os.Interrupt))
	for lines.Scan() { // discards the rest of the output
	}
	var exit *exec.ExitError
	if err := follower.Wait(); !errors.As(err, &exit) || command.Exit(exit.ExitCode()) != command.ExitCancelled {
		ts.Fatalf("the follower exited with %v, want the code for Ctrl-C", err)
	}
}

// A follower reads each complete line once, continues after a rotation, and waits for the rest of an incomplete line.
func TestPosition_ReadsEachLineOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	var at position
	var heard []string
	read := func() {
		t.Helper()
		if err := at.read(path, func(line []byte) error { heard = append(heard, string(line)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntw")
	read()
	read()
	write("o\n")
	read()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write("three\n")
	read()
	if got := strings.Join(heard, " "); got != "one two three" {
		t.Error(got)
	}
}
