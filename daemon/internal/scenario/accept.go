package scenario

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses/scenario"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// checkAccept returns an error if the run cannot be accepted because it cannot be compared with the recording. It is
// called before the run.
func (r *Runner) checkAccept(ctx context.Context, req Request, s scenario.Scenario) error {
	if s.Recorded == nil {
		return &problem.Error{Code: problem.CodeNotAccepted, Message: "the scenario has no recording to update",
			FixHint: "Change its steps in the file, or record a session with recordSession."}
	}
	now, err := r.sessions.Get(ctx, req.Target, req.SessionID)
	if err != nil {
		return err
	}
	if s.DeviceModel != "" && now.DeviceModel != s.DeviceModel {
		return &problem.Error{Code: problem.CodeNotAccepted,
			Message: fmt.Sprintf("the recording was made on %s, but the session uses %s", s.DeviceModel, now.DeviceModel),
			FixHint: "Open a new session with deviceModel " + s.DeviceModel + ", or record this one as well."}
	}
	if s.Recorded.Clock == backend.ClockVirtual && now.Clock != backend.ClockVirtual {
		return &problem.Error{Code: problem.CodeNotAccepted,
			Message: "the recording was made in virtual time, but the session's clock is real",
			FixHint: "Open a new session with clock set to virtual."}
	}
	for _, n := range req.AcceptSteps {
		if n < 1 || n > max(len(s.Steps), 1) {
			return &problem.Error{Code: problem.CodeNotAccepted,
				Message: fmt.Sprintf("there is no step %d: the recording has %d, counted from 1", n, len(s.Steps)),
				FixHint: "Pass step numbers from the differences of a replay."}
		}
	}
	return nil
}

// accept replaces the recording's frames and pictures with those of this run. It keeps the steps and their claims. The
// user must correct claims that are no longer true by hand.
func (x *run) accept(ctx context.Context) error {
	if err := x.checkAccepted(func(int) bool { return true }); err != nil || len(x.report.Diffs) == 0 {
		return err
	}
	rec := *x.s.Recorded
	rec.Trace = traceOf(x.rows, x.base)
	_, rec.AppLeft = leftAtEnd(x.rows)
	var pictures []mergedPicture
	shown := panels(x.rows, x.base, x.model, x.req.SessionID)
	x.s.Fonts = fontsOf(shown)
	for _, p := range shown {
		pictures = append(pictures, mergedPicture{scenario.Picture{At: p.at}, p.png})
	}
	if err := x.update(ctx, rec, pictures); err != nil {
		return err
	}
	x.report.Accepted, x.report.Verdict = true, Pass
	return nil
}

// acceptSteps copies the differences in the requested steps into the recording. Only these steps must pass. Other
// differences and failures are reported only.
func (x *run) acceptSteps(ctx context.Context) error {
	m := &x.merged
	if err := x.checkAccepted(func(step int) bool { return slices.Contains(m.steps, step) }); err != nil {
		return err
	}
	for _, n := range m.steps {
		if m.taken[n] {
			continue
		}
		hint := "Accept nothing: no step differs."
		if len(m.left)+len(m.taken) > 0 {
			both := maps.Clone(m.left)
			maps.Copy(both, m.taken)
			hint = "Choose from the steps that differ: " + strings.Trim(fmt.Sprint(first(both)), "[]") + "."
		}
		return &problem.Error{Code: problem.CodeNotAccepted,
			Message: fmt.Sprintf("step %d does not differ from the recording; nothing was changed", n), FixHint: hint}
	}
	rec := *x.s.Recorded
	var pictures []mergedPicture
	rec.Trace, pictures = m.recording()
	for _, f := range fontsOf(panels(x.rows, x.base, x.model, x.req.SessionID)) {
		x.s.Fonts = withFont(x.s.Fonts, f)
	}
	if err := x.update(ctx, rec, pictures); err != nil {
		return err
	}
	x.report.AcceptedSteps, x.report.AcceptedDiffs, x.report.DifferingSteps = first(m.taken), m.kinds, first(m.left)
	return nil
}

// checkAccepted returns an error if an accepted step did not pass or the app disconnected.
func (x *run) checkAccepted(step func(number int) bool) error {
	if x.report.AppLeft != "" {
		return &problem.Error{Code: problem.CodeNotAccepted, Message: x.report.AppLeft,
			FixHint: "Keep the app running until the run is over, then accept."}
	}
	for _, s := range x.report.Steps {
		if s.Verdict != Pass && step(s.Number) {
			return &problem.Error{Code: problem.CodeNotAccepted,
				Message: fmt.Sprintf("step %d (%s) failed: %s", s.Number, s.Step,
					cmp.Or(s.Message, "it was not reached")),
				FixHint: "Fix the app; or, if the claim is no longer true, change or remove that step in " + x.req.Path + "."}
		}
	}
	return nil
}

// update replaces the recording and its pictures. The scenario file comes last and is replaced atomically.
func (x *run) update(ctx context.Context, rec scenario.Recorded, pictures []mergedPicture) error {
	rec.Pictures = []scenario.Picture{}
	for _, p := range pictures {
		if p.png != nil {
			data := p.png()
			p.SHA256 = sum(data)
			if err := writeFile(ctx, x.req.Files, x.dir, "pictures", p.SHA256+".png", data); err != nil {
				return notUpdated(err)
			}
		}
		rec.Pictures = append(rec.Pictures, p.Picture)
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
	removeOldPictures(ctx, x.req.Files, x.req.Path, x.s.Recorded.Pictures, rec.Pictures)
	return nil
}

// removeOldPictures removes pictures that a recording no longer lists, so that they are not mistaken for current
// ones. It keeps them if the directory contains another scenario, which may use them. It ignores errors, because
// unused pictures do not affect a run.
func removeOldPictures(ctx context.Context, files clientio.Files, path string, old, now []scenario.Picture) {
	dir := filepath.Dir(path)
	entries, err := files.List(ctx, dir)
	if err != nil || slices.ContainsFunc(entries, func(e contract.Entry) bool {
		return filepath.Ext(string(e.Name)) == ".json" && string(e.Name) != filepath.Base(path)
	}) {
		return
	}
	kept := map[string]bool{}
	for _, p := range now {
		kept[p.SHA256] = true
	}
	for _, p := range old {
		var hash [sha256.Size]byte
		if n, err := hex.Decode(hash[:], []byte(p.SHA256)); kept[p.SHA256] || err != nil || n != len(hash) {
			continue
		}
		kept[p.SHA256] = true // remove each picture only once
		_ = files.Remove(ctx, filepath.Join(dir, "pictures", p.SHA256+".png"), hash)
	}
}

func notUpdated(err error) error {
	return &problem.Error{Code: problem.CodeStateUnwritable, Message: "update the recording: " + err.Error(),
		FixHint: "Pass a writable recording."}
}
