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
	"runtime/debug"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
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
	wholeHold bool // the account pays the whole hold, because the provider's receipt is missing
	malformed bool // the provider reported impossible usage
}

// transfer forwards the answer of one call to the app. A goroutine reads the answer to its end, which contains the
// usage report, even after the app has disconnected.
type transfer struct {
	*call
	answer  *wire.Answer
	cancel  context.CancelCauseFunc // cancels the request to the provider
	timer   *time.Timer             // limits the wait for the provider's next byte
	missed  bool                    // the app disconnected before it received the whole answer
	heard   *string                 // the text read before the app disconnected; nil if that was not noticed
	stalled chan struct{}           // closed when the app does not read

	mu    sync.Mutex // held while a part of the answer is written
	to    Sink       // nil once the app has disconnected
	begun bool       // a part of the answer was sent to the app
	ended bool       // the call is settled
	leave func()     // ends the drain; nil if there is none
}

// pass sends the request, forwards the answer and settles the call. It returns as soon as the app has disconnected or
// its key is no longer valid. The call then continues without the app until it is settled.
func (c *call) pass(ctx context.Context, to Sink) error {
	upstream, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	revoked := make(chan struct{})
	revoke := sync.OnceFunc(func() { close(revoked) })
	c.s.keep(c, func(cause error) {
		if errors.Is(cause, errRevoked) {
			revoke()
			return
		}
		cancel(cause)
	})
	// A usage report of more than ten times the model's context must be wrong.
	t := &transfer{call: c, to: to, cancel: cancel, answer: wire.NewAnswer(c.request, 10*c.model.context),
		stalled: make(chan struct{})}
	if c.who.Session != "" {
		t.answer.CollectTools()
	}
	if c.recalled != nil {
		t.answer.CollectText(maxTranscript)
	}
	done := make(chan error, 1)
	c.s.calls.Go(func() { done <- t.recovered(context.WithoutCancel(ctx), upstream) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return t.detach(errLeft)
	case <-t.stalled:
		return t.detach(errLeft)
	case <-revoked:
		return t.detach(errRevoked)
	}
}

// recovered calls run. A panic fails only this call, as in a net/http handler.
func (t *transfer) recovered(ctx, upstream context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.s.Log.ErrorContext(ctx, "panicked while reading an answer", "panic", p, "stack", string(debug.Stack()))
			t.finish(ctx, result{outcome: outcomeFailed})
			err = refusalOf(errPanicked)
		}
	}()
	return t.run(ctx, upstream)
}

