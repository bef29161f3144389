package scenario

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// leftAtEnd returns the row that records the last app leaving, if no app has attached since.
func leftAtEnd(rows []glasses.Event) (row glasses.Event, left bool) {
	for _, e := range slices.Backward(rows) {
		if e.Sender != glasses.SenderService {
			continue
		}
		switch e.Type {
		case glasses.RowAppAttached:
			return glasses.Event{}, false
		case glasses.RowAppDetached:
			return e, true
		}
	}
	return glasses.Event{}, false
}

// checkApp fails the run if the app left the session and has not returned, unless a step expects that or the recorded
// app left too. Without this check a crashed app would often pass, because the panel keeps showing its tree.
func (x *run) checkApp(ctx context.Context) error {
	row, left := leftAtEnd(x.rows)
	if !left || x.s.Recorded != nil && x.s.Recorded.AppLeft || slices.ContainsFunc(x.s.Steps, expectsLeaving) {
		return nil
	}
	s, err := x.r.sessions.Get(ctx, x.req.Target, x.req.SessionID)
	if err != nil {
		return err
	}
	if s.Apps > 0 {
		return nil // there were several apps
	}
	x.report.Verdict = Fail
	x.report.AppLeft = fmt.Sprintf("the app left the session at %d ms and did not come back", row.At-x.base)
	return nil
}

func expectsLeaving(s scenario.Step) bool {
	return s.Expect != nil && s.Expect.Type == glasses.RowAppDetached && !s.Expect.Absent
}
