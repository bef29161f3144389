package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/junit"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) sessionRecord() *cobra.Command {
	var name, session string
	var since int64
	cmd := &cobra.Command{
		Use: "record [ID] DIR", Short: "Record a session in a folder, as a test",
		ValidArgsFunction: a.Complete(sessionIDs),
		Args:              cobra.RangeArgs(1, 2),
		Long: "The folder must be new, empty or an older recording. Run it against a later build of the app with `session " +
			"run DIR`.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				session, args = args[0], args[1:]
			}
			dir, err := absolute(args[0])
			if err != nil {
				return err
			}
			call := withSession(session, map[string]any{"dir": dir, "since": since})
			if name != "" {
				call["name"] = name
			}
			return a.summarized(cmd.Context(), "recordSession", call)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the recording in reports (default: the folder's name)")
	cmd.Flags().Int64Var(&since, "since", 0, "record only rows after this one of the log")
	return cmd
}

// reportOptions are the flags of commands that print a report.
type reportOptions struct {
	session, junit, pictures string
	model                    string // device model to run on instead of the scenario's; only for session run
	film                     bool   // also keep pictures of every change on the panel; only for session run
	accept                   bool   // update the recording to the app's current behaviour
	acceptSteps              []int  // update it only for the steps with these numbers
}

func (o *reportOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write the report as JUnit XML to this file")
	cmd.Flags().StringVar(&o.pictures, "pictures", "", "write pictures and differences to this folder, new or empty")
}

func (a *app) sessionReplay() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use: "replay FILE --session ID", Short: "Run a recording or scenario on an open session whose app you started",
		Args: cobra.ExactArgs(1),
		Long: "FILE is a scenario or the folder of a recording. `session run` also opens the session and starts the app.\n" +
			"--accept keeps the steps: what the recording claims must still hold. --accept-steps 3,7 takes only the\n" +
			"differences of these steps, as the report numbers them, and reports the others.\n" +
			"Exit code: 0 passed, 1 failed, 2 could not be run.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			report, err := replay(ctx, c, args[0], o)
			if err != nil {
				return err
			}
			return a.printReport(report, o)
		}),
	}
	cmd.Flags().BoolVar(&o.accept, "accept", false, "update the recording after an intended change of the app")
	cmd.Flags().IntSliceVar(&o.acceptSteps, "accept-steps", nil, "accept only the differences in these steps, e.g. 3,7")
	cmd.MarkFlagsMutuallyExclusive("accept", "accept-steps")
	cmd.Flags().StringVar(&o.session, "session", "", "session id (default: the session used last)")
	o.flags(cmd)
	return cmd
}

// reportStep is a step of a report.
type reportStep struct {
	Step, Verdict, Message string
	AtMs                   int64
}

