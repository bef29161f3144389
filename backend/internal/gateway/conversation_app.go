package gateway

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// appSide is the app's side of a conversation with a provider's model or with a script.
type appSide struct {
	*call // of the whole conversation; it has no hold
	app   *websocket.Conn
	ctx   context.Context
	cut   context.CancelCauseFunc
	leave []func() // in the order of entering
	quiet *time.Timer
}

// newAppSide begins a conversation. The caller must call release of the result. It returns a *Refusal on failure.
func (s *Service) newAppSide(ctx context.Context, c *call) (*appSide, error) {
	end, err := s.begin(ctx, c.who)
	if err != nil {
		return nil, err
	}
	a := &appSide{call: c, leave: []func(){end}}
	a.ctx, a.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	return a, nil
}

// enter takes the slots of a conversation.
func (a *appSide) enter(ctx context.Context) error {
	leave, err := a.s.conversations.Enter(ctx, a.who.Account+" "+a.who.Project) // it does not wait
	if err != nil {
		return TooManyCalls()
	}
	a.leave = append(a.leave, leave)
	if a.who.Session == "" {
		return nil
	}
	if leave, err = a.s.bySession.Enter(ctx, a.who.Session); err != nil {
		return TooManyCalls()
	}
	a.leave = append(a.leave, leave)
	return nil
}

// release ends the conversation and leaves its slots.
func (a *appSide) release() {
	a.cut(nil)
	for _, leave := range a.leave {
		leave()
	}
	a.leave = nil
}

// start calls finish when nothing is said for too long and after the longest time of the conversation, and cuts it when
// the key is revoked and with the server, until stop is called.
func (a *appSide) start(app *websocket.Conn, longest time.Duration, finish func(cause error)) (stop func()) {
	a.app = app
	a.s.keep(a.call, a.cut)
	atShutdown := context.AfterFunc(a.s.ctx, func() { a.cut(errStopped) })
	a.quiet = time.AfterFunc(a.s.Limits.Quiet, func() { finish(errQuiet) })
	total := time.AfterFunc(longest, func() { finish(errSession) })
	return func() {
		total.Stop()
		a.quiet.Stop()
		atShutdown()
		a.s.forget(a.call)
	}
}

// recovered calls f. A panic ends only this conversation, as in a net/http handler.
func (a *appSide) recovered(f func()) {
	defer func() {
		if p := recover(); p != nil {
			a.s.Log.Error("panicked in a conversation", "panic", p, "stack", string(debug.Stack()))
			a.cut(errPanicked)
		}
	}()
	f()
}

// ping drops an app that does not respond, and calls also after each ping to an app that does.
func (a *appSide) ping(also func()) {
	ticker := time.NewTicker(a.s.Limits.Ping)
	defer ticker.Stop()
	heard := a.app.Heard() - 1
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-ticker.C:
		}
		now := a.app.Heard()
		if now == heard || a.app.Write(websocket.Ping, nil) != nil {
			a.app.Drop() // read ends the conversation
			continue
		}
		heard = now
		also()
	}
}

// read passes the app's events to handle until the app leaves, and then calls left. An error event for the app goes to
// tell.
func (a *appSide) read(handle, tell func(event []byte), left func()) {
	for {
		kind, err := a.app.Next()
		var data []byte
		if err == nil && kind != 0 {
			data, err = readEvent(a.app)
		}
		switch {
		case errors.Is(err, errTooBig):
			a.cut(err) // the next call of Next skips the event, so that the app receives the reason
		case err != nil:
			left()
			return
		case kind == websocket.Binary:
			tell(wire.RealtimeError("", invalidRequest, problem.CodeInvalidJSON, "events are text, not binary frames", "",
				nil))
		case kind == websocket.Text:
			a.quiet.Reset(a.s.Limits.Quiet)
			handle(data)
		}
	}
}

const invalidRequest = "invalid_request_error"

func readEvent(from *websocket.Conn) ([]byte, error) {
	if from.Size() > maxEvent {
		return nil, errTooBig
	}
	data := make([]byte, 0, min(from.Size()+1, maxEvent+1)) //nolint:gosec // at most maxEvent
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > maxEvent:
			return nil, errTooBig
		case err != nil && isEOF(err):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}
