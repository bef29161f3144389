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
	heard []string // events printed so far
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
	// Standard input stays open without input, so login keeps waiting for a key.
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
			l.t.Errorf("login printed %q, which is not JSON: %v", lines.Text(), err)
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
				l.t.Fatalf("login exited without %s; it printed %v", event, l.heard)
			}
			name, _ := line["event"].(string)
			l.heard = append(l.heard, name)
			if name == event {
				return line
			}
		case <-limit:
			l.t.Fatalf("login did not print %s within 30 s, only %v", event, l.heard)
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

// link links the machine as a new user and returns the last line of login.
func link(w *world, email string) map[string]any {
	w.t.Helper()
	l := startLogin(w, "--json", "--replace") // without a terminal, --json makes no difference
	newPerson(w.t).approve(l.until("code")["verificationUrl"].(string), email)
	linked := l.until("linked")
	if code := l.exit(); code != 0 || linked["linked"] != true {
		w.t.Fatalf("login: exit %d, last line %v, want exit 0 and linked", code, linked)
	}
	return linked
}

// If login is interrupted at any step, by Ctrl-C or because its process died, it leaves no state behind, and a later
// approval does not link anything.
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
		t.Errorf("exit %d, want 130; login printed %v", code, l.heard)
	}
	release()
	if !eventually(10*time.Second, func() bool { return recorded(w, `"polling_aborted"`) == 1 }) {
		t.Errorf("no polling_aborted event within 10 s: %s", events(w))
	}
	ended := time.Now()
	if page != "" {
		wantCancelled(t, page)
	}
	// Wait longer than two poll intervals, because the absence of polls causes no event.
	time.Sleep(2500 * time.Millisecond)
	late := slices.DeleteFunc(s.polls(""), func(at time.Time) bool { return at.Before(ended) })
	if len(late) > 1 { // one may have been in flight
		t.Errorf("%d polls after the end of login, want at most one", len(late))
	}
	if left := entries(t, w.dir); !slices.Equal(left, []string{"install.json", "install.lock", "log", "run",
		"telemetry"}) {
		t.Errorf("the state directory contains %v, want only the files of the daemon", left)
	}
	if n := recorded(w, `"polling_aborted"`); n != 1 {
		t.Errorf("%d polling_aborted events, want 1", n)
	}
	if _, _, exit := w.ctl("whoami"); exit != 1 {
		t.Errorf("whoami: exit %d, want 1", exit)
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

// setOpener replaces the machine's xdg-open; with an empty script there is none.
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
	w.env = append(w.env, "PATH="+tools) // prevents a real xdg-open on this machine from running
}

// Regardless of what the opener does, login first shows the code and the URL and then continues.
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
				t.Errorf("login printed %v, want the code first", l.heard)
			}
			if said := l.until("opened"); said["opened"] != c.opened || said["reason"] != c.reason {
				t.Errorf("the opened event is %v, want the outcome in the table", said)
			}
			newPerson(t).approve(page, name+"@example.org")
			l.until("linked")
			if code := l.exit(); code != 0 {
				t.Errorf("login: exit %d, want 0", code)
			}
		})
	}
}

// Without auto-open, or if the URL is not a web page, login starts no process but still shows the text.
func TestLogin_OpensNothing(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"file": "file:///etc/passwd", "script": "javascript:alert(1)", "option": "-a Calc", "no host": "http:///activate?code=BCDF-GHJK",
		"disabled": "https://example.org/activate?code=BCDF-GHJK",
		// Login opens the web page with one process and an unchanged URL.
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
				t.Errorf("the code event is %v, want the code, the URL, an instruction and a notice", code)
			}
			opened := l.until("opened")
			l.cmd.Process.Signal(syscall.SIGINT)
			l.exit()
			if name == "metacharacters" {
				must(t, "one process opened the unchanged URL",
					func() bool { return slices.Equal(w.openedURLs(), []string{page}) })
				return
			}
			if out, _, _ := w.ctl("tool", "call", "createSimulatorSession",
				`{"project":"com.example.open"}`); !strings.Contains(out, fakeUserCode) {
				t.Errorf("the tool result does not contain the code: %s", out)
			}
			if opened["opened"] != false || len(w.openedURLs()) != 0 {
				t.Errorf("the opened event is %v; opened pages: %v; want none", opened, w.openedURLs())
			}
		})
	}
}
