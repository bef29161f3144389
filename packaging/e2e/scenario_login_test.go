//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// login is a running `servicectl login` without a terminal, which prints one JSON object per line.
type login struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan map[string]any
	heard []string // the events so far
	errs  bytes.Buffer
}

func startLogin(w *world, args ...string) *login {
	t := w.t
	t.Helper()
	l := &login{t: t, cmd: w.command("servicectl", append([]string{"login"}, args...)...),
		lines: make(chan map[string]any, 1024)}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.cmd.Stderr = &l.errs
	// A standard input that stays open and silent, so waiting for a key never ends.
	in, silent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.cmd.Stdin = in
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	go l.read(out)
	t.Cleanup(func() {
		l.cmd.Process.Kill()
		for range l.lines {
		}
		l.cmd.Wait()
		silent.Close()
	})
	return l
}

func (l *login) read(out io.Reader) {
	defer close(l.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			l.t.Errorf("login printed %q: %v", lines.Text(), err)
			continue
		}
		l.lines <- line
	}
}

// until waits for an event and returns its line.
func (l *login) until(event string) map[string]any {
	l.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case line, more := <-l.lines:
			if !more {
				l.t.Fatalf("login ended without %s; it said %v", event, l.heard)
			}
			name, _ := line["event"].(string)
			l.heard = append(l.heard, name)
			if name == event {
				return line
			}
		case <-limit:
			l.t.Fatalf("login did not say %s in 30 s, only %v", event, l.heard)
		}
	}
}

// exit waits for the process to end and returns its exit code, or -1 after a signal.
func (l *login) exit() int {
	l.t.Helper()
	for line := range l.lines {
		name, _ := line["event"].(string)
		l.heard = append(l.heard, name)
	}
	l.cmd.Wait()
	return l.cmd.ProcessState.ExitCode()
}

// link links the machine as a new person and returns login's last line.
func link(w *world, email string) map[string]any {
	w.t.Helper()
	l := startLogin(w, "--json", "--replace") // --json prints the same lines, as there is no terminal
	newPerson(w.t).approve(l.until("code")["verificationUrl"].(string), email)
	linked := l.until("linked")
	if code := l.exit(); code != 0 || linked["linked"] != true {
		w.t.Fatalf("login: exit %d, %v", code, linked)
	}
	return linked
}

// If login is interrupted at any step, by Ctrl-C or because its process died, nothing is left behind and nothing is
// linked later.
func TestLogin_Interrupted(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	for _, step := range []string{"asking", "code", "waiting"} {
		for signal, name := range map[syscall.Signal]string{syscall.SIGINT: "ctrl-c", syscall.SIGKILL: "killed"} {
			t.Run(step+"/"+name, func(t *testing.T) {
				t.Parallel()
				cutLoginShort(t, b, step, signal)
			})
		}
	}
}

func cutLoginShort(t *testing.T, b *remoteBackend, step string, signal syscall.Signal) {
	s := newSpy(t, b.url)
	asking, answer := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	if step == "asking" {
		s.hold = func(p passed) {
			if p.path == codePath {
				close(asking)
				<-answer
			}
		}
	}
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+s.url)
	w.ctl("whoami") // starts the daemon
	l := startLogin(w)
	page := ""
	if step == "asking" {
		<-asking
	} else {
		page = l.until("code")["verificationUrl"].(string)
	}
	if step == "waiting" {
		l.until("waiting")
	}
	l.cmd.Process.Signal(signal)
	if code := l.exit(); signal == syscall.SIGINT && code != 130 {
		t.Errorf("exit %d, want 130; it said %v", code, l.heard)
	}
	release()
	if !eventually(10*time.Second, func() bool { return recorded(w, `"polling_aborted"`) == 1 }) {
		t.Errorf("polling_aborted not in 10 s: %s", events(w))
	}
	ended := time.Now()
	if page != "" {
		wantCancelled(t, page)
	}
	// Longer than the poll interval: there is no event to wait for when nothing must happen.
	time.Sleep(1700 * time.Millisecond)
	for _, at := range s.polls("") {
		if late := at.Sub(ended); late > 500*time.Millisecond { // one may have been under way
			t.Errorf("a poll %s after the end", late)
		}
	}
	if left := entries(t, w.dir); !slices.Equal(left, []string{"install.json", "install.lock", "log", "run",
		"telemetry"}) {
		t.Errorf("the state directory holds %v", left)
	}
	if n := recorded(w, `"polling_aborted"`); n != 1 {
		t.Errorf("polling_aborted was recorded %d times", n)
	}
	if _, _, exit := w.ctl("whoami"); exit != 1 {
		t.Errorf("whoami exits with %d, want 1", exit)
	}
}

// entries returns the names in a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// setOpener replaces the machine's xdg-open; an empty script removes it.
func (w *world) setOpener(script string) {
	w.t.Helper()
	tools := filepath.Join(filepath.Dir(w.dir), "tools")
	path := filepath.Join(tools, "xdg-open")
	if script == "" {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
	} else if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+tools) // so that a real xdg-open on this machine is not used
}

// Whatever the opener does, login shows code and URL first and then continues.
func TestLogin_BadOpener(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	cases := map[string]struct {
		script string
		opened bool
		reason any
	}{
		"fails":   {"exit 3", false, "failed"},
		"missing": {"", false, "failed"},
		"hangs":   {"exec /bin/sleep 60", true, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
			w.setOpener(c.script)
			l := startLogin(w)
			page := l.until("code")["verificationUrl"].(string)
			if l.heard[0] != "code" {
				t.Errorf("events before the code: %v", l.heard)
			}
			if said := l.until("opened"); said["opened"] != c.opened || said["reason"] != c.reason {
				t.Errorf("it says %v", said)
			}
			newPerson(t).approve(page, name+"@example.org")
			l.until("linked")
			if code := l.exit(); code != 0 {
				t.Errorf("exit %d", code)
			}
		})
	}
}

// Without auto-open, or if the address is not a web page, no process is started but the text is shown.
func TestLogin_OpensNothing(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"file": "file:///etc/passwd", "script": "javascript:alert(1)", "option": "-a Calc", "no host": "http:///activate?code=BCDF-GHJK",
		"disabled": "https://example.org/activate?code=BCDF-GHJK",
		// This one is opened, by one process and unchanged.
		"metacharacters": `https://example.org/activate?code=BCDF-GHJK&x=$(touch${IFS}x);'"|&&%20>x` + "`x`",
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := newFake(t, page, nil)
			w := newWorld(t, "", "SERVICE_BACKEND_URL="+fake.url)
			if name == "disabled" {
				w = w.with("SERVICE_NO_AUTO_OPEN=1")
			}
			l := startLogin(w)
			code := l.until("code")
			if code["verificationUrl"] != page || code["userCode"] != fakeUserCode || code["instruction"] == "" ||
				code["notice"] == "" {
				t.Errorf("shown: %v", code)
			}
			opened := l.until("opened")
			l.cmd.Process.Signal(syscall.SIGINT)
			l.exit()
			if name == "metacharacters" {
				must(t, "one process with the page as it is",
					func() bool { return slices.Equal(w.openedURLs(), []string{page}) })
				return
			}
			if out, _, _ := w.ctl("tool", "call", "createSimulatorSession",
				`{"project":"com.example.open"}`); !strings.Contains(out, fakeUserCode) {
				t.Errorf("the tool's answer: %s", out)
			}
			if opened["opened"] != false || len(w.openedURLs()) != 0 {
				t.Errorf("login says %v; opened: %v", opened, w.openedURLs())
			}
		})
	}
}