// run reads the answer to its end and settles the call.
func (t *transfer) run(ctx, upstream context.Context) error {
	defer t.end()
	defer context.AfterFunc(t.s.ctx, func() { t.cancel(errStopped) })()
	total := time.AfterFunc(t.s.Limits.Total, func() { t.cancel(errTotal) })
	defer total.Stop()
	first := t.s.Limits.Total // an answer that is not streamed arrives only when it is complete
	if t.request.Stream {
		first = t.s.Limits.FirstByte
	}
	t.timer = time.AfterFunc(first, func() { t.cancel(errFirstByte) })
	defer func() { t.timer.Stop() }() // stop the timer in use at that time
	response, err := t.send(upstream)
	if err != nil {
		return t.failUnanswered(ctx, upstream, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refusal := t.refused(ctx, response)
		t.finish(ctx, result{outcome: refusal.outcome()})
		return refusal
	}
	t.answering()
	if !t.request.Stream {
		return t.passWhole(ctx, upstream, response)
	}
	return t.passStream(ctx, upstream, response)
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
	isInterrupted := t.sent && t.hasLeft() && !isCut(err)
	if isInterrupted { // the provider may be working on the request
		r = t.result(outcomeCancelled)
	}
	t.finish(ctx, r)
	if isInterrupted {
		t.remember("")
	}
	return refusal
}

// unseen returns the result of a call if the app received no part of the answer. The account does not pay. If the
// provider was cut off or did not answer in time, it may still bill the call, so the operator pays.
func (t *transfer) unseen(err error, outcome string) result {
	if !t.sent || !isCut(err) && !isTimeout(err) {
		return result{outcome: outcome}
	}
	r := t.result(outcome)
	r.carried = true
	return r
}

// isCut reports whether this backend, not the app or the provider, ended the call.
func isCut(err error) bool { return errors.Is(err, errStopped) || errors.Is(err, errUncovered) }

// passWhole forwards an answer that is not streamed. It charges the call before the app receives the answer.
func (t *transfer) passWhole(ctx, upstream context.Context, response *http.Response) error {
	body, err := t.readWhole(response)
	switch {
	case err != nil:
		return t.breakOff(ctx, upstream, err)
	case !t.answer.Whole(body):
		t.finish(ctx, result{outcome: outcomeFailed})
		return Refuse(problem.CodeProviderError, "the model's provider sent an invalid answer: try again").After(busyRetry)
	case t.answer.Failed:
		return t.breakOff(ctx, upstream, errProvider)
	}
	t.missed = t.hasLeft()
	t.finish(ctx, t.result(t.outcome()))
	if t.missed {
		t.remember("")
	} else {
		t.remember(t.answer.Text())
	}
	t.noteTools(ctx)
	t.writeWhole(body)
	return nil
}

var (
	errProvider = errors.New("the provider reported an error")
	errPanicked = errors.New("a panic while reading the answer")
	errTooLarge = errors.New("the answer is too large")
)

func (t *transfer) readWhole(response *http.Response) ([]byte, error) {
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, errProvider
	}
	var body bytes.Buffer
	most := t.request.MaxAnswer()
	_, err := body.ReadFrom(io.LimitReader(&resetting{t, response.Body}, most+1))
	if err == nil && int64(body.Len()) > most {
		err = errTooLarge
	}
	return body.Bytes(), err
}

// resetting is a reader that restarts the timeout between reads at each read.
type resetting struct {
	t    *transfer
	from io.Reader
}

func (r *resetting) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.t.timer.Reset(r.t.s.Limits.Idle)
	return n, err
}

// passStream forwards events as they arrive. It writes nothing before the first event, so that an error in place of
// an event can still set the status.
func (t *transfer) passStream(ctx, upstream context.Context, response *http.Response) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	encoding := response.Header.Get("Content-Encoding")
	if kind != "text/event-stream" || encoding != "" && encoding != "identity" {
		return t.passNoStream(ctx, upstream, response)
	}
	// Keep this buffer small: each open stream has one, and events are small.
	read, written := make([]byte, 4<<10), []byte(nil)
	from := &resetting{t, response.Body}
	for {
		n, err := from.Read(read)
		if t.heard == nil && t.hasLeft() {
			t.heard = new(t.answer.Text())
		}
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
			t.remember(t.received())
			return nil
		case err != nil:
			return t.breakOff(ctx, upstream, err)
		case t.answer.Ended: // apps wait for the end of the stream, but the provider may keep it open
			t.timer.Reset(min(afterEnd, t.s.Limits.Idle))
		}
	}
}

// received returns the text of a streamed answer that the app has received, although an account that pays may have the
// rest read without the app.
func (t *transfer) received() string {
	if t.heard != nil {
		return *t.heard
	}
	return t.answer.Text()
}

// passNoStream handles a provider that does not stream as requested. Usually it reports an error.
func (t *transfer) passNoStream(ctx, upstream context.Context, response *http.Response) error {
	if body, err := t.readWhole(response); err != nil || t.answer.Whole(body) {
		return t.breakOff(ctx, upstream, errProvider)
	}
	t.finish(ctx, result{outcome: outcomeFailed})
	return t.busy("", t.answer.Reason)
}

// writeWhole sends an answer that is not streamed, unless the app has disconnected.
func (t *transfer) writeWhole(body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return
	}
	t.begun = true
	t.to.Begin(false)
	_ = t.to.Write(t.redact(body)) // a failed write only means that the app has disconnected
}

