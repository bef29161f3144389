package docs_test

import (
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/scenario"
)

// block is one fenced code block, with its language and the word after it.
type block struct{ page, language, kind, text string }

func blocks() []block {
	var list []block
	for _, p := range docs.Pages() {
		var open *block
		for line := range strings.Lines(p.Markdown) {
			fence, ok := strings.CutPrefix(line, "```")
			switch {
			case ok && open == nil:
				words := strings.Fields(fence + " ")
				open = &block{page: p.ID}
				if len(words) > 0 {
					open.language = words[0]
				}
				if len(words) > 1 {
					open.kind = words[1]
				}
			case ok:
				list = append(list, *open)
				open = nil
			case open != nil:
				open.text += line
			}
		}
	}
	return list
}

// TestExamples checks every code block: frames and scenarios with their receivers' parsers, programs with their
// compilers or interpreters.
func TestExamples(t *testing.T) {
	seen := map[string]int{}
	for _, b := range blocks() {
		seen[b.language+" "+b.kind]++
		switch b.language {
		case "json":
			checkJSON(t, b)
		case "py":
			checkProgram(t, b, "python3", "-c", "import ast,sys; ast.parse(sys.stdin.read())")
		case "js":
			checkProgram(t, b, "node", "--check", "--input-type=module", "-")
		case "ts", "kotlin", "swift": // checked by daemon/internal/scaffold, together with the generated module
		case "go": // test/ownadapter builds it
			if text, err := format.Source([]byte(b.text)); err != nil || string(text) != b.text {
				t.Errorf("%s: not formatted Go: %v", b.page, err)
			}
		case "sh":
			checkProgram(t, b, "sh", "-n")
		case "yaml", "vtt":
		default:
			t.Errorf("%s: no check for code blocks of language %q", b.page, b.language)
		}
	}
	kinds := []string{"json app", "json glasses", "json control", "json scenario",
		"json assistant-script", "go adapter", "py ", "js ", "ts ", "sh "}
	for _, want := range kinds {
		if seen[want] == 0 {
			t.Errorf("no example of %q", want)
		}
	}
}

// missing reports a block that cannot be checked on this machine; in CI it fails the test.
func missing(t *testing.T, program string, b block) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Errorf("%s is missing", program)
	}
	t.Logf("SKIPPED: %s is not installed, so an example of %s is not checked", program, b.page)
}

func checkJSON(t *testing.T, b block) {
	t.Helper()
	switch b.kind {
	case "data", "devcontainer": // a response of the HTTP API or of a tool, or a file of an editor
		if !json.Valid([]byte(b.text)) {
			t.Errorf("%s: not JSON\n%s", b.page, b.text)
		}
		return
	case "scenario", "assistant-script":
		_, err := scenario.Parse([]byte(b.text))
		if b.kind == "assistant-script" {
			_, err = assistantscript.Parse([]byte(b.text))
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", b.page, err, b.text)
		}
		return
	}
	for line := range strings.Lines(b.text) {
		if err := checkFrame(b.kind, []byte(strings.TrimSpace(line))); err != nil {
			t.Errorf("%s: %v\n%s", b.page, err, line)
		}
	}
}

func checkFrame(from string, line []byte) error {
	f, err := glasses.Parse(line)
	if err != nil {
		return err
	}
	switch {
	case f.Type == glasses.TypeHello:
		_, _, err = glasses.ParseHello(line)
	case glasses.IsCommand(f.Type):
		_, err = glasses.ParseCommand(f.Type, f.Payload)
	case glasses.IsControl(f.Type):
		_, err = glasses.ParseControl(f.Type, f.Payload)
	case f.Type == glasses.TypeResult:
		_, err = glasses.ParseResult(f.Payload)
	}
	if err != nil {
		return err
	}
	sender := map[string]string{"app": glasses.SenderApp, "glasses": glasses.SenderGlasses}[from]
	if refusal := glasses.MaySend(sender, f.Type); sender != "" && refusal != nil && f.Type != glasses.TypeHello {
		return refusal
	}
	return nil
}

func checkProgram(t *testing.T, b block, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, program, b)
		return
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(b.text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s\n%s", b.page, err, out, b.text)
	}
}
