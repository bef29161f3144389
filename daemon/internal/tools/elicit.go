package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
)

// quietWait is how long a call may wait for the person when its client sees no progress: clients cut silent calls
// after 60 s.
const quietWait = 50 * time.Second

// heartbeat is how often a call that waits for the person's answer says so.
const heartbeat = 10 * time.Second

// elicit asks the person through the client and, when they agree, waits for the approval and makes the call after all.
// answered is false when the client could not ask; the answer has to show the code then.
func (g *gate) elicit(ctx context.Context, c call, code link.Code, refused *refusal, do func(context.Context, backend.Target) (any, error)) (out any, answered bool, err error) {
	limit := quietWait
	if c.io.Progress != nil {
		limit = min(link.MaxWait, max(code.ExpiresIn, time.Second))
	}
	meter := &meter{io: c.io, total: limit}
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	accepted, err := g.question(asking, c, code, meter)
	deadline, _ := asking.Deadline()
	switch {
	case errors.Is(err, ErrDeferred):
		return nil, true, err
	case ctx.Err() != nil:
		return nil, true, ctx.Err()
	case asking.Err() != nil:
		out, err = g.askAgain(ctx, c, refused)
		return out, true, err
	case err != nil:
		return nil, false, nil
	case !accepted: // who declined is not shown the page another way
		return authRequired(code, refused.state, false), true, nil
	}
	wait := link.Wait{Max: max(time.Until(deadline), time.Second), OnPoll: meter.poll()}
	out, err = g.goOn(ctx, c, code, wait, refused, do)
	return out, true, err
}

// question asks, with a sign of life while the person reads it.
func (g *gate) question(ctx context.Context, c call, code link.Code, m *meter) (bool, error) {
	if c.io.Progress != nil {
		beating, stop := context.WithCancel(ctx)
		var beats sync.WaitGroup
		beats.Go(func() { m.beat(beating) })
		defer beats.Wait()
		defer stop()
	}
	text := fmt.Sprintf("Link your free account: open the page, check that it shows the code %s, sign in and approve. Do not approve if the code differs.", code.UserCode)
	return c.io.Elicit(ctx, text, code.VerificationURL)
}

// goOn waits for the person who agreed to open the page.
func (g *gate) goOn(ctx context.Context, c call, code link.Code, wait link.Wait, refused *refusal, do func(context.Context, backend.Target) (any, error)) (any, error) {
	_, err := g.links.Complete(ctx, c.who, code.DeviceCode.DeviceCode, wait)
	var p *backend.Problem
	if errors.As(err, &p) && p.Code == link.CodeAuthTimeout {
		return g.askAgain(ctx, c, refused)
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
func (g *gate) askAgain(ctx context.Context, c call, refused *refusal) (any, error) {
	code, err := g.ask(ctx, c, refused)
	if err != nil {
		return nil, err
	}
	return authRequired(code, refused.state, false), nil
}

// meter reports waiting as seconds that only ever grow, as MCP asks for.
type meter struct {
	io    IO
	total time.Duration

	mu   sync.Mutex
	told bool
	last float64
}

func (m *meter) tell(done time.Duration, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value := done.Seconds()
	if m.told && value <= m.last {
		value = m.last + 0.001
	}
	m.told, m.last = true, value
	m.io.Progress(value, m.total.Seconds(), message)
}

// poll is nil when nobody listens.
func (m *meter) poll() func(link.PollEvent) {
	if m.io.Progress == nil {
		return nil
	}
	return func(e link.PollEvent) {
		message := fmt.Sprintf("waiting for the person to approve (poll %d)", e.PollCount)
		if e.Note != "" {
			message += ": " + e.Note
		}
		m.tell(m.total-e.Remaining, message)
	}
}

// beat reports until ctx ends.
func (m *meter) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for waited := heartbeat; ; waited += heartbeat {
		select {
		case <-ticker.C:
			m.tell(waited, "waiting for the person to answer the question to open the page")
		case <-ctx.Done():
			return
		}
	}
}