// write sends events to the app, unless it has disconnected.
func (t *transfer) write(p []byte) {
	if len(p) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		t.missed = true
		return
	}
	if !t.begun {
		t.begun = true
		t.to.Begin(true)
	}
	if t.to.Write(t.redact(p)) != nil {
		t.missed, t.to = true, nil
		close(t.stalled)
	}
}

// noteTools records tool calls in the session's event log before the app receives them, so that they precede the app's
// reaction.
func (t *transfer) noteTools(ctx context.Context) {
	for _, tool := range t.answer.TakeTools() {
		if !t.hasLeft() {
			t.s.Sessions.LogAssistant(ctx, t.who.Session, glasses.RowToolCalled,
				glasses.NewToolCalled(tool.Name, tool.Arguments))
		}
	}
}

func (t *transfer) outcome() string {
	if t.missed {
		return outcomeCancelled
	}
	return outcomeOK
}

// breakOff settles an incomplete answer by its usage report, or by an estimate based on the part received.
func (t *transfer) breakOff(ctx, upstream context.Context, err error) error {
	err = cmp.Or(context.Cause(upstream), err)
	r := t.unseen(err, outcomeFailed)
	left := t.hasLeft()
	switch {
	case left && isCut(err): // the operator pays
	case left && !t.answer.Failed:
		r = t.result(outcomeCancelled)
	case errors.Is(err, errTooLarge), errors.Is(err, wire.ErrEventTooLarge):
		// Charge at least as much as for a complete answer, because an app could cause the failure deliberately.
		r = t.result(outcomeFailed)
		r.wholeHold = !t.answer.Final || t.answer.Malformed
	case t.answer.Seen || t.answer.HasText():
		r = t.result(outcomeFailed)
	}
	t.finish(ctx, r)
	switch {
	case left:
		if !isCut(err) {
			t.remember(t.received()) // the user has interrupted the answer
		}
		return nil
	case t.begun && t.answer.Failed:
		return t.broken(err, t.answer.Reason)
	case t.begun:
		return t.broken(err, "")
	case errors.Is(err, errTooLarge):
		return Refuse(problem.CodeProviderError, "the model's answer is too large: limit its length, or stream it")
	case errors.Is(err, errProvider), errors.Is(err, wire.ErrEventTooLarge), errors.Is(err, io.ErrUnexpectedEOF):
		return t.busy("", t.answer.Reason)
	}
	return t.unanswered(err)
}

// broken returns an ErrBroken with a refusal that explains why the answer broke off. reason is the error that
// the provider reported, or "". broken does not read the answer, which belongs to the goroutine of run.
func (t *transfer) broken(err error, reason string) error {
	refusal := Refuse(problem.CodeProviderError, ErrBroken.Error())
	if t.model.Provider.Local && reason != "" {
		refusal.Message += ": " + t.busy("", reason).Message
	} else if isTimeout(err) || errors.Is(err, errRevoked) || errors.Is(err, errStopped) ||
		errors.Is(err, errUncovered) {
		refusal = t.unanswered(err)
		refusal.Message = ErrBroken.Error() + ": " + refusal.Message
	}
	return fmt.Errorf("%w: %w", ErrBroken, refusal)
}

// result returns the usage that the provider reported, or otherwise an estimate. An app that disconnected before the
// report pays the whole hold, so that it cannot save money by disconnecting, for example during the model's hidden
// reasoning.
func (t *transfer) result(outcome string) result {
	a := t.answer
	if a.Final && !a.Malformed {
		return result{outcome: outcome, usage: a.Usage, estimated: a.Unequal}
	}
	return result{outcome: outcome, usage: a.Estimate(t.request.InputEstimate(t.model.imageTokens)), estimated: true,
		malformed: a.Malformed, wholeHold: outcome == outcomeCancelled}
}
