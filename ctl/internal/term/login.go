package term

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/problem"
)

// Instruction tells the user what to check before approving.
const Instruction = "Check that the 8-character code on the page is the code shown here. If they differ, do not " +
	"approve."

// Notice returns a line that states how long login waits.
func Notice(seconds int) string {
	return fmt.Sprintf("Polling for up to %d s for your approval; Ctrl-C cancels.", seconds)
}

// Code shows a user code and the page for approving it. word is the page's sign-in word, or empty.
func (t *Terminal) Code(userCode, page string, seconds int, replaces, word string) {
	t.Say("")
	t.Say("  To link this machine, open")
	t.Say("")
	t.Say("      %s", page)
	t.Say("")
	t.Say("  and check the code:")
	t.Say("")
	t.Say("      %s", t.Bold(userCode))
	t.Say("")
	if word != "" {
		t.Say("  The page asks for this sign-in word: %s", word)
		t.Say("")
	}
	t.Say("  %s", Instruction)
	t.Say("  %s", Notice(seconds))
	if replaces != "" {
		t.Say("  Approving replaces the link to %s.", replaces)
	}
	t.Say("")
}

// Browser reports whether a browser was opened with a page.
func (t *Terminal) Browser(page string, opened bool, reason string) {
	switch {
	case opened:
		t.Remark("  Opened the page in your browser.")
	case reason == "disabled":
		t.Remark("  No browser was opened (SERVICE_NO_AUTO_OPEN=1): open the URL yourself.")
	case reason == "no_desktop":
		t.Remark("  No browser was opened (this shell has no desktop session): open the URL yourself.")
	case reason == "refused":
		t.Remark("  The URL may not be opened automatically: check it before you use it.")
	default:
		t.Remark("  The browser could not be opened: open the URL yourself.")
	}
	if u, err := url.Parse(page); err == nil && loopback.IsBrowserHost(u.Hostname()) && !loopback.IsHost(u.Hostname()) {
		t.Remark("  If your browser does not find it, use localhost instead of %s.", u.Hostname())
	}
	if forward := PortForward(page, opened, reason); forward != "" {
		t.Remark("")
		t.Remark("  The URL points to this machine. If you work on another one, first run this there and leave it running.")
		t.Remark("  HOST is this machine's name for ssh:")
		t.Remark("")
		t.Remark("      %s", forward)
		t.Remark("")
	}
}

// PortForward returns the command with which a user who is logged in remotely can reach a page on this machine, such
// as a page of the embedded backend. It returns "" if the page was opened or is served elsewhere. The port stays the
// same, because the page's forms and passkeys depend on its address.
func PortForward(page string, opened bool, reason string) string {
	u, err := url.Parse(page)
	if err != nil || opened || reason != "no_desktop" && reason != "failed" || u.Port() == "" {
		return ""
	}
	if !loopback.IsBrowserHost(u.Hostname()) {
		return ""
	}
	return "ssh -N -L " + u.Port() + ":127.0.0.1:" + u.Port() + " HOST"
}

// Link is a new link. Email is empty if the backend does not return it. WriteError is the reason why File could not be
// written. RevokeAt is the page on which to revoke the replaced token if the backend could not be asked to revoke it.
type Link struct{ Account, Email, Tier, File, WriteError, RevokeAt string }

// WriteHint is the next step if auth.json could not be written.
const WriteHint = "Free disk space. The daemon writes the file as soon as it can; if it exits before that, it " +
	"revokes the token and you must link again."

// Linked reports that the machine is linked.
func (t *Terminal) Linked(l Link) {
	if l.Email != "" {
		t.Say("Linked as %s on this machine.", l.Email)
	} else {
		t.Say("Linked to account %s (%s) on this machine.", l.Account, l.Tier)
	}
	if l.WriteError == "" {
		t.Say("The token is stored in %s, which only you can read.", l.File)
	} else {
		t.Remark("The link could not be saved, so it lasts only while the daemon is running: %s", l.WriteError)
		t.Next("%s", WriteHint)
	}
	t.stillValid(l.RevokeAt)
	t.Next("tell your coding agent to continue, or register it with `servicectl agent add --all`; `servicectl open` shows " +
		"your account")
}

// ReplaceQuestion is the question asked before a link is replaced.
func ReplaceQuestion(accountID, backendURL string) string {
	return fmt.Sprintf("This machine is linked to account %s at %s. Replace that link if another account approves?",
		accountID, BackendName(backendURL))
}

// BackendName returns a backend's URL for display, because "embedded:<id>" means nothing to users. It returns "" if
// auth.json does not contain the backend.
func BackendName(url string) string {
	if url == "" {
		return "an unknown backend"
	}
	if strings.HasPrefix(url, "embedded:") {
		return "the embedded backend"
	}
	return url
}

// loginFailures rewords errors of failed logins, by error code. The daemon's texts are written for agents: they refer
// to the user in the third person and mention tools. An empty message keeps the daemon's message.
var loginFailures = map[string]struct{ message, next string }{
	"device_code_denied": {"you declined on the approval page",
		"Run `servicectl login` again to link this machine after all."},
	"device_code_expired": {"the code expired before it was approved",
		"Run `servicectl login` again for a new code."},
	"unknown_device_code": {"", "Run `servicectl login` again for a new code."},
	"auth_timeout":        {"the code was not approved in time", "Run `servicectl login` again for a new code."},
	"backend_unreachable": {"", "Check the network and the backend's address, then run `servicectl login` again."},
	"link_conflict":       {"", "Run `servicectl login --replace` to replace the link; change nothing to keep it."},
}

// LoginProblem rewords the error of a failed login for the user who started it.
func LoginProblem(p *problem.Error) *problem.Error {
	summary, ok := loginFailures[p.Code]
	if !ok || p.Code == "backend_unreachable" && p.FixHint != "" { // the hint suits users too
		return p
	}
	reworded := *p
	reworded.Message, reworded.FixHint = cmp.Or(summary.message, p.Message), summary.next
	return &reworded
}

// Countdown shows the remaining time until stop is called, if the terminal can overwrite lines.
func (t *Terminal) Countdown(total time.Duration) (stop func()) {
	if !t.Moves {
		return func() {}
	}
	end := time.Now().Add(total)
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			left := max(0, time.Until(end).Round(time.Second))
			fmt.Fprintf(t.Out, "\r  Waiting for approval, %d:%02d left ", int(left.Minutes()),
				int(left.Seconds())%60)
			select {
			case <-quit:
				fmt.Fprint(t.Out, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	})
	return sync.OnceFunc(func() { close(quit); done.Wait() })
}
