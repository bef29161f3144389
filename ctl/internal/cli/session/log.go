package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// logOptions are the flags of `session log`.
type logOptions struct {
	follow bool
	since  int64
	chip   string
}

func (p *program) log() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use: "log [ID]", Short: "Print a session's event log", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: p.Complete(IDs),
		Long: "One row per line: number, clock, chip, kind, type, payload. With --json each line is the row as " +
			"JSON.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(append(glasses.Chips(), ""), o.chip) {
				return fmt.Errorf("--chip must be one of %[2]s, not %[1]s", o.chip, strings.Join(glasses.Chips(), ", "))
			}
			return p.WithClient(cmd.Context(), func(c *client.Client) error {
				return p.printLog(cmd.Context(), c, command.FirstArg(args), o)
			})
		},
	}
	cmd.Flags().BoolVar(&o.follow, "follow", false, "print new rows until Ctrl-C or the end of the session")
	cmd.Flags().Int64Var(&o.since, "since", 0, "print only rows after this number")
	cmd.Flags().StringVar(&o.chip, "chip", "", "only rows of this chip: "+strings.Join(glasses.Chips(), ", "))
	return cmd
}

// logPage is the result of getEventLog.
type logPage struct {
	SessionID string
	Events    []json.RawMessage
	Next      int64
	More      bool
	Truncated bool
}

func (p *program) printLog(ctx context.Context, c *client.Client, id string, o logOptions) error {
	since, following := max(o.since, 0), false
	for {
		var page logPage
		if _, err := command.CallTool(ctx, c, "getEventLog", withSession(id, map[string]any{"since": since, "limit": 500}),
			&page); err != nil {
			return p.over(err, following)
		}
		following = o.follow
		if page.Truncated {
			p.Remark("older rows are missing: the event log keeps only the latest ones")
		}
		id, since = page.SessionID, page.Next
		closed := page.Truncated && len(page.Events) == 0 // a backend deletes the log with the session
		for _, raw := range page.Events {
			closed = p.printRow(raw, o.chip) || closed
		}
		switch {
		case page.More:
		case !o.follow || closed:
			return nil
		default:
			var waited struct{ Status string }
			if _, err := command.CallTool(ctx, c, "waitForEvent",
				map[string]any{"sessionId": id, "since": since, "timeoutSeconds": 30}, &waited); err != nil {
				return p.over(err, following)
			}
		}
	}
}

// over returns nil for not_found while a session is being followed, because closing a local session deletes it.
func (p *program) over(err error, following bool) error {
	if following && problem.CodeOf(err) == problem.CodeNotFound {
		p.Remark("the session was closed")
		return nil
	}
	return err
}

// printRow prints a row if it matches the chip. It reports whether the row is the last one of the
// session.
func (p *program) printRow(raw json.RawMessage, chip string) (closed bool) {
	var e glasses.Event
	if json.Unmarshal(raw, &e) != nil {
		return false
	}
	closed = e.Type == glasses.RowSessionClosed && e.Sender == glasses.SenderService
	if chip != "" && e.Chip != chip {
		return closed
	}
	if p.PrintsJSON {
		_ = p.Line(raw)
		return closed
	}
	p.EventRow(term.Row{Seq: e.Seq, AtMs: e.At, Chip: e.Chip, Kind: e.Kind, Type: e.Type, Sender: e.Sender,
		Payload: string(e.Payload)})
	return closed
}
