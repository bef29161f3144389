package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/ctl/internal/command"
)

// overSSH returns the environment of a shell opened from another machine, with fake browsers that record their start in
// the file opened.
func overSSH(t *testing.T, home string) (env []string, opened string) {
	t.Helper()
	tools, opened := filepath.Join(home, "tools"), filepath.Join(home, "opened")
	if err := os.Mkdir(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, browser := range []string{"xdg-open", "sensible-browser", "www-browser", "firefox"} {
		script := "#!/bin/sh\necho \"$0 $*\" >> " + opened + "\n"
		if err := os.WriteFile(filepath.Join(tools, browser), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		"PATH=" + tools + ":" + os.Getenv("PATH"), "SERVICE_NO_AUTO_OPEN=", "DISPLAY=", "WAYLAND_DISPLAY=", "BROWSER=",
		"WSL_DISTRO_NAME=", "SSH_CONNECTION=203.0.113.7 50022 192.0.2.1 22", "SSH_TTY=/dev/pts/0",
	}, opened
}

// A user who is logged in over SSH sees the code, the URL, and how to reach the embedded backend from their own
// machine.
func TestLogin_OverSSH(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	env, opened := overSSH(t, l.home)
	p := onTerminal(t, l.home, 80, env, "login")
	p.await("left")
	shown := p.text()
	page := regexp.MustCompile(`http://service-[0-9a-f]+\.localhost:([0-9]+)/activate\?code=([B-Z]{4}-[B-Z]{4})`)
	url := page.FindStringSubmatch(shown)
	if url == nil {
		t.Fatalf("no URL is on the terminal:\n%s", shown)
	}
	forward := "\n      ssh -N -L " + url[1] + ":127.0.0.1:" + url[1] + " HOST\n"
	for _, want := range []string{"this shell has no desktop session", forward, url[2]} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not on the terminal:\n%s", want, shown)
		}
	}
	l.approve(newPerson(t), url[0], "ada@example.org")
	p.exits(command.ExitYes)
	if data, err := os.ReadFile(opened); err == nil {
		t.Errorf("a browser was opened: %s", data)
	}
}

// Programs without a terminal get the same information.
func TestLogin_OverSSHForPrograms(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	env, opened := overSSH(t, l.home)
	cmd := l.command("login", "--json")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var line struct{ Event, VerificationURL, Reason, PortForward string }
	url := ""
	for lines := bufio.NewScanner(out); line.Event != "opened" && lines.Scan(); {
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		url += line.VerificationURL
		line.VerificationURL = ""
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	port, _, _ = strings.Cut(port, "/")
	if line.Reason != "no_desktop" || line.PortForward != "ssh -N -L "+port+":127.0.0.1:"+port+" HOST" {
		t.Errorf("for %s login prints %+v", url, line)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if data, err := os.ReadFile(opened); err == nil {
		t.Errorf("a browser was opened: %s", data)
	}
}
