package server

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/backend/internal/telemetry"
)

// usageJSON counts usage events of one kind on one day, as printed for the operator.
type usageJSON struct {
	Day      string `json:"day"` // UTC
	Event    string `json:"event"`
	Tool     string `json:"tool,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Version  string `json:"version,omitempty"` // version of the service
	Events   int64  `json:"events"`
	Installs int64  `json:"installs"`
}

// maxSummaryDays is the number of days for which events are stored.
const maxSummaryDays = int(telemetry.Kept / (24 * time.Hour))

func telemetryCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use: "telemetry", Short: "Summarise usage events by day, tool, outcome and version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > maxSummaryDays {
				return fmt.Errorf("--days is %d; set it to a number from 1 to %d, the days for which events are stored", days,
					maxSummaryDays)
			}
			return operate(cmd, false, func(ctx context.Context, o operator) error { return o.tellUsage(ctx, days) })
		},
	}
	cmd.Flags().IntVar(&days, "days", 7, "days to summarise, including today (UTC)")
	return withJSON(cmd)
}

func (o operator) tellUsage(ctx context.Context, days int) error {
	all, err := o.usage.Summarise(ctx, days)
	if err != nil {
		return err
	}
	rows := make([]usageJSON, 0, len(all))
	for _, s := range all {
		rows = append(rows, usageJSON{Day: s.Day.Format(time.DateOnly), Event: s.Name, Tool: s.Tool, Outcome: s.Outcome,
			Version: s.Version, Events: s.Events, Installs: s.Installs})
	}
	return o.print(rows, func(w io.Writer) {
		table(w, "no usage events", "DAY\tEVENT\tTOOL\tOUTCOME\tVERSION\tEVENTS\tINSTALLS", rows, usageJSON.cells)
	})
}

func (u usageJSON) cells() []string {
	return []string{u.Day, u.Event, said(u.Tool), said(u.Outcome), said(u.Version), strconv.FormatInt(u.Events, 10),
		strconv.FormatInt(u.Installs, 10)}
}
