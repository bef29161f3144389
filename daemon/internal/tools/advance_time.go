package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
)

type advanceTime struct {
	sessionGate
}

type advanceTimeArgs struct {
	sessionArg
	Ms *integer `json:"ms"`
}

type advanceAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"sessionId"`
	NowMs     int64  `json:"nowMs" jsonschema:"The session's clock now."`
	Settled   bool   `json:"settled" jsonschema:"Whether the app has nothing left to do."`
	Since     int64  `json:"since"`
	Summary   string `json:"summary"`
}

func (t advanceTime) definition() definition {
	return define(Tool{
		Name: "advanceTime", Title: "Let virtual time pass",
		OutputSchema: gatedAnswersOf[advanceAnswer]([]string{"ok"},
			on("since", says("The event log's latest row before that time. waitForEvent starts there by default; pass it as "+
				"since to getEventLog.")),
		),
	}, t.run,
		required("ms"),
		on("ms", says(fmt.Sprintf("How far, 0 to %d milliseconds.", session.MaxAdvance))),
	)
}

func (t advanceTime) run(ctx context.Context, c call, args advanceTimeArgs) (any, error) {
	if args.Ms == nil || *args.Ms < 0 || *args.Ms > session.MaxAdvance {
		return nil, invalid(fmt.Sprintf("argument \"ms\" is missing or not 0 to %d", session.MaxAdvance),
			"Pass the number of milliseconds to advance, e.g. 1000.")
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		since := t.mark(ctx, target, id)
		now, settled, err := t.sessions.Advance(ctx, id, int64(*args.Ms))
		if err != nil {
			return nil, err
		}
		answer := advanceAnswer{Status: "ok", SessionID: id, NowMs: now, Settled: settled, Since: since}
		answer.Summary = fmt.Sprintf("The clock of session %s is at %d ms.", id, now)
		if !settled {
			answer.Summary += ` The app did not come to rest: it should say "barrier":true in hello, answer barrier ` +
				`frames, and wait with clock.sleep only.`
		}
		return answer, nil
	})
}
