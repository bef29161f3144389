package scenario

import (
	"context"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/internal/problem"
)

// connectPoll is the interval at which a run checks whether real glasses are connected. It polls because the log does
// not contain a row for each change.
const connectPoll = time.Second

// awaitGlasses waits until the session's real glasses are connected. On failure it returns the reason why they are not
// connected. Without real glasses it returns immediately.
func (x *run) awaitGlasses(ctx context.Context) error {
	late := time.Now().Add(x.r.attachWait)
	for {
		s, err := x.r.sessions.Get(ctx, x.req.Target, x.req.SessionID)
		if err != nil || s.Transport != session.RealDevice || session.IsConnected(s.Hardware) {
			return err
		}
		wait := time.Until(late)
		if wait <= 0 || session.NeedsPerson(s.Hardware) || needsPage(s.Hardware) {
			return notConnected(s.Hardware)
		}
		if err := x.fetch(ctx, min(wait, connectPoll)); err != nil {
			return err
		}
	}
}

// needsPage reports whether the user has to open the page that connects the glasses.
func needsPage(h *backend.Hardware) bool { return h != nil && h.ConnectURL != "" }

func notConnected(h *backend.Hardware) error {
	p := &problem.Error{Code: problem.CodeNotConnected, Message: "the glasses did not connect in time", Retryable: true,
		FixHint: "Take them out of their case, close to this computer, then repeat the run."}
	if h != nil && h.Problem != nil {
		p.Message, p.FixHint = "the glasses are not connected: "+h.Problem.Message, h.Problem.FixHint
	}
	if needsPage(h) { // the run's session ends before the user could choose the glasses
		p.FixHint = "Connect them with `servicectl glasses connect` or connectRealDevice, start the app on that " +
			"session, and run the steps there, e.g. with `servicectl session replay`."
	}
	return p
}
