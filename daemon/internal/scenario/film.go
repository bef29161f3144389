package scenario

import (
	"context"
	"fmt"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// maxFrames is the maximum number of pictures in a film.
const maxFrames = 60

// film stores a picture of the panel after each of the app's display commands, if the request includes a film.
func (x *run) film(ctx context.Context) {
	if !x.req.Film || x.req.Artifacts == "" {
		return
	}
	last := ""
	for _, p := range panels(x.rows, x.base, x.model, x.req.SessionID) {
		if len(x.report.Frames) == maxFrames {
			x.report.MoreFrames++
			continue
		}
		png := p.png()
		if sum(png) == last {
			continue // the picture has not changed
		}
		last = sum(png)
		name := fmt.Sprintf("frame-%03d", len(x.report.Frames)+1)
		file, err := x.req.keep(ctx, name+".png", png)
		frame := Picture{Name: name, AtMs: p.at, SHA256: last, File: file}
		frame.notStored(err)
		x.report.Frames = append(x.report.Frames, frame)
	}
}

// onModel changes the device model of a scenario. It returns an error for a scenario with a recording, because a
// recording can be compared only on its own model.
func onModel(s *scenario.Scenario, id string) error {
	if id == "" || id == s.DeviceModel {
		return nil
	}
	if _, ok := glasses.Model(id); !ok {
		return &problem.Error{Code: problem.CodeInvalidScenario, Message: fmt.Sprintf("unknown device model %q", id),
			FixHint: "Pass an id from getPlatformInfo."}
	}
	if s.Recorded != nil {
		return &problem.Error{Code: problem.CodeInvalidScenario,
			Message: fmt.Sprintf("the recording was made on %q and cannot be compared on %s", s.DeviceModel, id),
			FixHint: "Leave deviceModel out, or record the session on that model too."}
	}
	s.DeviceModel = id
	return nil
}
