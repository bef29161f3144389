package server

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/docs"
)

// TestDocumentedCommandsExist reads every service-backend line in the documentation (command, flags, number of
// arguments) and checks that the operator's table lists every admin command.
func TestDocumentedCommandsExist(t *testing.T) {
	lines := 0
	for _, p := range docs.Pages() {
		shell := false
		for line := range strings.Lines(p.Markdown) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				shell = line == "```sh"
				continue
			}
			if args, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "bin/"), "sudo "), "service-backend "); ok && shell {
				lines++
				checkCommand(t, p.ID, args)
			}
		}
	}
	if lines < 4 {
		t.Errorf("found only %d lines, want at least 4", lines)
	}
	page, _ := docs.Find("operating")
	for _, c := range adminCommand().Commands() {
		if !strings.Contains(page.Markdown, "\n| `"+c.Name()) {
			t.Errorf("the page operating does not list admin %s", c.Name())
		}
	}
}

func checkCommand(t *testing.T, page, line string) {
	t.Helper()
	root := &cobra.Command{Use: "service-backend", Args: cobra.NoArgs, Run: func(*cobra.Command, []string) {}}
	config.Flags(root.PersistentFlags())
	root.AddCommand(adminCommand(), serviceCommand())
	cmd, rest, err := root.Find(strings.Fields(line))
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil || !cmd.Runnable() {
		t.Errorf("%s: service-backend %s: got error %v, want none", page, line, err)
	}
}
