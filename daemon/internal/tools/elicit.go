package tools

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/problem"
)

// quietWait is the maximum wait for the user if the client does not show progress. Clients abort silent calls after 60
// s.
const quietWait = 50 * time.Second

// elicit asks the user through the client. If the user agrees, elicit waits for the approval and makes the call.
// answered is false if the client could not ask; the answer must then show the code.
func (g *gate) elicit(ctx context.Context, c call, code link.Code, refused *refusal,
	do gatedWork) (out any, answered bool, err error) {
	limit := quietWait
	if c.io.Progress != nil {
		limit = min(link.MaxWait, max(code.ExpiresIn, time.Second))
	}
	progress := newProgress(c.io, limit)
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var accepted bool
	progress.during(asking, "waiting for the user to agree to open the page", func() {
		accepted, err = c.io.Elicit(asking, question(code), code.VerificationURL)
	})
	deadline, _ := asking.Deadline()
	switch {
	case errors.Is(err, ErrDeferred):
		return nil, true, err
	case ctx.Err() != nil:
		return nil, true, ctx.Err()
	case asking.Err() != nil:
		out, err = g.askAgain(ctx, c, refused, do)
		return out, true, err
	case err != nil:
		return nil, false, nil
	}
	// The client opens the page only if the user agrees.
	g.links.OpenPage(code.DeviceCode.DeviceCode, false, func(string) bool { return true })
	if !accepted {
		return authRequired(code, refused.state, false), true, nil
	}
	wait := link.Wait{Max: max(time.Until(deadline), time.Second), OnPoll: progress.onPoll()}
	progress.during(ctx, waiting, func() { _, err = g.links.Complete(ctx, c.who, code.DeviceCode.DeviceCode, wait) })
	out, err = g.afterApproval(ctx, c, code, err, refused, do)
	return out, true, err
}

// afterApproval makes the call after the wait for the user has ended with err.
func (g *gate) afterApproval(ctx context.Context, c call, code link.Code, err error, refused *refusal,
	do gatedWork) (any, error) {
	if p := problem.From(err); p != nil && p.Code == problem.CodeAuthTimeout {
		return g.askAgain(ctx, c, refused, do)
	}
	if err != nil {
		return nil, err
	}
	g.links.TakeGated(code.DeviceCode.DeviceCode) // the call is repeated here
	out, again, err := g.attempt(ctx, c, do)
	if again != nil {
		return nil, errLinkRefused
	}
	return out, err
}

// askAgain answers with the code that is live now and its remaining lifetime.
func (g *gate) askAgain(ctx context.Context, c call, refused *refusal, do gatedWork) (any, error) {
	code, err := g.ask(ctx, c, refused, do)
	if err != nil {
		return nil, err
	}
	return authRequired(code, refused.state, false), nil
}
