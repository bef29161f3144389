package term

import (
	"bytes"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	const url = "http://localhost:8080/activate?code=BCDF-GHJK"
	for name, tc := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"what fits stays":            {"a text of one line", 30, "a text of one line"},
		"breaks at spaces":           {"a text that is somewhat longer than thirty columns", 30, "a text that is somewhat longer\nthan thirty columns"},
		"an unknown width":           {strings.Repeat("word ", 40), 0, strings.Repeat("word ", 40)},
		"too narrow to read":         {strings.Repeat("word ", 40), 20, strings.Repeat("word ", 40)},
		"a URL stays whole":          {"open the page " + url + " and look", 30, "open the page\n" + url + "\nand look"},
		"a command stays whole":      {"to repair it run `servicectl fonts add FILE` again", 30, "to repair it run\n`servicectl fonts add FILE`\nagain"},
		"a command longer than that": {"run `servicectl account reset-password EMAIL` now", 30, "run\n`servicectl account reset-password EMAIL`\nnow"},
		"an open backquote":          {"one ` in a text is no command, so it is broken", 30, "one ` in a text is no command,\nso it is broken"},
		"colours have no width":      {"\x1b[31mred\x1b[0m words that fit into thirty", 30, "\x1b[31mred\x1b[0m words that fit into thirty"},
		"letters of several bytes":   {strings.Repeat("äöü ", 7) + "äö", 30, strings.Repeat("äöü ", 7) + "äö"},
	} {
		if got := strings.Join(fold(tc.text, tc.width), "\n"); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// Every text breaks within its own margin, on the stream's own width.
func TestTexts_KeepTheirMargin(t *testing.T) {
	var out, err bytes.Buffer
	term := &Terminal{Out: &out, Err: &err, Width: 40, errWidth: 36}
	term.Say("  a text with a margin that is longer than forty columns")
	term.Next("read this text, which needs more than one line on this terminal")
	term.Row("a row of a table is never broken, however long")
	wantOut := "  a text with a margin that is longer\n  than forty columns\na row of a table is never broken, however long\n"
	// 28 columns are left for the next step: too few, so it stays on one line.
	wantErr := "  next: read this text, which needs more than one line on this terminal\n"
	if out.String() != wantOut || err.String() != wantErr {
		t.Errorf("got\n%s%s\nwant\n%s%s", out.String(), err.String(), wantOut, wantErr)
	}
	err.Reset()
	term.errWidth = 46
	term.Next("read this text, which needs more than one line")
	if want := "  next: read this text, which needs more than\n        one line\n"; err.String() != want {
		t.Errorf("got\n%swant\n%s", err.String(), want)
	}
}

func TestGrid_BecomesAListIfItDoesNotFit(t *testing.T) {
	rows := [][]Cell{{{Text: "loc_1"}, {Text: "local"}, {Text: "-"}}, {{Text: "ses_2"}, {Text: "browser"},
		{Text: "http://localhost:8080/s/ses_2"}}}
	for width, want := range map[int]string{
		0:  "SESSION  KIND     PAGE\nloc_1    local    -\nses_2    browser  http://localhost:8080/s/ses_2\n",
		47: "SESSION  KIND     PAGE\nloc_1    local    -\nses_2    browser  http://localhost:8080/s/ses_2\n",
		46: "loc_1\n  kind  local\nses_2\n  kind  browser\n  page  http://localhost:8080/s/ses_2\n",
	} {
		var out bytes.Buffer
		(&Terminal{Out: &out, Width: width}).Grid([]string{"SESSION", "KIND", "PAGE"}, rows)
		if out.String() != want {
			t.Errorf("%d columns: got\n%swant\n%s", width, out.String(), want)
		}
	}
}

func TestEventRow_FitsTheTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		var out bytes.Buffer
		(&Terminal{Out: &out, Width: width}).EventRow(Row{Seq: 7, Chip: "lifecycle", Kind: "event", Type: "device",
			Payload: strings.Repeat(`{"name":"value"},`, 30)})
		for line := range strings.Lines(out.String()) {
			if columns(strings.TrimSpace(line)) == 0 || columns(strings.TrimRight(line, "\n")) > width && width > 64 {
				t.Errorf("%d columns: %q does not fit", width, line)
			}
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"http://localhost:8080/activate": true, "http://127.0.0.2/": true, "http://[::1]:80/": true,
		"https://glasses.example/activate": false, "http://192.0.2.1/": false, "http://localhost.example/": false, "%": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}