// report is the result of replaySession.
type report struct {
	Name, Verdict, SessionID string
	AppLeft                  string // when the app left or how it exited, if it was not supposed to
	DurationMs               int64
	Steps                    []reportStep
	Diffs                    []struct {
		Step                           int
		Kind, Path, Message, Want, Got string
		WantFile, GotFile, DiffFile    string
		Count                          int
		AlsoSteps                      []int
	}
	MissingFonts []string
	MoreDiffs    map[string]int
	Accepted     bool

	AcceptedSteps, DifferingSteps []int
	Pictures                      []struct {
		Name, File, SHA256 string
		AtMs               int64
	}
	Frames []struct {
		AtMs         int64
		SHA256, File string
	}
	MoreFrames int
	Findings   []struct {
		DeviceModel string
		misfit
	}
	MoreFindings int

	raw    json.RawMessage
	took   time.Duration
	output string // the app's output, if this command started it
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

// printReport prints a report, writes it as JUnit if requested, and returns the exit code.
func (a *app) printReport(r *report, o reportOptions) error {
	if o.junit != "" {
		if err := writeReport(o.junit, junit.Encode(r.suite())); err != nil {
			return err
		}
	}
	err := a.Print(r.raw, func() { a.ScenarioReport(r.summary()) })
	if err == nil && r.Verdict != "pass" {
		return command.ExitNo
	}
	return err
}

func (r *report) summary() term.Report {
	out := term.Report{Name: r.Name, Verdict: r.Verdict, AppLeft: r.AppLeft, DurationMs: r.DurationMs, Took: r.took}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, term.Step{Verdict: s.Verdict, Step: s.Step, Message: s.Message, AtMs: s.AtMs})
	}
	for _, d := range r.Diffs {
		if d.Count > 1 {
			d.Message += fmt.Sprintf(" (%d times", d.Count)
			if len(d.AlsoSteps) > 0 {
				d.Message += ", also in " + stepList(d.AlsoSteps)
			}
			d.Message += ")"
		}
		diff := term.Diff{Step: d.Step, Kind: d.Kind, Path: d.Path, Message: d.Message, Want: d.Want, Got: d.Got}
		for _, f := range []string{d.WantFile, d.GotFile, d.DiffFile} {
			if f != "" {
				diff.Files = append(diff.Files, f)
			}
		}
		out.Diffs = append(out.Diffs, diff)
	}
	for _, p := range r.Pictures {
		if p.File != "" {
			out.Pictures = append(out.Pictures, p.File)
		}
	}
	out.Notes = append(append(out.Notes, r.MissingFonts...), r.moreDiffs()...)
	if r.Accepted {
		out.Notes = append(out.Notes, "the recording was updated to the app's new behaviour")
	}
	if len(r.AcceptedSteps) > 0 {
		out.Notes = append(out.Notes, "accepted into the recording: "+stepList(r.AcceptedSteps))
		if len(r.DifferingSteps) > 0 {
			out.Notes = append(out.Notes, "still different: "+stepList(r.DifferingSteps))
		}
	}
	out.Notes = append(out.Notes, r.misfits()...)
	return out
}

func stepList(numbers []int) string {
	return "step " + strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// moreDiffs returns how many differences the report omits, one line per kind.
func (r *report) moreDiffs() []string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(r.MoreDiffs)) {
		lines = append(lines, fmt.Sprintf("%d more differences: %s", r.MoreDiffs[kind], kind))
	}
	return lines
}

// misfits returns the displayed elements that do not fit the glasses, one line each.
func (r *report) misfits() []string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprintf("does not fit %s: %s %s %q", f.DeviceModel, f.Kind, f.Path, f.Text))
	}
	if r.MoreFindings > 0 {
		lines = append(lines, fmt.Sprintf("does not fit: %d more", r.MoreFindings))
	}
	return lines
}

// suite converts the report to JUnit: one case per step, and one per difference.
func (r *report) suite() junit.Suite {
	s := junit.Suite{Name: r.Name, Took: r.took, Output: r.output}
	before := int64(0)
	for i, step := range r.allSteps() {
		c := junit.Case{Name: fmt.Sprintf("%03d %s", i+1, step.Step), Seconds: float64(max(step.AtMs-before, 0)) / 1000}
		before = step.AtMs
		switch step.Verdict {
		case "fail":
			c.Failure = step.Message
		case "skipped":
			c.Skipped = true
		}
		s.Cases = append(s.Cases, c)
	}
	if !r.Accepted { // accepted differences are now part of the recording
		recorded := func(what, failure string) {
			name := fmt.Sprintf("%03d as recorded: %s", len(s.Cases)+1, what)
			s.Cases = append(s.Cases, junit.Case{Name: name, Failure: failure})
		}
		for _, d := range r.Diffs {
			recorded(strings.TrimSpace(d.Kind+" "+d.Path), fmt.Sprintf("%s\nwant %s\ngot  %s", d.Message, d.Want, d.Got))
		}
		for _, line := range r.moreDiffs() {
			recorded(line, line)
		}
	}
	if len(s.Cases) == 0 {
		s.Cases = []junit.Case{{Name: "as recorded"}}
	}
	return s
}
