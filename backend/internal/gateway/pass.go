package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// Outcomes of calls that reached a provider.
const (
	outcomeOK        = "ok"
	outcomeFailed    = "failed"
	outcomeCancelled = "cancelled"
)

// result is the outcome and usage of a call.
type result struct {
	outcome   string
	usage     wire.Usage
	estimated bool
	carried   bool // the operator pays for the call
	malformed bool // the provider reported impossible usage
}

// transfer forwards the answer of one call to the app.
type transfer struct {
	*call
	to     Sink
	answer *wire.Answer
	cancel context.CancelCauseFunc // cancels the request to the provider
	timer  *time.Timer             // limits the wait for the provider's next byte
	left   atomic.Bool             // the app has disconnected
	missed bool                    // the app disconnected before it received the whole answer
	begun  bool                    // something was already sent to the app
}

// pass sends the request, forwards the answer and settles the call.
func (c *call) pass(ctx context.Context, to Sink) error {
	upstream, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c.s.keep(c, cancel)
	defer context.AfterFunc(c.s.ctx, func() { cancel(errStopped) })()
	total := time.AfterFunc(c.s.Limits.Total, func() { cancel(errTotal) })
	defer total.Stop()
	// A usage report of more than ten times the model's context must be wrong.
	t := &transfer{call: c, to: to, cancel: cancel, answer: wire.NewAnswer(c.request, 10*c.model.context)}
	if c.who.Session != "" {
		t.answer.CollectTools()
	}
	defer t.drainWhenLeft(ctx)()

	first := c.s.Limits.Total // an answer that is not streamed starts when it is complete
	if c.request.Stream {
		first = c.s.Limits.FirstByte
	}
	t.timer = time.AfterFunc(first, func() { cancel(errFirstByte) })
	defer func() { t.timer.Stop() }() // the timer in use at that time
	response, err := c.send(upstream)
	if err != nil {
		return t.failUnanswered(ctx, upstream, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refusal := c.refused(ctx, response)
		c.finish(ctx, result{outcome: refusal.outcome()})
		return refusal
	}
	t.answering()
	if !c.request.Stream {
		return t.passWhole(ctx, upstream, response)
	}
	return t.passStream(ctx, upstream, response)
}

// drainWhenLeft keeps reading the answer for a while after the app has disconnected, because the usage comes last. If
// too many answers are already being drained, it cancels the request. The returned function stops watching the app.
func (t *transfer) drainWhenLeft(ctx context.Context) func() {
	var timer atomic.Pointer[time.Timer]
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		t.left.Store(true)
		select {
		case t.s.drains <- struct{}{}:
			timer.Store(time.AfterFunc(t.s.Limits.Drain, func() { t.cancel(errLeft) }))
		default:
			t.cancel(errLeft)
		}
	})
	return func() {
		if stop() {
			return
		}
		<-ended
		if drain := timer.Load(); drain != nil {
			drain.Stop()
			<-t.s.drains
		}
	}
}

// answering replaces the limit on the wait for the first byte with the limit between two reads.
func (t *transfer) answering() {
	t.timer.Stop()
	t.timer = time.AfterFunc(t.s.Limits.Idle, func() { t.cancel(errIdle) })
}

func (t *transfer) failUnanswered(ctx, upstream context.Context, err error) error {
	err = cmp.Or(context.Cause(upstream), err)
	refusal := t.unanswered(err)
	r := t.unseen(err, refusal.outcome())
	if t.left.Load() { // the provider may be working on the request
		r = t.result(outcomeCancelled)
	}
	t.finish(ctx, r)
	return refusal
}

// unseen returns the result of a call if the app received no part of the answer. The app does not pay. If the
// provider did not answer in time, it may still bill the call, so the operator pays.
func (t *transfer) unseen(err error, outcome string) result {
	if !isTimeout(err) {
		return result{outcome: outcome}
	}
	r := t.result(outcome)
	r.carried = true
	return r
}

// passWhole forwards an answer that is not streamed. It charges the call before the app receives the answer.
func (t *transfer) passWhole(ctx, upstream context.Context, response *http.Response) error {
	body, err := t.readWhole(response)
	switch {
	case err != nil:
		return t.breakOff(ctx, upstream, err)
	case !t.answer.Whole(body):
		t.finish(ctx, result{outcome: outcomeFailed})
		return &Refusal{Code: CodeProviderError, RetryAfter: busyRetry,
			Message: "the model's provider sent an invalid answer: try again"}
	case t.answer.Failed:
		return t.breakOff(ctx, upstream, errProvider)
	}
	t.missed = t.left.Load()
	t.finish(ctx, t.result(t.outcome()))
	if t.missed {
		return nil
	}
	t.noteTools(ctx)
	t.to.Begin(false)
	_ = t.to.Write(t.redact(body)) // it is not an error if the app has disconnected
	return nil
}

var (
	errProvider = errors.New("the provider reported an error")
	errTooLarge = errors.New("the answer is too large")
)

