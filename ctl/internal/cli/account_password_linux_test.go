package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/ctl/internal/command"
	backendbrowser "github.com/service-dev/service/test/browser"
)

const (
	oldPassword = "correct horse battery staple"
	newPassword = "a whole new passphrase"
)

// local is a user of this machine with an embedded backend.
type local struct {
	*testing.T
	home, backend string
}

func newLocal(t *testing.T) *local {
	t.Helper()
	home, err := os.MkdirTemp("", "home-") // short, because sockets are below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopDaemonOf(home); os.RemoveAll(home) })
	return &local{T: t, home: home}
}

func (l *local) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "servicectl"), args...)
	cmd.Env = []string{"HOME=" + l.home, "PATH=" + os.Getenv("PATH"), "SERVICE_NO_AUTO_OPEN=1"}
	cmd.Dir = l.home
	return cmd
}

// run runs servicectl without a terminal and returns its output.
func (l *local) run(code command.Exit, input string, args ...string) (out, errOut string) {
	l.Helper()
	cmd := l.command(args...)
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &o, &e
	err := cmd.Run()
	if got := command.Exit(cmd.ProcessState.ExitCode()); got != code {
		l.Fatalf("%v: got exit code %d (%v), want %d\n%s%s", args, got, err, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

func newPerson(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{client: http.Client{Jar: jar, Transport: backendbrowser.Transport()}}
}

// link signs a user up with an email address, links this machine to the new account, and returns the user's browser.
func (l *local) link(email string) *person {
	l.Helper()
	p, _ := l.login(email)
	return p
}

// loginLines is like link, but returns the output of login without a terminal.
func (l *local) loginLines(email string) string {
	l.Helper()
	_, lines := l.login(email)
	return lines
}

func (l *local) login(email string) (who *person, lines string) {
	l.Helper()
	login := l.command("login", "--replace")
	stdout, err := login.StdoutPipe()
	if err == nil {
		err = login.Start()
	}
	if err != nil {
		l.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	first, _ := out.ReadBytes('\n')
	var code struct{ VerificationURL string }
	if err := json.Unmarshal(first, &code); err != nil || code.VerificationURL == "" {
		l.Fatalf("login printed %q (%v), want a code", first, err)
	}
	who = newPerson(l.T)
	l.approve(who, code.VerificationURL, email)
	var rest bytes.Buffer
	_, _ = out.WriteTo(&rest)
	if err := login.Wait(); err != nil {
		l.Fatal(err)
	}
	return who, string(first) + rest.String()
}

// approve signs a user up and approves a code.
func (l *local) approve(p *person, verificationURL, email string) {
	l.Helper()
	at, body, err := p.get(verificationURL)
	if err == nil {
		at, body, err = p.submit(at, body, "signup", map[string]string{"email": email, "password": oldPassword,
			"privacy": "yes", "accept": "yes"})
	}
	if err == nil {
		_, _, err = p.submit(at, body, "approve", nil)
	}
	if err != nil {
		l.Fatal(err)
	}
	l.backend = at.Scheme + "://" + at.Host
}

// isSignedIn reports whether a browser may see the account's page.
func (l *local) isSignedIn(p *person) bool {
	l.Helper()
	at, _, err := p.get(l.backend + "/account")
	if err != nil {
		l.Fatal(err)
	}
	return at.Path == "/account"
}

// signsIn reports whether a new browser can sign in with a password.
func (l *local) signsIn(email, password string) bool {
	l.Helper()
	p := newPerson(l.T)
	at, body, err := p.get(l.backend + "/signin")
	if err == nil {
		_, _, err = p.submit(at, body, "signin", map[string]string{"email": email, "password": password})
	}
	if err != nil {
		l.Fatal(err)
	}
	return l.isSignedIn(p)
}

// answerSecret waits until a question is asked and the terminal does not echo input, and types a line.
func (p *terminal) answerSecret(question, line string) {
	p.Helper()
	p.await(question)
	for deadline := time.Now().Add(10 * time.Second); p.echoes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatal("the terminal shows what is typed")
		}
	}
	p.input(line + "\n")
}

// A user who forgot the password sets a new one on a terminal, which signs out browsers and keeps the link.
func TestResetPassword_OnTerminal(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	ada := l.link("ada@example.org")
	if !l.isSignedIn(ada) {
		t.Fatal("the browser is not signed in before the reset")
	}
	_, page, err := ada.get(l.backend + "/forgot")
	if err != nil || !strings.Contains(page, "servicectl account reset-password") {
		t.Errorf("the page /forgot does not name the command (%v):\n%s", err, page)
	}
	for range 12 { // more wrong passwords than the backend checks
		if l.signsIn("ada@example.org", "not the password") {
			t.Fatal("a wrong password is accepted")
		}
	}
	p := onTerminal(t, l.home, 80, nil, "account", "reset-password")
	p.answerSecret("New password for ada@example.org: ", newPassword)
	p.answerSecret("again: ", "something different")
	p.await("The two passwords differ. Try again.")
	p.answerSecret("New password", "short") // refused before the next question
	p.await("Password must be 10 to 200 characters long. Try again.")
	p.answerSecret("New password", newPassword)
	p.answerSecret("again: ", newPassword)
	p.answer("The account has 1 linked agent, perhaps this machine's. Unlink as well? [y/N] ", "n")
	shown := p.exits(command.ExitYes)
	for _, want := range []string{"Changed the password of ada@example.org.", "browsers signed out: 1",
		"linked agents that stay linked: 1",
		"sign in at http://localhost" + l.backend[strings.LastIndexByte(l.backend, ':'):] + "/signin"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not on the terminal:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, newPassword) {
		t.Errorf("the terminal shows the password:\n%s", shown)
	}
	if l.isSignedIn(ada) {
		t.Error("a browser is still signed in")
	}
	if !l.signsIn("ada@example.org", newPassword) {
		t.Error("the new password is refused")
	}
	if l.signsIn("ada@example.org", oldPassword) {
		t.Error("the old password is still accepted")
	}
	l.run(command.ExitYes, "", "whoami", "--refresh")
	l.neverWritten(newPassword)
}

// On a narrow terminal the questions wrap between words. After Ctrl-D the next output starts on a new line.
func TestResetPassword_NarrowTerminal(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	l.link("ada@example.org")
	p := onTerminal(t, l.home, 40, nil, "account", "reset-password", "ada@example.org")
	p.answerSecret("New password for ada@example.org: ", newPassword)
	p.answerSecret("again: ", newPassword)
	p.await("well? [y/N] ")
	p.input("\x04")
	shown := p.exits(command.ExitYes)
	wantText(t, shown, "\nThe account has 1 linked agent,\nperhaps this machine's. Unlink as\nwell? [y/N] \n"+
		"Changed the password of ", "linked agents that stay linked: 1")
}

// neverWritten checks that no file of the state directory contains a text.
func (l *local) neverWritten(text string) {
	l.Helper()
	files := 0
	err := filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a file may disappear meanwhile
		}
		data, _ := os.ReadFile(path)
		if files++; bytes.Contains(data, []byte(text)) {
			l.Errorf("%s contains %q", path, text)
		}
		return nil
	})
	if err != nil || files < 5 {
		l.Errorf("looked at %d files, error %v", files, err)
	}
}

