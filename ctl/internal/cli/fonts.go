package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/control"
)

func (a *app) fonts() *cobra.Command {
	add := &cobra.Command{
		Use: "add FILE", Short: "Add a TTF, OTF or WOFF file", Args: cobra.ExactArgs(1),
		Long: "Checks the font and copies it into the state directory. Local sessions draw with it immediately,\n" +
			"including those that are open. At most 16 fonts of 20 MB each.\n" +
			"Exit code: 0 added, 1 the font was refused, 2 it could not be added.",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := checkedFont(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), func(c *client.Client) error {
				f, err := c.AddFont(cmd.Context(), data)
				if err != nil {
					return err
				}
				return a.Print(control.FontAnswer{Font: *f}, func() { a.FontAdded(f.Name, f.SHA256) })
			})
		},
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove an added font", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.Complete(fontNames),
		Long:              "NAME is the font's name, or at least the first 8 digits of its SHA-256.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			f, err := c.RemoveFont(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Print(control.FontAnswer{Font: *f}, func() { a.FontRemoved(f.Name) })
		}),
	}
	return command.Group("fonts", "Add fonts for characters that the service's fonts lack",
		"Local sessions on this machine use an added font for characters that the service's fonts lack.",
		add,
		command.Query(a.Program, "list", "List the added fonts in the order in which they are tried", "",
			(*client.Client).Fonts, func(list []client.Font) any { return control.Fonts{Fonts: list} }, a.showFonts),
		remove)
}

func (a *app) showFonts(list []client.Font) {
	rows := make([]term.Font, 0, len(list))
	for _, f := range list {
		rows = append(rows, term.Font{Name: f.Name, SHA256: f.SHA256, Weight: f.Weight, Italic: f.Italic, Bytes: f.Bytes,
			Problem: f.Problem})
	}
	a.Fonts(rows)
}

// Limits for checking a font in this process. The daemon parses only fonts that passed this check. Unlike the daemon,
// this process can exit if a hostile file makes a parser exhaust time or memory.
const (
	fontCheckTime   = 20 * time.Second
	fontCheckMemory = 512 << 20
)

// checkedFont reads a font file and checks it. It abandons a check that takes too much time or memory; the
// abandoned check runs until the process exits.
func checkedFont(ctx context.Context, path string) ([]byte, error) {
	data, err := fonts.ReadFile(path)
	if err != nil {
		return nil, &problem.Error{Code: problem.CodeFontUnreadable, Message: err.Error(),
			FixHint: "Pass the path of a font file that you can read."}
	}
	checked := make(chan error, 1)
	go func() { _, err := fonts.Check(data); checked <- err }()
	late := time.NewTimer(fontCheckTime)
	defer late.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-checked:
			return data, err
		case <-tick.C:
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapInuse > fontCheckMemory {
				return nil, runawayFont("more than 512 MB of memory")
			}
		case <-late.C:
			return nil, runawayFont(fmt.Sprintf("longer than %v", fontCheckTime))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func runawayFont(needs string) error {
	return &problem.Error{Code: problem.CodeFontDamaged, Message: "the font is damaged: reading it takes " + needs,
		FixHint: "Use another font."}
}
