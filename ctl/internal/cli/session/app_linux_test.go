package session

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// All processes that an app started are ended with it, including ones that moved to another session, no matter how they
// handle signals and whether their parents are still running.
func TestChild_EndsWithWhatLeftItsGroup(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	for name, script := range map[string]string{
		"session of its own": `setsid sleep 600 & echo $!; wait`,
		"orphan":             `sh -c 'setsid sleep 600 & echo $!'; sleep 600`,
		"without its parent": `setsid sleep 600 & echo $!`,
		"ignores SIGTERM":    `trap "" TERM; setsid sleep 600 & echo $!; exec sleep 600`,
	} {
		out, in := io.Pipe()
		run := &scenarioRun{command: []string{"sh", "-c", script}, output: &outputTail{also: in}}
		child, err := run.startApp()
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		go func() { _, _ = io.Copy(io.Discard, out) }()
		pid, convErr := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || convErr != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
		for late := time.Now().Add(30 * time.Second); sessionOf(t, pid) != pid; {
			if time.Now().After(late) {
				t.Fatalf("%s: process %d is in no session of its own", name, pid)
			}
		}
		child.end()
		left := newStrays(child.mark, 0).list()
		for late := time.Now().Add(10 * time.Second); sessionOf(t, pid) == pid && time.Now().Before(late); {
			time.Sleep(time.Millisecond) // a killed process remains until its memory is released
		}
		if len(left) > 0 || sessionOf(t, pid) == pid {
			t.Errorf("%s: processes %v survive, and %d is in session %d", name, left, pid, sessionOf(t, pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = in.Close()
	}
}

// Each process is asked once, because many programs treat a second signal as a request to exit immediately.
func TestChild_IsAskedOnce(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{"app": "exec", "in a session of its own": "setsid"} {
		asked := filepath.Join(t.TempDir(), "asked")
		script := prefix + ` sh -c 'trap "echo asked >>` + asked + `" TERM; echo ready; while :; do sleep 0.05; done'`
		out, in := io.Pipe()
		run := &scenarioRun{command: []string{"sh", "-c", script}, output: &outputTail{also: in}}
		child, err := run.startApp()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
		child.end()
		if data, err := os.ReadFile(asked); err != nil || string(data) != "asked\n" {
			t.Errorf("%s: it was asked %q (%v), want once", name, data, err)
		}
		_ = in.Close()
	}
}

// sessionOf returns the session of a process, or -1 if it has exited.
func sessionOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return -1
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the program's name: state, parent, group, session
	fields := strings.Fields(rest)
	if len(fields) < 4 || fields[0] == "Z" {
		return -1
	}
	id, err := strconv.Atoi(fields[3])
	if err != nil {
		t.Fatal(err)
	}
	return id
}