// A script passes the password on standard input, both while the embedded backend is running and while it is not.
func TestResetPassword_InScript(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	_, text := l.run(command.ExitNo, newPassword, "account", "reset-password", "--stdin")
	wantText(t, text, "the embedded backend has no account yet", "servicectl login")
	l.link("ada@example.org")
	l.run(command.ExitYes, "", "daemon", "stop")
	_, text = l.run(command.ExitUnknown, newPassword, "account", "reset-password", "ada@example.org")
	wantText(t, text, "only on a terminal", "--stdin")
	if strings.Contains(text, "New password") {
		t.Errorf("it asks without a terminal:\n%s", text)
	}
	_, text = l.run(command.ExitNo, newPassword+"\n", "account", "reset-password", "eve@example.org", "--stdin")
	wantText(t, text, "no account of the embedded backend has the e-mail address eve@example.org", "ada@example.org")
	out, _ := l.run(command.ExitNo, "short\n", "account", "reset-password", "--stdin", "--json")
	wantText(t, out, `"code": "password_not_accepted"`, "10 to 200 characters")

	l.run(command.ExitYes, "", "daemon", "stop")
	out, _ = l.run(command.ExitNo, "\xff\xfen\x00\n\x00", "account", "reset-password", "--stdin", "--json")
	wantText(t, out, `"code": "password_not_accepted"`, "UTF-16")
	// PowerShell begins files with a byte order mark, which is not part of the password.
	out, _ = l.run(command.ExitYes, "\ufeff"+newPassword+"\r\n", "account", "reset-password", "ADA@example.org", "--stdin",
		"--json")
	wantText(t, out, `"email": "ada@example.org"`, `"linksRevoked": 0`, `"browsersSignedOut": 1`)
	l.run(command.ExitYes, "", "whoami", "--refresh")

	out, _ = l.run(command.ExitYes, oldPassword, "account", "reset-password", "--stdin", "--revoke-links",
		"--remove-passkeys", "--json")
	wantText(t, out, `"linksRevoked": 1`, `"passkeysRemoved": 0`)
	l.run(command.ExitNo, "", "whoami", "--refresh")
	if !l.signsIn("ada@example.org", oldPassword) || l.signsIn("ada@example.org", newPassword) {
		t.Error("the last password is not the one that is accepted")
	}

	l.link("bob@example.org")
	_, text = l.run(command.ExitUnknown, newPassword, "account", "reset-password", "--stdin")
	wantText(t, text, "has several accounts", "ada@example.org, bob@example.org")
}

// The accounts of another backend cannot be reset from here.
func TestResetPassword_RefusesOtherBackends(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	cmd := l.command("account", "reset-password", "ada@example.org", "--stdin")
	cmd.Env = append(cmd.Env, "SERVICE_BACKEND_URL=https://backend.example.org")
	cmd.Stdin = strings.NewReader(newPassword)
	text, _ := cmd.CombinedOutput()
	if got := command.Exit(cmd.ProcessState.ExitCode()); got != command.ExitNo {
		t.Errorf("got exit code %d, want %d", got, command.ExitNo)
	}
	wantText(t, string(text), "https://backend.example.org/forgot")
}

// Ctrl-C changes nothing and restores the terminal's echo. Standard input is read only with --stdin.
func TestResetPassword_CtrlC(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	l.link("ada@example.org")
	p := onTerminal(t, l.home, 80, nil, "account", "reset-password")
	p.answerSecret("New password", newPassword)
	p.await("again: ")
	for p.echoes() {
		time.Sleep(time.Millisecond)
	}
	p.input("\x03")
	wantText(t, p.exits(command.ExitCancelled), "cancelled")
	if !p.echoes() {
		t.Error("the terminal still hides what is typed")
	}
	if !l.signsIn("ada@example.org", oldPassword) {
		t.Error("the old password is refused")
	}
	wantText(t, onTerminal(t, l.home, 80, nil, "account", "reset-password", "--stdin").exits(command.ExitUnknown),
		"standard input is a terminal")
}

func wantText(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from:\n%s", want, got)
		}
	}
}
