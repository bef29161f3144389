package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/docs"
)

// TestDocumentation_CommandsExist checks the command, flags and number of arguments of every servicectl line in the
// documentation.
func TestDocumentation_CommandsExist(t *testing.T) {
	lines := 0
	for _, p := range docs.Pages() {
		shell := false
		for line := range strings.Lines(p.Markdown) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				shell = line == "```sh"
				continue
			}
			if args, ok := strings.CutPrefix(line, "servicectl "); ok && shell {
				args, _, _ = strings.Cut(args, " > ") // redirections belong to the shell
				args, _, _ = strings.Cut(args, " < ")
				lines++
				checkCommand(t, p.ID, args)
			}
		}
	}
	if lines < 20 {
		t.Errorf("found only %d lines, want at least 20", lines)
	}
}

// documented returns the first code block that begins with mark.
func documented(mark string) string {
	for _, p := range docs.Pages() {
		if _, after, ok := strings.Cut(p.Markdown, mark); ok {
			text, _, _ := strings.Cut(after, "\n```")
			return text + "\n"
		}
	}
	return ""
}

func checkCommand(t *testing.T, page, line string) {
	t.Helper()
	a := &app{&command.Program{Terminal: term.New(io.Discard, io.Discard), Name: "servicectl"}}
	args := strings.Fields(strings.NewReplacer(`query="scroll a list"`, "query=x", `"Even G1_27"`, "NAME").Replace(line))
	cmd, rest, err := a.root().Find(args)
	if err != nil || cmd.RunE == nil {
		t.Errorf("%s: servicectl %s: %v", page, line, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: servicectl %s: %v", page, line, err)
		return
	}
	if cmd.HasSubCommands() {
		t.Errorf("%s: servicectl %s is a group, not a command", page, line)
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("%s: servicectl %s: %v", page, line, err)
	}
}
