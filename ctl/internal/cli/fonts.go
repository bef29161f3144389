package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses/render/fonts"
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
				return a.Print(map[string]any{"font": fontJSON(f)}, func() { a.FontAdded(f.GetName(), f.GetSha256()) })
			})
		},
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove an added font", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.Complete(fontNames),
		Long:              "NAME is the font's name, or the first 8 or more digits of its SHA-256.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			f, err := c.RemoveFont(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Print(map[string]any{"font": fontJSON(f)}, func() { a.FontRemoved(f.GetName()) })
		}),
	}
	return command.Group("fonts", "Add fonts for characters that the service's fonts lack",
		"Local sessions on this machine use an added font for characters that none of the service's fonts has.",
		add,
		command.Query(a.Program, "list", "List the added fonts in the order in which they are tried", "",
			(*client.Client).Fonts, func(list []*client.Font) any {
				out := []any{}
				for _, f := range list {
					out = append(out, fontJSON(f))
				}
				return map[string]any{"fonts": out}
			}, a.showFonts),
		remove)
}

func fontJSON(f *client.Font) map[string]any {
	return map[string]any{"name": f.GetName(), "sha256": f.GetSha256(), "weight": f.GetWeight(), "italic": f.GetItalic(),
		"bytes": f.GetBytes(), "problem": f.GetProblem()}
}

func (a *app) showFonts(list []*client.Font) {
	rows := make([]term.Font, 0, len(list))
	for _, f := range list {
		rows = append(rows, term.Font{Name: f.GetName(), SHA256: f.GetSha256(), Weight: int(f.GetWeight()),
			Italic: f.GetItalic(), Bytes: f.GetBytes(), Problem: f.GetProblem()})
	}
	a.Fonts(rows)
}

// Limits for checking a font in this process. The daemon parses only fonts that passed this check: unlike the daemon,
// this process can exit if a hostile file makes a parser exhaust time or memory.
const (
	fontCheckTime   = 20 * time.Second
	fontCheckMemory = 512 << 20
)

// codeFontUnreadable is the error code for a font file that cannot be read.
const codeFontUnreadable = "font_unreadable"

// checkedFont reads a font file and checks it. It abandons a check that takes too much time or memory; the check
// continues until the process exits.
func checkedFont(ctx context.Context, path string) ([]byte, error) {
	data, err := fonts.ReadFile(path)
	if err != nil {
		return nil, &client.Error{Code: codeFontUnreadable, Message: err.Error(),
			FixHint: "pass the path of a font file that you may read"}
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
			var refused *fonts.FileError
			if errors.As(err, &refused) {
				return nil, &client.Error{Code: refused.Code, Message: refused.Message, FixHint: refused.FixHint}
			}
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
	return &client.Error{Code: fonts.CodeDamaged, Message: "the font is damaged: reading it takes " + needs,
		FixHint: "use another font"}
}
