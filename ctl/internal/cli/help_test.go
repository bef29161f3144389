package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

// TestHelp_FitsOneScreen checks the help of every command.
func TestHelp_FitsOneScreen(t *testing.T) {
	for _, name := range []string{"servicectl", "service-mcp"} {
		var check func(cmd *cobra.Command)
		check = func(cmd *cobra.Command) {
			var out bytes.Buffer
			cmd.SetOut(&out)
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) > 45 {
				t.Errorf("%s: the help has %d lines, want at most 45", cmd.CommandPath(), len(lines))
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 120 {
					t.Errorf("%s: a line is longer than 120 columns: %s", cmd.CommandPath(), line)
				}
			}
			for _, child := range cmd.Commands() {
				if !child.Hidden {
					check(child)
				}
			}
		}
		a := &app{&command.Program{Terminal: term.New(&bytes.Buffer{}, &bytes.Buffer{}), Name: name}}
		root := a.root()
		check(root)
		if !strings.Contains(root.Long, "`servicectl agent add --all`") {
			t.Errorf("%s: the help does not name the next step", name)
		}
	}
}
