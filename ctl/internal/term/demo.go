package term

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mdp/qrterminal/v3"

	"github.com/service-dev/service/internal/loopback"
)

// DemoIntro introduces the demo and prints its directory.
func (t *Terminal) DemoIntro(dir, shim string) {
	t.Say("%s", t.Bold("Demo: an agent links this machine, opens a simulator and runs an app."))
	t.Say("  All files of the demo are in %s.", dir)
	t.Say("  Calling createSimulatorSession through %s ...", shim)
}

// DemoCode shows the code and the URL, and a QR code if a phone can open the URL.
func (t *Terminal) DemoCode(userCode, address string, seconds int, word string) {
	t.Code(userCode, address, seconds, "", word)
	if !isLoopback(address) { // no other device can open it
		t.QR(address)
	}
	t.Say("  No account yet? Create one on the page; it stays on this machine.")
	t.Say("")
}

// isLoopback reports whether a URL points to this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && loopback.IsBrowserHost(u.Hostname())
}

// QR prints a URL as a QR code for a phone's camera. It uses half blocks, which need no colours.
func (t *Terminal) QR(address string) {
	var text strings.Builder
	qrterminal.GenerateWithConfig(address, qrterminal.Config{
		Level: qrterminal.L, Writer: &text, HalfBlocks: true, QuietZone: 2,
		BlackChar: qrterminal.BLACK_BLACK, WhiteChar: qrterminal.WHITE_WHITE,
		BlackWhiteChar: qrterminal.BLACK_WHITE, WhiteBlackChar: qrterminal.WHITE_BLACK,
	})
	for line := range strings.Lines(text.String()) {
		fmt.Fprint(t.Out, "      "+line)
	}
	t.Say("")
}

// DemoWaiting prints the remaining time if the terminal cannot overwrite lines.
func (t *Terminal) DemoWaiting(left time.Duration) {
	t.Say("  Waiting for approval, %s left.", Span(max(left, 0)))
}

// DemoLinked reports that the account is linked.
func (t *Terminal) DemoLinked(accountID string) { t.Say("  Linked to account %s.", accountID) }

// DemoSimulator shows the simulator's page.
func (t *Terminal) DemoSimulator(url, status string) {
	word := "opened"
	if status == "resumed" {
		word = "resumed"
	}
	t.Say("")
	t.Say("  Simulator session %s:", word)
	t.Say("")
	t.Say("      %s", t.Bold(url))
	t.Say("")
}

// DemoApp reports that the example app is running.
func (t *Terminal) DemoApp(path string) {
	t.Say("  The example app (%s) shows its text on the panel; tap the panel and it answers.", path)
}

// DemoNoApp reports that there is no example app.
func (t *Terminal) DemoNoApp(path string) {
	t.Say("  There is no example app at %s: run `make build`.", path)
}

// DemoAttach explains how to attach a coding agent with the servicectl at a path.
func (t *Terminal) DemoAttach(servicectl string) {
	command := shellQuote(servicectl) + " agent "
	t.Say("")
	t.Say("%s", t.Bold("Attach your coding agent"))
	t.Say("")
	t.Row("      %s", command+"list        # which are installed, which are registered")
	t.Row("      %s", command+"add --all   # register all that are installed")
	t.Say("")
	t.Say("  Run these in another terminal. Your agents then use your own directory, not this demo's.")
	t.Say("")
	t.Say("Running until Ctrl-C.")
}

// shellQuote quotes s for a POSIX shell if necessary.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:,@", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// DemoEnd reports that everything has stopped.
func (t *Terminal) DemoEnd() { t.Say("\nStopped the app and the daemon.") }
