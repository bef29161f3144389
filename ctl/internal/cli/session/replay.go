package session

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
)

// reportOptions are the flags of commands that print a report.
type reportOptions struct {
	session, junit, pictures string
	model                    string // device model that replaces the scenario's; only for session run
	film                     bool   // also keep pictures of every change on the panel; only for session run
	accept                   bool   // update the recording to the app's current behaviour
	acceptSteps              []int  // update it only for the steps with these numbers
}

func (o *reportOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write the report as JUnit XML to this file")
	cmd.Flags().StringVar(&o.pictures, "pictures", "", "write pictures and differences to this folder, new or empty")
}

func (p *program) replay() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use: "replay FILE --session ID", Short: "Run a recording or scenario on an open session whose app you started",
		Args: cobra.ExactArgs(1),
		Long: "FILE is a scenario or the folder of a recording. `session run` also opens the session and starts the app.\n" +
			"--accept keeps the steps: the recording's assertions must still pass. --accept-steps 3,7 accepts only the\n" +
			"differences in these steps, numbered as in the report, and reports the others.\n" +
			"Exit code: 0 passed, 1 failed, 2 could not be run.",
		RunE: p.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			report, err := replay(ctx, c, args[0], o)
			if err != nil {
				return err
			}
			return p.printReport(report, o)
		}),
	}
	cmd.Flags().BoolVar(&o.accept, "accept", false, "update the recording after an intended change of the app")
	cmd.Flags().IntSliceVar(&o.acceptSteps, "accept-steps", nil, "accept only the differences in these steps, e.g. 3,7")
	cmd.MarkFlagsMutuallyExclusive("accept", "accept-steps")
	cmd.Flags().StringVar(&o.session, "session", "", "session id (default: the session used last)")
	o.flags(cmd)
	return cmd
}

func replay(ctx context.Context, c *client.Client, file string, o reportOptions) (*report, error) {
	path, err := absolute(file)
	if err != nil {
		return nil, err
	}
	args := withSession(o.session, map[string]any{"file": path, "allSteps": true, "accept": o.accept})
	if len(o.acceptSteps) > 0 {
		args["acceptSteps"] = o.acceptSteps
	}
	if o.pictures != "" {
		if args["artifactsDir"], err = absolute(o.pictures); err != nil {
			return nil, err
		}
	}
	if o.model != "" {
		args["deviceModel"] = o.model
	}
	if o.film {
		args["film"] = true
	}
	start := time.Now()
	r := &report{}
	if r.raw, err = command.CallTool(ctx, c, "replaySession", args, r); err != nil {
		return nil, err
	}
	r.took = time.Since(start)
	return r, nil
}
