package term

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mdp/qrterminal/v3"
)

// DemoIntro introduces the demo and names its directory.
func (t *Terminal) DemoIntro(dir, shim string) {
	t.Say("%s", t.Bold("Demo: an agent links this machine, opens a simulator and runs an app."))
	t.Say("  All files of the demo are in %s.", dir)
	t.Say("  Calling createSimulatorSession through %s ...", shim)
}

// DemoCode shows the code and the URL, and a QR code of a URL that a phone can open.
func (t *Terminal) DemoCode(userCode, address string, seconds uint32, word string) {
	t.Code(userCode, address, seconds, "", word)
	if !isLoopback(address) { // no other device can open it
		t.QR(address)
	}
	t.Say("  No account yet? Create one on the page; it stays on this machine.")
	t.Say("")
}

// isLoopback reports whether a URL names this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
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
	t.Say("  There is no example app at %s: `make build` makes it.", path)
}

// DemoAttach explains how to attach each coding agent.
func (t *Terminal) DemoAttach(shim string) {
	t.Say("")
	t.Say("%s", t.Bold("Attach your coding agent"))
	t.Say("")
	for _, way := range Attachments(shim) {
		t.Say("  %s", way.Agent)
		for _, line := range way.Lines {
			t.Row("      %s", line)
		}
	}
	t.Say("")
	t.Say("  (An agent attached so uses your own directory, not this demo's.)")
	t.Say("")
	t.Say("Running until Ctrl-C.")
}

// Attachment describes how one coding agent is configured for service-mcp.
type Attachment struct {
	Agent string
	Lines []string
}

// Attachments lists how to configure each agent, with the absolute path of service-mcp.
func Attachments(shim string) []Attachment {
	quoted := shellQuote(shim)
	entry := fmt.Sprintf(`{"command":%q}`, shim)
	return []Attachment{
		{"Claude Code", []string{"claude mcp add service -- " + quoted}},
		{"Codex", []string{"codex mcp add service -- " + quoted}},
		{"VS Code", []string{"code --add-mcp " + shellQuote(fmt.Sprintf(`{"name":"service","command":%q}`, shim))}},
		{"Cursor (~/.cursor/mcp.json)", []string{`{"mcpServers":{"service":` + entry + `}}`}},
		{"Gemini CLI", []string{"gemini mcp add service " + quoted}},
	}
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
