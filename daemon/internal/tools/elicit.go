package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
)

// quietWait is how long a call may wait for the person when its client sees no progress: clients cut silent calls
// after 60 s.
const quietWait = 50 * time.Second

// elicit asks the person through the client and, when they agree, waits for the approval and makes the call after all.
// answered is false when the client could not ask; the answer has to show the code then.
func (g *gate) elicit(ctx context.Context, c call, code link.Code, refused *refusal, do func(context.Context, backend.Target) (any, error)) (out any, answered bool, err error) {
	limit := quietWait
	if c.io.Progress != nil {
		limit = min(link.MaxWait, max(code.ExpiresIn, time.Second))
	}
	meter := newMeter(c.io, limit)
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var accepted bool
	meter.during(asking, "waiting for the person to answer the question to open the page", func() {
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
	case !accepted: // who declined is not shown the page another way
		return authRequired(code, refused.state, false), true, nil
	}
	wait := link.Wait{Max: max(time.Until(deadline), time.Second), OnPoll: meter.poll()}
	meter.during(ctx, waiting, func() { _, err = g.links.Complete(ctx, c.who, code.DeviceCode.DeviceCode, wait) })
	out, err = g.goOn(ctx, c, code, err, refused, do)
	return out, true, err
}

func question(code link.Code) string {
	text := fmt.Sprintf("Link your free account: open the page, check that it shows the code %s, sign in and approve. Do not approve if the code differs.", code.UserCode)
	if code.SignInWord != "" {
		text += " The page asks for the sign-in word " + code.SignInWord + "."
	}
	return text
}

// goOn makes the call after the wait for the person ended with err.
func (g *gate) goOn(ctx context.Context, c call, code link.Code, err error, refused *refusal, do func(context.Context, backend.Target) (any, error)) (any, error) {
	var p *backend.Problem
	if errors.As(err, &p) && p.Code == link.CodeAuthTimeout {
		return g.askAgain(ctx, c, refused, do)
	}
	if err != nil {
		return nil, err
	}
	g.links.TakeGated(code.DeviceCode.DeviceCode) // this call is the one that was remembered
	out, again, err := g.attempt(ctx, c, do)
	if again != nil {
		return nil, &backend.Problem{Code: backend.CodeAuthRequired, Message: "the new link was refused by the backend", Retryable: true, FixHint: "repeat the call to link an account again"}
	}
	return out, err
}

// askAgain answers with the code that is live now, and what is left of its time.
func (g *gate) askAgain(ctx context.Context, c call, refused *refusal, do func(context.Context, backend.Target) (any, error)) (any, error) {
	code, err := g.ask(ctx, c, refused, do)
	if err != nil {
		return nil, err
	}
	return authRequired(code, refused.state, false), nil
}
