package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/service-dev/service/ctl/internal/command"
)

var (
	colours     = regexp.MustCompile("\x1b\\[[0-9;]*m")
	quotedSpans = regexp.MustCompile("`[^`]*`")
	activateURL = regexp.MustCompile(`http://service-[0-9a-f]+\.localhost:[0-9]+/activate\?code=([A-Z-]+)`)
)

// tooWide returns the lines that could have been broken to fit: those whose last column contains a space outside of a
// command in backquotes.
func tooWide(text string, columns int) (lines []string) {
	for line := range strings.Lines(colours.ReplaceAllString(text, "")) {
		line = strings.TrimRight(line, "\r\n")
		if at := strings.LastIndex(line, "\r"); at >= 0 { // a line that was overwritten
			line = line[at+1:]
		}
		bare := quotedSpans.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
		last := bare[max(0, strings.LastIndex(bare, "  ")):]
		if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(last), " ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A login on a terminal shows the linked account's email address. Files, logs and output for programs do not contain
// it.
func TestLogin_NamesTheAddressOnATerminalOnly(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	p := onTerminal(t, l.home, 80, nil, "login")
	p.await("and check the code:")
	p.await("Waiting for approval")
	found := activateURL.FindStringSubmatch(p.text())
	if found == nil {
		t.Fatalf("there is no URL on the terminal:\n%s", p.text())
	}
	l.approve(newPerson(t), found[0], "ada@example.org")
	shown := p.exits(command.ExitYes)
	wantText(t, shown, "Linked as ada@example.org on this machine.", "next:", "`servicectl open`")
	if n := strings.Count(strings.Replace(shown, found[0], "", 1), found[1]); n != 1 {
		t.Errorf("the code is shown %d times besides the URL, want once:\n%s", n, shown)
	}
	if wide := tooWide(shown, 80); len(wide) > 0 {
		t.Errorf("lines are broken by the terminal:\n%s", strings.Join(wide, "\n"))
	}
	out, _ := l.run(command.ExitYes, "", "tool", "call", "whoAmI")
	who, _ := l.run(command.ExitYes, "", "whoami", "--json")
	auth, _ := os.ReadFile(filepath.Join(l.home, ".service", "auth.json"))
	logs, _ := l.run(command.ExitYes, "", "daemon", "logs")
	for name, text := range map[string]string{"whoAmI": out, "whoami": who, "auth.json": string(auth), "log": logs} {
		if strings.Contains(text, "ada@") || text == "" {
			t.Errorf("%s is empty or contains the e-mail address:\n%s", name, text)
		}
	}
	if printed := l.loginLines("bob@example.org"); strings.Contains(printed, "bob@") {
		t.Errorf("login without a terminal prints the e-mail address:\n%s", printed)
	}
}

// Text for users fits a narrow terminal, is coloured only where that helps, and is not wrapped for programs.
func TestTexts_FitTheTerminal(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	l.link("ada@example.org")
	l.run(command.ExitYes, "", "tool", "call", "createSimulatorSession", "--arg",
		"project=com.example.averylongprojectname")
	commands := [][]string{{"status"}, {"doctor"}, {"whoami"}, {"telemetry", "status"}, {"plugin", "list"},
		{"session", "list"}, {"session", "show"}, {"fonts", "list"}, {"tool", "list"}, {"usage"}, {"--help"},
		{"session", "run", "--help"}, {"open", "session"}, {"open", "dashbord"}, {"glasses", "list", "--known"}}
	for _, columns := range []uint16{60, 80, 120} {
		for _, args := range commands {
			p := onTerminal(t, l.home, columns, nil, args...)
			_ = p.cmd.Wait()
			p.reader.Wait()
			for _, line := range tooWide(p.text(), int(columns)) {
				if !strings.HasPrefix(strings.TrimSpace(line), "servicectl ") { // a command to copy
					t.Errorf("%v: broken at %d columns: %s", args, columns, line)
				}
			}
		}
	}
	for env, want := range map[string]bool{"TERM=xterm": true, "TERM=dumb": false, "NO_COLOR=1": false, "NO_COLOR=": true} {
		text := onTerminal(t, l.home, 80, []string{env}, "status").exits(command.ExitYes)
		if got := strings.Contains(text, "\x1b[32mrunning\x1b[0m"); got != want || !want && strings.Contains(text, "\x1b") {
			t.Errorf("%s: colours %v, want %v:\n%q", env, got, want, text)
		}
		text = onTerminal(t, l.home, 80, []string{env}, "nosuch").exits(command.ExitUnknown)
		if got := strings.Contains(text, "\x1b[31mservicectl:\x1b[0m"); got != want {
			t.Errorf("%s: a coloured error %v, want %v:\n%q", env, got, want, text)
		}
	}
	out, errOut := l.run(command.ExitYes, "", "telemetry", "status")
	if strings.Contains(out+errOut, "\x1b") || len(tooWide(out+errOut, 80)) == 0 {
		t.Errorf("piped output is coloured or wrapped:\n%s%s", out, errOut)
	}
	sessions := onTerminal(t, l.home, 60, nil, "session", "list").exits(command.ExitYes)
	age := regexp.MustCompile(`(?m)^  age +\d+ s$`)
	page := regexp.MustCompile(`(?m)^  page +http://service-[0-9a-f]+\.localhost:\d+/s/ses_[a-z0-9]+$`)
	if !age.MatchString(sessions) || !page.MatchString(sessions) {
		t.Errorf("the session's age or its whole URL is missing:\n%s", sessions)
	}
}

// Tab completion offers the values that this machine has.
func TestCompletion(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	complete := func(words ...string) string {
		out, _ := l.run(command.ExitYes, "", append([]string{"__complete"}, words...)...)
		return out
	}
	if out := complete("session", "show", ""); strings.Contains(out, "loc_") {
		t.Errorf("a session without a daemon:\n%s", out)
	}
	l.run(command.ExitNo, "", "status") // no daemon was started
	l.run(command.ExitYes, "", "tool", "call", "startLocalSimulation")
	for _, tc := range []struct{ words, want string }{
		{"session show ", "loc_"}, {"session close ", "loc_"}, {"session replay recording --session ", "loc_"},
		{"open session ", "loc_"}, {"open d", "dashboard"}, {"agent add ", "claude-code"}, {"agent remove cursor c", "codex"},
		{"session run --models ", "even_g1"}, {"glasses connect --model ", "even_g1"}, {"session log --chip ", "errors"},
		{"session run --transport ", "localsim"}, {"tool call ", "searchDocs"}, {"account ", "reset-password"},
		{"usage --range ", "30d"},
	} {
		if out := complete(strings.Split(tc.words, " ")...); !strings.Contains(out, tc.want) {
			t.Errorf("%q: %q is missing from:\n%s", tc.words, tc.want, out)
		}
	}
}
