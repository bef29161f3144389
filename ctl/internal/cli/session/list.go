package session

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
)

func (p *program) list() *cobra.Command {
	return command.New("list", "List the open sessions", "", func(ctx context.Context) error {
		var answer struct{ Sessions []facts }
		return p.PrintTool(ctx, "getSessionStatus", map[string]any{}, &answer, func() {
			if len(answer.Sessions) == 0 {
				p.Say("No session is open.")
				return
			}
			rows := [][]string{{"SESSION", "KIND", "GLASSES", "CLOCK", "APPS", "ROWS", "AGE", "PROJECT", "PAGE"}}
			for _, s := range answer.Sessions {
				age := "-"
				if !s.CreatedAt.IsZero() {
					age = term.Span(time.Since(s.CreatedAt))
				}
				rows = append(rows, []string{s.SessionID, s.Transport, s.DeviceModel, s.Clock, fmt.Sprint(s.Apps),
					fmt.Sprint(s.LastSeq), age, term.Dash(s.Project), term.Dash(s.SessionURL)})
			}
			p.Table(rows)
		})
	})
}
