package scenario

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// CodeNotAccepted is the code of a run that cannot become the recording.
const CodeNotAccepted = "not_accepted"

// checkAccept refuses, before anything is run, to accept a run that cannot be compared with the recording.
func (r *Runner) checkAccept(ctx context.Context, req Request, s scenario.Scenario) error {
	if s.Recorded == nil {
		return &backend.Problem{Code: CodeNotAccepted, Message: "the scenario has no recording to update",
			FixHint: "change its steps in the file, or record a session with recordSession"}
	}
	now, err := r.sessions.Get(ctx, req.Target, req.SessionID)
	if err != nil {
		return err
	}
	if s.DeviceModel != "" && now.DeviceModel != s.DeviceModel {
		return &backend.Problem{Code: CodeNotAccepted,
			Message: fmt.Sprintf("the recording was made on %s, the session has %s", s.DeviceModel, now.DeviceModel),
			FixHint: "open a fresh session with deviceModel " + s.DeviceModel + ", or record this one as well"}
	}
	if s.Recorded.Clock == backend.ClockVirtual && now.Clock != backend.ClockVirtual {
		return &backend.Problem{Code: CodeNotAccepted,
			Message: "the recording was made in virtual time, the session has a real clock",
			FixHint: "open a fresh session with clock virtual"}
	}
	return nil
}

// accept replaces the recording with what the app did. The steps and their claims stay: a person has to change a claim
// that does not hold.
func (x *run) accept(ctx context.Context) error {
	if x.report.AppLeft != "" {
		return &backend.Problem{Code: CodeNotAccepted, Message: x.report.AppLeft,
			FixHint: "keep the app running until the run is over, then accept"}
	}
	for _, s := range x.report.Steps {
		if s.Verdict != Pass {
			return &backend.Problem{Code: CodeNotAccepted,
				Message: fmt.Sprintf("step %d (%s) does not hold: %s", s.Number, s.Step, s.Message),
				FixHint: "fix the app; or, if the claim is now wrong, change or remove that step in " + x.req.Path}
		}
	}
	if len(x.report.Diffs) == 0 {
		return nil
	}
	rec := *x.s.Recorded
	rec.Trace, rec.Pictures = traceOf(x.rows, x.base), []scenario.Picture{}
	_, rec.AppLeft = leftAtEnd(x.rows)
	for _, p := range panels(x.rows, x.base, x.model) {
		data := p.png()
		rec.Pictures = append(rec.Pictures, scenario.Picture{At: p.at, SHA256: sum(data)})
		if err := writeFile(ctx, x.req.Files, x.dir, "pictures", sum(data)+".png", data); err != nil {
			return notUpdated(err)
		}
	}
	updated := x.s
	updated.Recorded = &rec
	data, err := updated.Encode()
	if err == nil {
		_, err = scenario.Parse(data)
	}
	if err == nil {
		err = x.req.Files.Replace(ctx, filepath.Clean(x.req.Path), data, 0o600, 0o700)
	}
	if err != nil {
		return notUpdated(err)
	}
	x.report.Accepted, x.report.Verdict = true, Pass
	return nil
}

func notUpdated(err error) error {
	return &backend.Problem{Code: session.CodeStateUnwritable, Message: "updating the recording: " + err.Error(),
		FixHint: "pass a recording that can be written"}
}
