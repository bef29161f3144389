package term

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/service-dev/service/internal/problem"
)

// hostile is text with which a backend or an app could try to control a terminal.
const hostile = "a\x1b[2J\x1b]52;c;ZXZpbA==\x07b\u009b31mc\x7f\r\u202ed\u2028e\xff"

// Text from others never controls the terminal, with or without colours.
func TestTerminal_StripsWhatDoesNotPrint(t *testing.T) {
	for _, colour := range []bool{false, true} {
		var b bytes.Buffer
		term := &Terminal{Out: &b, Err: &b, TTY: colour, Moves: colour, Colour: colour, Width: 40}
		term.Say("%s %v %-9s", hostile, errors.New(hostile), hostile)
		term.Say("%s", time.Second)
		term.Remark("%s", hostile)
		term.Table([][]string{{hostile, hostile}})
		term.Grid([]string{"A", "B"}, [][]Cell{{{hostile, Good}, {hostile, Bad}}})
		term.Facts([]Fact{{Name: "x", Lead: Cell{hostile, Good}, Rest: strings.Repeat(hostile+" ", 10)}})
		term.Checks([]Check{{Name: hostile, State: "fail", Detail: hostile, Fix: hostile}})
		term.Problem("servicectl", &problem.Error{Message: hostile, FixHint: hostile})
		term.Code(hostile, hostile, 600, hostile, hostile)
		term.Linked(Link{hostile, hostile, hostile, hostile, hostile, hostile})
		term.Linked(Link{Account: hostile, Tier: hostile})
		term.PasswordReset(PasswordReset{Email: hostile, SignInURL: hostile, HadLinks: 1, HadPasskeys: 1})
		term.PasswordRefused(hostile)
		term.Next("%s", hostile)
		term.Prose(hostile + "\n" + hostile)
		term.Pairs([][]string{{hostile, hostile}})
		term.LoggedOut(true, hostile, false, hostile)
		term.EventRow(Row{Chip: hostile, Kind: hostile, Type: hostile, Payload: `{"text":"` + hostile + `"}`})
		term.SessionDisplay([]string{hostile}, hostile)
		term.ScenarioReport(Report{Name: hostile, Verdict: hostile,
			Steps: []Step{{Verdict: "fail", Step: hostile, Message: hostile + "\n" + hostile}},
			Diffs: []Diff{{Kind: hostile, Path: hostile, Message: hostile, Want: hostile, Got: hostile,
				Files: []string{hostile}}}, Pictures: []string{hostile}, Notes: []string{hostile}})
		term.ScenarioReport(Report{Name: hostile, Steps: slices.Repeat([]Step{{Verdict: "fail", Step: hostile,
			Message: hostile}}, 30)})
		run := Run{Name: hostile, State: "failed", Failures: []Failure{{hostile, hostile + "\n" + hostile}, {Why: hostile}},
			Left: hostile, Output: hostile + "\n" + hostile}
		term.RunLine(run, 90)
		term.RunFailures([]Run{run})
		term.RunsVerdict(Runs{State: "failed", Verdict: hostile, Files: []string{hostile}, Next: hostile})
		term.RunsAgain(hostile, 1)
		term.Watching([]string{hostile})
		term.AppRuns(hostile, hostile, hostile)
		term.AppEnded(hostile)
		term.RunGlassesConnected(hostile)
		term.RunGlassesMissing(hostile, hostile)
		term.AppOutput(hostile + "\n" + hostile)
		term.Needs([]Need{{hostile, hostile}})
		term.Notice(hostile)
		term.DemoSimulator(hostile, hostile)
		term.AgentChanged("add", hostile, hostile, hostile, hostile, hostile, true, true)
		text := b.String()
		for _, own := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
			if colour {
				text = strings.ReplaceAll(text, own, "")
			}
		}
		for i, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("colour %v: %q reaches the terminal in %q", colour, r, text[max(0, i-40):min(len(text), i+40)])
			}
		}
		if !strings.Contains(text, "a[2J]52;c;ZXZpbA==b31mc d e\uFFFD") {
			t.Errorf("printable text was removed: %q", text[:200])
		}
	}
}

// A line break in a field cannot add a row.
func TestEventRow_StaysOneLine(t *testing.T) {
	var b bytes.Buffer
	term := &Terminal{Out: &b, Err: io.Discard}
	term.EventRow(Row{Type: "a\n     1  forged", Sender: "x\ny", Chip: "c\td", Payload: "{\n}"})
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Errorf("got %d lines, want 1: %q", n, b.String())
	}
}

// Escaped JSON decodes to the same values and contains no unprintable characters.
func TestTerminal_JSONEscapes(t *testing.T) {
	in := map[string]any{"a": "x\x1b\u009b\x7f\u202e\U000e0041é漢", "raw": json.RawMessage("{\"b\":\"\u009b\x7f\"}")}
	for name, write := range map[string]func(*Terminal) error{
		"JSON": func(t *Terminal) error { return t.JSON(in) }, "Line": func(t *Terminal) error { return t.Line(in) },
	} {
		var b bytes.Buffer
		if err := write(&Terminal{Out: &b}); err != nil {
			t.Fatal(err)
		}
		hidden := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
		if bytes.ContainsFunc(b.Bytes(), hidden) || !strings.Contains(b.String(), "é漢") {
			t.Errorf("%s: unprintable or missing characters in %q", name, b.String())
		}
		var out map[string]any
		if err := json.Unmarshal(b.Bytes(), &out); err != nil || out["a"] != in["a"] ||
			out["raw"].(map[string]any)["b"] != "\u009b\x7f" {
			t.Errorf("%s: decoded to %q, %v, want %q", name, out, err, in)
		}
	}
}

// A character split between two writes is printed intact.
func TestStream(t *testing.T) {
	in := "größe 漢字 \x1b[31mred\tx\n" + hostile + "\n"
	var whole bytes.Buffer
	if _, err := Stream(&whole).Write([]byte(in)); err != nil {
		t.Fatal(err)
	}
	for size := 1; size < 8; size++ {
		var b bytes.Buffer
		w := Stream(&b)
		for rest := []byte(in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
		}
		if b.String() != whole.String() || strings.ContainsAny(b.String(), "\x1b\r\u009b") ||
			!strings.HasPrefix(b.String(), "größe 漢字 [31mred\tx\n") {
			t.Errorf("written %d bytes at a time: got %q, want %q", size, b.String(), whole.String())
		}
	}
}

func TestJSON_DoesNotIndentWhatWouldBecomeHuge(t *testing.T) {
	var out bytes.Buffer
	terminal := &Terminal{Out: &out}
	row := json.RawMessage(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))
	if err := terminal.JSON(map[string]any{"events": []json.RawMessage{row, row}}); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 100_000 || !json.Valid(out.Bytes()) || !strings.HasSuffix(out.String(), "}\n") {
		t.Errorf("wrote %d bytes", out.Len())
	}
}
