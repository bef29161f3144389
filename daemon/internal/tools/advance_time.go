package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
)

const advanceTimeText = `Moves the virtual clock of a local session forward, and lets the glasses and the app do everything that falls due on the way, in order; ` +
	`a minute takes milliseconds. Use it in a session that startLocalSimulation opened with clock "virtual", where time stands still otherwise: ` +
	`a speech ends, a clock.sleep of the app is over, a late answer arrives. settled false means that the app did not come to rest (it does not answer barriers, ` +
	`or waits on the machine's own timers). A session in real time refuses with unsupported; there waitForEvent waits. ` +
	`See what happened with getEventLog, getDisplayState or expectDisplay.`

type advanceTime struct {
	reach
	sessions advancer
}

type advancer interface {
	Advance(ctx context.Context, id string, ms int64) (nowMs int64, settled bool, err error)
}

type advanceTimeArgs struct {
	SessionID string   `json:"sessionId"`
	Ms        *integer `json:"ms"`
}

type advanceAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"sessionId"`
	NowMs     int64  `json:"nowMs"`
	Settled   bool   `json:"settled"`
	Since     int64  `json:"since"`
	Summary   string `json:"summary"`
}

func (t advanceTime) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "advanceTime", Title: "Let virtual time pass", Description: advanceTimeText,
		InputSchema: inputSchema(sessionArgument+fmt.Sprintf(`,"ms":{"type":"integer","description":"How far, 0 to %d milliseconds."}`, session.MaxAdvance), `"ms"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"sessionId":{"type":"string"},
			"nowMs":{"type":"integer","description":"The session's clock now."},
			"settled":{"type":"boolean","description":"Whether the app has done all it had to do."},
			"since":{"type":"integer","description":"The event log's last row before it: waitForEvent and getEventLog read from here."},`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t advanceTime) run(ctx context.Context, c call) (any, error) {
	var args advanceTimeArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.Ms == nil || *args.Ms < 0 || *args.Ms > session.MaxAdvance {
		return nil, &Error{Code: CodeInvalidArguments, Message: fmt.Sprintf("argument \"ms\" is missing or not 0 to %d", session.MaxAdvance), FixHint: "pass how many milliseconds shall pass, e.g. 1000"}
	}
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		since := t.mark(ctx, target, id)
		now, settled, err := t.sessions.Advance(ctx, id, int64(*args.Ms))
		if err != nil {
			return nil, err
		}
		answer := advanceAnswer{Status: "ok", SessionID: id, NowMs: now, Settled: settled, Since: since}
		answer.Summary = fmt.Sprintf("The clock of session %s is at %d ms.", id, now)
		if !settled {
			answer.Summary += ` The app did not come to rest: it should say "barrier":true in hello, answer barrier frames, and wait with clock.sleep only.`
		}
		return answer, nil
	})
}