func (t *transfer) readWhole(response *http.Response) ([]byte, error) {
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, errProvider
	}
	var body bytes.Buffer
	_, err := body.ReadFrom(io.LimitReader(&resetting{t, response.Body}, maxAnswer+1))
	if err == nil && body.Len() > maxAnswer {
		err = errTooLarge
	}
	return body.Bytes(), err
}

// resetting is a reader that restarts the limit between two reads at each read.
type resetting struct {
	t    *transfer
	from io.Reader
}

func (r *resetting) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.t.timer.Reset(r.t.s.Limits.Idle)
	return n, err
}

// passStream forwards events as they arrive. It writes nothing before the first event, so that an error sent instead
// of an event still gets its own status.
func (t *transfer) passStream(ctx, upstream context.Context, response *http.Response) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	encoding := response.Header.Get("Content-Encoding")
	if kind != "text/event-stream" || encoding != "" && encoding != "identity" {
		return t.passNoStream(ctx, upstream, response)
	}
	// Each open stream has one such buffer, and events are small.
	read, written := make([]byte, 4<<10), []byte(nil)
	from := &resetting{t, response.Body}
	for {
		n, err := from.Read(read)
		out, tooLarge := t.answer.Feed(written[:0], read[:n])
		written = out
		if errors.Is(err, io.EOF) {
			out = t.answer.Finish(out)
		}
		t.noteTools(ctx)
		t.write(out)
		switch {
		case t.answer.Failed:
			return t.breakOff(ctx, upstream, errProvider)
		case tooLarge != nil:
			return t.breakOff(ctx, upstream, tooLarge)
		case errors.Is(err, io.EOF) && !t.answer.Ended && !t.answer.Final:
			return t.breakOff(ctx, upstream, io.ErrUnexpectedEOF)
		case errors.Is(err, io.EOF), err != nil && t.answer.Ended:
			t.finish(ctx, t.result(t.outcome()))
			return nil
		case err != nil:
			return t.breakOff(ctx, upstream, err)
		case t.answer.Ended: // apps wait for the end of the stream, but the provider may keep it open
			t.timer.Reset(min(afterEnd, t.s.Limits.Idle))
		}
	}
}

// passNoStream handles a provider that was asked to stream but does not. Usually it reports an error.
func (t *transfer) passNoStream(ctx, upstream context.Context, response *http.Response) error {
	if body, err := t.readWhole(response); err != nil || t.answer.Whole(body) {
		return t.breakOff(ctx, upstream, errProvider)
	}
	t.finish(ctx, result{outcome: outcomeFailed})
	return t.busy("")
}

// write sends events to the app, unless it has disconnected.
func (t *transfer) write(p []byte) {
	if len(p) == 0 {
		return
	}
	if t.left.Load() {
		t.missed = true
		return
	}
	if !t.begun {
		t.begun = true
		t.to.Begin(true)
	}
	if t.to.Write(t.redact(p)) != nil {
		t.missed = true
		t.left.Store(true) // the server then ends the request's context, which starts the drain
	}
}

// noteTools records tool calls in the session's event log before the app receives them, so that they precede the app's
// reaction.
func (t *transfer) noteTools(ctx context.Context) {
	for _, tool := range t.answer.TakeTools() {
		if !t.left.Load() {
			t.s.Sessions.ToolCalled(ctx, t.who.Session, tool.Name, tool.Arguments)
		}
	}
}

func (t *transfer) outcome() string {
	if t.missed {
		return outcomeCancelled
	}
	return outcomeOK
}

// breakOff settles an incomplete answer with its usage report, or with an estimate from the part that was received.
func (t *transfer) breakOff(ctx, upstream context.Context, err error) error {
	err = cmp.Or(context.Cause(upstream), err)
	r := t.unseen(err, outcomeFailed)
	if t.left.Load() {
		r = t.result(outcomeCancelled)
	} else if t.answer.Seen || t.answer.HasText() {
		r = t.result(outcomeFailed)
	}
	t.finish(ctx, r)
	switch {
	case t.left.Load():
		return nil
	case t.begun:
		return t.broken(err)
	case errors.Is(err, errProvider), errors.Is(err, wire.ErrEventTooLarge), errors.Is(err, io.ErrUnexpectedEOF):
		return t.busy("")
	}
	return t.unanswered(err)
}

// broken returns an ErrBroken with a refusal that says why the answer broke off. The usual reason is a provider
// error.
func (t *transfer) broken(err error) error {
	refusal := &Refusal{Code: CodeProviderError, Message: ErrBroken.Error()}
	if isTimeout(err) || errors.Is(err, errRevoked) || errors.Is(err, errStopped) || errors.Is(err, errUncovered) {
		refusal = t.unanswered(err)
		refusal.Message = ErrBroken.Error() + ": " + refusal.Message
	}
	return fmt.Errorf("%w: %w", ErrBroken, refusal)
}

// result returns the usage of the answer: as the provider reported it, or otherwise an estimate.
func (t *transfer) result(outcome string) result {
	a := t.answer
	if a.Final && !a.Malformed {
		return result{outcome: outcome, usage: a.Usage, estimated: a.Unequal}
	}
	return result{outcome: outcome, usage: a.Estimate(t.request.InputEstimate(t.model.imageTokens)), estimated: true,
		malformed: a.Malformed}
}
