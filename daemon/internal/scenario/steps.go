package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// StepsRequest requests steps on an open session. The app keeps running afterwards, so that an agent can continue
// working on it.
type StepsRequest struct {
	// Files are the files of the client: the pictures and sounds of steps.
	Files     clientio.Files
	Target    backend.Target
	SessionID string
	Steps     []scenario.Step
	// DeviceModel is the model for which the steps are written; empty means the session's model.
	DeviceModel string
	// Assistant is the script for the app's assistant from now on; nil keeps the current script.
	Assistant *scenario.Assistant
	// Memory is what the assistant remembers about the wearer from now on, apart from other sessions; nil keeps the
	// current memory.
	Memory *string
	// Dir is the absolute directory to which paths in the steps are relative.
	Dir string
	// Artifacts is the absolute path of a directory for pictures. If it is empty, pictures are not stored.
	Artifacts string
	// Since excludes the rows up to this cursor. It applies to expectations before the first step that acts on the
	// glasses.
	Since int64
	// Limit is the maximum duration of the steps in real time; 0 means no limit.
	Limit time.Duration
}

// StepsReport is the result of RunSteps.
type StepsReport struct {
	Verdict string // Pass, Fail or Unfinished
	// AppLeft reports when the app left the session. It is set if the app did not return and no step expects that.
	AppLeft string
	// Steps are the steps in order; steps after the first failure are Skipped. AtMs counts from the beginning of the
	// first step.
	Steps []StepReport
	// NowMs is the time on the session's clock at the end.
	NowMs int64
	// Since is the event log's last row before the last step that acted on the glasses.
	Since int64
	// Pictures are the pictures of steps and of a failed expectation.
	Pictures []Picture
	// Findings are the first maxFindings findings of the trees that the panel showed from the first step to the last.
	Findings []Finding
	// End is the display after the last step.
	End session.Display
}

// RunSteps runs steps and stops at the first failure or at the request's limit. Neither is an error. It returns a
// *problem.Error if the session is closed or no app attaches.
func (r *Runner) RunSteps(ctx context.Context, req StepsRequest) (StepsReport, error) {
	x := &run{r: r, dir: req.Dir,
		s:    scenario.Scenario{DeviceModel: req.DeviceModel, Assistant: req.Assistant, Steps: req.Steps},
		req:  Request{Files: req.Files, Target: req.Target, SessionID: req.SessionID, Artifacts: req.Artifacts},
		used: map[int64]bool{}, stopAtFailure: true, keepPNG: true}
	x.report = Report{Verdict: Pass, Steps: []StepReport{}, Pictures: []Picture{}}
	x.drawing.SetLimit(maxDrawing)
	report, err := x.onOpenSession(ctx, req.Since, req.Limit, req.Memory)
	_ = x.drawing.Wait() // drawing never returns an error
	if err != nil {
		return StepsReport{}, err
	}
	report.Verdict, report.Steps, report.Pictures = x.report.Verdict, x.report.Steps, x.report.Pictures
	report.AppLeft = x.report.AppLeft
	return report, nil
}

// wrapUp is the maximum time for what remains to be done when the context of a call has ended.
const wrapUp = 5 * time.Second

func (x *run) onOpenSession(
	ctx context.Context, since int64, limit time.Duration, memory *string,
) (StepsReport, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	if err := makeArtifacts(ctx, x.req); err != nil {
		return StepsReport{}, err
	}
	if err := x.withAssistant(ctx, memory, func() error { return x.joinOpen(ctx, since) }); err != nil {
		return StepsReport{}, err
	}
	if err := x.steps(limited); err != nil {
		if limited.Err() == nil || ctx.Err() != nil {
			return StepsReport{}, err
		}
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, wrapUp)
		defer done()
		if err := x.stopAtLimit(ctx, limit); err != nil {
			return StepsReport{}, err
		}
	}
	if err := x.fetch(ctx, 0); err != nil {
		return StepsReport{}, err
	}
	if err := x.checkApp(ctx); err != nil {
		return StepsReport{}, err
	}
	end, err := x.display(ctx)
	found := x.findings(end)
	return StepsReport{NowMs: x.now, Since: x.since, Findings: found[:min(len(found), maxFindings)], End: end}, err
}

