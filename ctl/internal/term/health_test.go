package term

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func plain(width int) (*Terminal, *bytes.Buffer) {
	var out bytes.Buffer
	return &Terminal{Out: &out, Err: &out, Width: width}, &out
}

// Columns align by visible width, with or without colours, and no line ends in spaces.
func TestTerminal_ColumnsAlign(t *testing.T) {
	for _, colour := range []bool{false, true} {
		term, out := plain(0)
		term.Colour = colour
		term.Grid([]string{"NAME", "STATE", "LAST"}, [][]Cell{
			{{Text: "größe"}, {"running", Good}, {Text: "-"}}, {{Text: "b"}, {"off", Bad}, {Text: "once"}},
			{{Text: "c"}, {Text: "x"}, {}},
		})
		term.Facts([]Fact{{Name: "one", Lead: Cell{"good", Good}, Rest: ", as ever"}, {},
			{Name: "longer name", Lead: Cell{Text: "x"}}})
		text := out.String()
		if colour != strings.Contains(text, "\x1b[32mrunning\x1b[0m") {
			t.Errorf("colour %v: unexpected escape sequences in %q", colour, text)
		}
		for _, code := range []string{"32", "31", "2"} {
			text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
		}
		want := "NAME   STATE    LAST\ngröße  running  -\nb      off      once\nc      x\n" +
			"one          good, as ever\n\nlonger name  x\n"
		if got := strings.ReplaceAll(text, "\x1b[0m", ""); got != want {
			t.Errorf("colour %v: got\n%s\nwant\n%s", colour, got, want)
		}
	}
}

// Long results wrap within their column if the terminal's width is known; in a pipe each is one line.
func TestChecks_WrapLongText(t *testing.T) {
	list := []Check{
		{"disk", "fail", strings.Repeat("word ", 12) + "end", "do " + strings.Repeat("this ", 12) + "now"},
		{"other", "ok", "fine", "never shown"},
	}
	term, out := plain(60)
	term.Checks(list)
	for line := range strings.Lines(out.String()) {
		if n := len(strings.TrimRight(line, "\n")); n > 60 {
			t.Errorf("a line has %d columns, want at most 60: %q", n, line)
		}
	}
	if got := out.String(); !strings.Contains(got, "\n             next: do this") ||
		strings.Contains(got, "never shown") || !strings.Contains(got, "1 of 2 checks failed.") {
		t.Errorf("unexpected output\n%s", got)
	}
	term, out = plain(0)
	term.Checks(list)
	if got := strings.Count(out.String(), "\n"); got != 5 {
		t.Errorf("got %d lines, want 5:\n%s", got, out)
	}
}

func TestChecks_Summary(t *testing.T) {
	ok, warn, fail := Check{State: "ok"}, Check{State: "warn"}, Check{State: "fail"}
	for want, list := range map[string][]Check{
		"All 2 checks are fine.":                   {ok, ok},
		"No check failed; 1 of 2 need attention.":  {ok, warn},
		"1 of 2 checks failed.":                    {ok, fail},
		"2 of 3 checks failed, 1 more to look at.": {fail, warn, fail},
	} {
		term, out := plain(0)
		term.Checks(list)
		if !strings.HasSuffix(out.String(), "\n\n"+want+"\n") {
			t.Errorf("want summary %q:\n%s", want, out)
		}
	}
}

// The setting that decided is explained in words. A setting that only a later daemon knows is shown by its name.
func TestUploading_ExplainsTheSwitch(t *testing.T) {
	for _, by := range []string{"consent", "SERVICE_TELEMETRY", "DO_NOT_TRACK", "CI", "SERVICE_BACKEND_URL", "embedded",
		"notice", "consent_unreadable"} {
		lead, why := Uploading(false, by)
		if lead.Text != "stays on this machine" || strings.Contains(why, "decided by") {
			t.Errorf("%s: got %s%s, want an explanation in words", by, lead.Text, why)
		}
	}
	if lead, why := Uploading(true, "default"); lead.Text+why != "uploaded (nothing was declined)" {
		t.Errorf("got %s%s, want uploaded (nothing was declined)", lead.Text, why)
	}
	if _, why := Uploading(false, "moon"); why != " (decided by moon)" {
		t.Errorf("got %s, want the name of the unknown setting", why)
	}
}

func TestLowered(t *testing.T) {
	for s, want := range map[string]string{
		"Run it.": "run it", "run it": "run it", "SERVICE_X is wrong.": "SERVICE_X is wrong", "`x` helps": "`x` helps",
	} {
		if got := lowered(s); got != want {
			t.Errorf("lowered(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for ms, want := range map[int64]string{0: "-", 1_000_000: "just now", 2_000_000: "just now", 997_000: "3 s ago",
		400_000: "10 min ago"} {
		if got := Since(ms, now); got != want {
			t.Errorf("Since(%d) = %s, want %s", ms, got, want)
		}
	}
	if Count(1, "agent") != "1 agent" || Count(0, "agent") != "0 agents" {
		t.Error("unexpected plural")
	}
}

// Output for users contains no internal name: neither an embedded backend's id nor a setting's identifier.
func TestTerminal_HidesInternalNames(t *testing.T) {
	var b bytes.Buffer
	term := &Terminal{Out: &b, Err: &b}
	for _, by := range []string{"embedded", "CI", "DO_NOT_TRACK", "SERVICE_TELEMETRY", "SERVICE_BACKEND_URL"} {
		term.Consent(Consent{State: "accepted", By: by, File: "/x/consent"})
	}
	for _, by := range []string{"embedded", "SERVICE_BACKEND_URL"} {
		// The same applies in a shell that names another backend.
		lead, why := Uploading(false, by)
		term.Say("%s%s", lead.Text, why)
		term.Telemetry(Telemetry{Consent: Consent{State: "unset", By: by}}, time.Now())
	}
	term.Say("%s %s", Checked(-1), Checked(2000))
	term.Say("%s", ReplaceQuestion("acc", "embedded:1234"))
	for _, wrong := range []string{"says so", "checked never", "embedded:", "backend, which is embedded"} {
		if strings.Contains(b.String(), wrong) {
			t.Errorf("output contains %q: %s", wrong, b.String())
		}
	}
}
