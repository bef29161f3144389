package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/internal/problem"
)

// Limits in real time.
const (
	controlTimeout = 10 * time.Second      // for the result of a control frame
	barrierTimeout = 10 * time.Second      // for an app's answer to a barrier
	quietPeriod    = 50 * time.Millisecond // an app without barriers has settled after this time without a frame
	callPause      = 2 * time.Millisecond  // pause between two barriers while an app waits for the gateway
	maxRounds      = 1000                  // barriers after which an app is assumed never to settle
)

// turns serialises operations on a session's glasses.
type turns struct {
	// operation is held by the caller that advances virtual time or sends a control frame.
	operation lock
	// exchange is held while a control frame is sent and its result is awaited, so that in virtual time a result
	// precedes the next control frame. It is acquired after operation.
	exchange lock
	// unconfirmed counts the commands since the latest result of a control frame. exchange guards it.
	unconfirmed int
}

func newTurns() turns { return turns{operation: newLock(), exchange: newLock()} }

// ask sends a control frame and waits for its result.
func (s *localSession) ask(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	id, raw := host.NewControlID(), broker.Payload(payload)
	if string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	m, err := host.ControlFrame(typ, id, s.state.nowMs(), raw, media)
	if err != nil {
		return glasses.Result{}, invalid("the control frame cannot be sent: "+err.Error(),
			"Send a JSON object, and a smaller file.")
	}
	answer := s.controls.Expect(id)
	defer s.controls.Take(id)
	if s.transport.send(m) != nil {
		return glasses.Result{}, notConnected("the session's glasses are not attached")
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	select {
	case res, ok := <-answer:
		if !ok {
			return res, notConnected("the session's glasses were detached")
		}
		return res, nil
	case <-ctx.Done():
		return glasses.Result{}, &problem.Error{
			Code: problem.CodeTimeout, Message: "the glasses did not answer in time", Retryable: true,
			FixHint: "Repeat the call; if that does not help, close the session and open another.",
		}
	}
}

// step advances the glasses to the next scheduled event, but not beyond `to`. It returns after the event has been
// relayed. Reached reports whether nothing more is due up to `to`. The caller holds exchange.
func (s *localSession) step(ctx context.Context, to int64) (reached bool, err error) {
	res, err := s.ask(ctx, glasses.SimAdvance, glasses.Advance{ToMs: to}, nil)
	if err != nil {
		return false, err
	}
	if res.Clock == nil {
		message := "the glasses did not report their time"
		if res.Error != nil {
			message = res.Error.Message
		}
		return false, &problem.Error{Code: problem.CodeUnsupported, Message: message}
	}
	s.state.advanceTo(res.Clock.NowMs)
	return res.Clock.Reached, nil
}

// settle waits, in real time, until every app has handled the frames sent to it and is waiting for the glasses again.
// It returns false if an app does not settle.
func (s *localSession) settle(ctx context.Context) bool {
	for range maxRounds {
		atRest := true
		for _, a := range s.Apps.All() {
			if a.isAtRest() {
				continue
			}
			atRest = false
			if !a.rest(ctx) {
				return false
			}
		}
		if atRest {
			return true
		}
	}
	return false
}

// isGone reports whether the app has left.
func (a *App) isGone() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// isAtRest reports whether the app has handled every frame sent to it.
func (a *App) isAtRest() bool { return a.handled.Load() >= a.sent.Load() }

// rest waits until the app has handled the frames sent so far. If an app has failed to settle, rest does not wait for
// it again until the app sends a frame.
func (a *App) rest(ctx context.Context) bool {
	if a.isStuck.Load() {
		return false
	}
	sent := a.sent.Load()
	wait := a.waitQuiet
	if a.answersBarriers {
		wait = a.waitBarrier
	}
	timeout, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	if !wait(timeout) {
		a.isStuck.Store(ctx.Err() == nil)
		return false
	}
	a.handled.Store(sent)
	return true
}

// waitBarrier waits until the app answers a barrier and no call of its assistant is still being delivered.
func (a *App) waitBarrier(ctx context.Context) bool {
	for {
		calls, ok := a.askBarrier(ctx)
		switch {
		case !ok:
			return false
		case calls < 0 && a.hasGateway.Load():
			return a.waitQuiet(ctx)
		case calls <= a.session.waitingCalls(a):
			return true
		}
		select {
		case <-time.After(callPause):
		case <-ctx.Done():
			return false
		}
	}
}

// askBarrier sends a barrier. calls is the number of gateway calls that the app waits for, or -1 if the app does not
// count them.
func (a *App) askBarrier(ctx context.Context) (calls int, ok bool) {
	id := "bar-" + rand.Text()
	answered := make(chan int, 1)
	a.mu.Lock()
	a.barriers[id] = answered
	a.mu.Unlock()
	a.SendText(a.session.Frame(glasses.TypeBarrier, id, struct{}{}))
	select {
	case calls = <-answered:
		return calls, true
	case <-a.gone:
		return 0, true
	case <-ctx.Done():
	}
	a.mu.Lock()
	delete(a.barriers, id)
	a.mu.Unlock()
	return 0, false
}

// waitQuiet waits until neither side has sent a frame for quietPeriod.
func (a *App) waitQuiet(ctx context.Context) bool {
	for {
		a.mu.Lock()
		active := a.active
		a.mu.Unlock()
		select {
		case <-time.After(quietPeriod):
			return true
		case <-a.gone:
			return true
		case <-ctx.Done():
			return false
		case <-active:
		}
	}
}

// advance advances virtual time by ms milliseconds. It stops at each event and lets the apps react.
func (s *localSession) advance(ctx context.Context, ms int64) (nowMs int64, settled bool, err error) {
	if err := s.turns.operation.take(ctx); err != nil {
		return 0, false, err
	}
	defer s.turns.operation.give()
	settled = s.settle(ctx)
	target := s.state.nowMs() + ms
	for {
		reached, err := s.stepToward(ctx, target)
		if err != nil {
			return s.state.nowMs(), false, err
		}
		busy := s.isBusy()
		if settled {
			settled = s.settle(ctx)
		}
		if now := s.state.nowMs(); reached && now >= target && (!busy || !settled) {
			return now, settled, nil
		}
		if ctx.Err() != nil {
			return s.state.nowMs(), false, context.Cause(ctx)
		}
	}
}

// stepToward advances to target, or to the service's next action if that is earlier. It then performs the action.
func (s *localSession) stepToward(ctx context.Context, target int64) (reached bool, err error) {
	s.Mu.Lock()
	if due, ok := s.nextDue(); ok {
		target = max(min(target, due), s.state.nowMs())
	}
	s.Mu.Unlock()
	if err := s.turns.exchange.take(ctx); err != nil {
		return false, err
	}
	defer s.turns.exchange.give()
	if reached, err = s.step(ctx, target); err != nil {
		return false, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.expire()
	return reached, nil
}

// isBusy reports whether an app still has work to do in virtual time.
func (s *localSession) isBusy() bool {
	for _, a := range s.Apps.All() {
		if !a.isAtRest() {
			return true
		}
	}
	return false
}