// stopAtLimit records the step during which the limit was reached, and the steps after it.
func (x *run) stopAtLimit(ctx context.Context, limit time.Duration) error {
	s, err := x.r.sessions.Get(ctx, x.req.Target, x.req.SessionID)
	if err != nil {
		return err
	}
	x.now = max(x.now, s.NowMs)
	verdict, message := Unfinished, fmt.Sprintf("the call reached its limit of %v during this step", limit)
	for i := len(x.report.Steps); i < len(x.s.Steps); i++ {
		x.report.Verdict = Unfinished
		x.report.Steps = append(x.report.Steps, StepReport{Number: i + 1, Step: stepName(&x.s.Steps[i]), Verdict: verdict,
			AtMs: x.now - x.base, Message: message})
		verdict, message = Skipped, ""
	}
	return nil
}

// judgeFirst notes the findings of the panel when the first step is judged. Later ones are in the log.
func (x *run) judgeFirst(ctx context.Context) error {
	d, err := x.display(ctx)
	x.first = findingsOf(d)
	return err
}

// findings returns what did not fit of what the panel showed from the first step on.
func (x *run) findings(end session.Display) []Finding {
	shown := slices.DeleteFunc(slices.Clone(x.rows), func(e glasses.Event) bool { return e.Seq <= x.before })
	all := slices.Concat(x.first, Findings(shown, x.model), findingsOf(end))
	found := []Finding{}
	for _, f := range all {
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found
}

func findingsOf(d session.Display) (list []Finding) {
	for _, f := range d.Findings() {
		list = append(list, Finding{d.Model.ID, f})
	}
	return list
}

// joinOpen waits for an app and reads the part of the log that the first expectations may match. It does not matter
// here if earlier rows have been deleted.
func (x *run) joinOpen(ctx context.Context, since int64) error {
	late := time.Now().Add(x.r.attachWait)
	x.next, x.since, x.gaps = since, since, true
	defer func() { x.gaps = false }()
	s, err := x.r.sessions.Get(ctx, x.req.Target, x.req.SessionID)
	if err == nil && s.Transport == backend.TransportBrowser && s.Pages == 0 {
		return &problem.Error{Code: problem.CodeNotConnected, Message: "no simulator page is open"}
	}
	for err == nil && s.Apps == 0 {
		wait := time.Until(late)
		if wait <= 0 {
			return &problem.Error{Code: problem.CodeNotConnected, Message: "no app attached to the session in time",
				FixHint: "Start the app with the variables of startLocalSimulation (`servicectl session env` prints them), then " +
					"repeat the call."}
		}
		if err := x.fetch(ctx, wait); err != nil {
			return err
		}
		s, err = x.r.sessions.Get(ctx, x.req.Target, x.req.SessionID)
	}
	if err == nil {
		err = x.awaitGlasses(ctx)
	}
	if err != nil {
		return err
	}
	x.virtual, x.model, x.now, x.base = s.Clock == backend.ClockVirtual, s.DeviceModel, s.NowMs, s.NowMs
	if want := x.s.DeviceModel; want != "" && want != s.DeviceModel {
		choice := glasses.DeviceChoice{DeviceModel: want}
		if err := x.stimulate(ctx, glasses.SimDevice, choice, ""); err != nil {
			return problemOf(err)
		}
		x.model = want
	}
	err = x.fetch(ctx, 0)
	x.before = x.next
	return err
}

// problemOf returns the *problem.Error of a step that could not be run.
func problemOf(err error) error {
	if unmet, ok := err.(*unmetExpectation); ok { //nolint:errorlint // it is never wrapped
		return &problem.Error{Code: glasses.CodeUnsupported, Message: unmet.message,
			FixHint: "Call setDevice to see the reason, or remove deviceModel from the scenario."}
	}
	return err
}

// makeArtifacts creates the directory for pictures, if one is requested.
func makeArtifacts(ctx context.Context, req Request) error {
	if req.Artifacts == "" {
		return nil
	}
	if err := req.Files.MakeDir(ctx, req.Artifacts, 0o700); err != nil {
		return &problem.Error{Code: problem.CodeStateUnwritable, Message: "create the folder for pictures: " + err.Error(),
			FixHint: "Pass a writable folder."}
	}
	return nil
}
