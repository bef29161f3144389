package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
)

const (
	controlWait = 10 * time.Second      // real time for the answer to a control frame
	barrierWait = 10 * time.Second      // real time for an app's answer to a barrier
	quietWait   = 50 * time.Millisecond // real time without a frame, of an app that answers no barriers
	maxRounds   = 1000                  // barriers of an app before it is taken for one that never rests
)

// ask sends one control frame and waits for its result.
func (r *room) ask(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	r.mu.Lock()
	if r.glasses == nil {
		r.mu.Unlock()
		return glasses.Result{}, notConnected("the session's glasses are not attached")
	}
	id := r.askID("ctl")
	f := glasses.Frame{Type: typ, ID: id, At: r.clock(), Payload: encode(payload)}
	data, err := controlFrame(f, media)
	if err != nil {
		r.mu.Unlock()
		return glasses.Result{}, err
	}
	answer := make(chan glasses.Result, 1)
	r.controls[id] = answer
	err = r.glasses.Send(data, media != nil)
	r.mu.Unlock()
	if err != nil {
		return glasses.Result{}, notConnected("the session's glasses are gone")
	}
	ctx, cancel := context.WithTimeout(ctx, controlWait)
	defer cancel()
	select {
	case res, ok := <-answer:
		if !ok {
			return res, notConnected("the session's glasses are gone")
		}
		return res, nil
	case <-ctx.Done():
		r.mu.Lock()
		delete(r.controls, id)
		r.mu.Unlock()
		return glasses.Result{}, &backend.Problem{Code: backend.CodeTimeout, Message: "the glasses did not answer in time", Retryable: true,
			FixHint: "repeat the call; if it stays so, close the session and open another"}
	}
}

func controlFrame(f glasses.Frame, media []byte) (data []byte, err error) {
	if string(f.Payload) == "null" {
		f.Payload = json.RawMessage("{}")
	}
	if media != nil {
		data, err = glasses.EncodeBinary(f, media)
	} else if data, err = f.Encode(); len(data) > glasses.MaxFrame {
		return nil, invalid("the payload is longer than a frame may be", "send less at once")
	}
	if err != nil {
		return nil, invalid("the payload cannot be sent: "+err.Error(), "send a JSON object, and a smaller file")
	}
	return data, nil
}

func (r *room) nowMs() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock()
}

// step takes the glasses to the next instant at which something happens, at most to `to`. What happened was relayed when
// it returns. turn is held.
func (r *room) step(ctx context.Context, to int64) (reached bool, err error) {
	for {
		res, err := r.ask(ctx, glasses.SimAdvance, glasses.Advance{ToMs: to}, nil)
		if err != nil {
			return false, err
		}
		if res.Clock == nil {
			message := "the glasses did not say what time it is"
			if res.Error != nil {
				message = res.Error.Message
			}
			return false, &backend.Problem{Code: backend.CodeUnsupported, Message: message}
		}
		r.mu.Lock()
		before := r.meta.NowMs
		r.passes(res.Clock.NowMs)
		r.mu.Unlock()
		if res.Clock.Reached || res.Clock.NowMs > before || to > before {
			return res.Clock.Reached, nil
		}
	}
}

// settle waits in real time until every app has handled what it was sent and waits for the glasses again. It tells false
// when an app does not come to rest.
func (r *room) settle(ctx context.Context) bool {
	for range maxRounds {
		still := true
		for _, a := range *r.apps.Load() {
			if a.handled.Load() >= a.sent.Load() {
				continue
			}
			still = false
			if !a.rest(ctx) {
				return false
			}
		}
		if still {
			return true
		}
	}
	return false
}

// rest waits until the app has handled what it was sent so far. One that kept others waiting once is not waited for
// again before it has sent something.
func (a *App) rest(ctx context.Context) bool {
	if a.stuck.Load() {
		return false
	}
	sent := a.sent.Load()
	rests := a.quiet
	if a.barrier {
		rests = a.answers
	}
	late, cancel := context.WithTimeout(ctx, barrierWait)
	defer cancel()
	if !rests(late) {
		a.stuck.Store(ctx.Err() == nil)
		return false
	}
	a.handled.Store(sent)
	return true
}

// answers waits until the app comes to a barrier.
func (a *App) answers(ctx context.Context) bool {
	r := a.r
	r.mu.Lock()
	id := r.askID("bar")
	f := r.frame(glasses.TypeBarrier, id, struct{}{})
	r.mu.Unlock()
	wait := make(chan struct{})
	a.mu.Lock()
	a.waits[id] = wait
	a.mu.Unlock()
	a.peer.Send(f, false, false)
	select {
	case <-wait:
		return true
	case <-a.gone:
		return true
	case <-ctx.Done():
	}
	a.mu.Lock()
	delete(a.waits, id)
	a.mu.Unlock()
	return false
}

// quiet waits until nothing went to or came from the app for a while.
func (a *App) quiet(ctx context.Context) bool {
	for {
		a.mu.Lock()
		moved := a.moved
		a.mu.Unlock()
		still := time.NewTimer(quietWait)
		select {
		case <-still.C:
			return true
		case <-a.gone:
			still.Stop()
			return true
		case <-ctx.Done():
			still.Stop()
			return false
		case <-moved:
			still.Stop()
		}
	}
}

// advance moves virtual time to an instant, stopping wherever something happens for the apps to react.
func (r *room) advance(ctx context.Context, ms int64) (nowMs int64, settled bool, err error) {
	if err := r.op.take(ctx); err != nil {
		return 0, false, err
	}
	defer r.op.give()
	settled = r.settle(ctx)
	target := r.nowMs() + ms
	for {
		r.mu.Lock()
		to := target
		if due, ok := r.due(); ok {
			to = max(min(to, due), r.meta.NowMs)
		}
		r.mu.Unlock()
		if err := r.turn.take(ctx); err != nil {
			return r.nowMs(), false, err
		}
		reached, err := r.step(ctx, to)
		if err == nil {
			r.mu.Lock()
			r.expire()
			r.mu.Unlock()
		}
		r.turn.give()
		if err != nil {
			return r.nowMs(), false, err
		}
		busy := r.busy()
		if settled {
			settled = r.settle(ctx)
		}
		if now := r.nowMs(); reached && now >= target && (!busy || !settled) {
			return now, settled, nil
		}
		if ctx.Err() != nil {
			return r.nowMs(), false, context.Cause(ctx)
		}
	}
}

// busy tells whether an app has something to react to.
func (r *room) busy() bool {
	for _, a := range *r.apps.Load() {
		if a.handled.Load() < a.sent.Load() {
			return true
		}
	}
	return false
}
