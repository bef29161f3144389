package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"time"

	ws "github.com/coder/websocket"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// turn is one answer in a conversation.
type turn struct {
	*call
	event    string     // event_id of its response.create, which the gateway chose
	asked    string     // event_id that the app chose, or ""
	response string     // the provider's ID, once known
	added    wire.Input // since the previous answer
	text     int64      // estimated tokens of text in the answer so far
	sound    int64      // sound in the answer so far, in characters of Base64
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) }

// clientEvent handles an event of the app. It returns the error event for the app, or nil.
func (c *Conversation) clientEvent(data []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != nil {
		return nil
	}
	e, err := c.rules.Client(data)
	events := []wire.ClientEvent{e}
	if err == nil {
		events, err = c.converter.client(e)
	}
	var field *wire.FieldError
	switch {
	case errors.As(err, &field):
		return wire.RealtimeError(e.ID, invalidRequest, field.Code, field.Message, field.Param, nil)
	case e.Type == wire.EventResponseCreate && c.turn != nil:
		return wire.RealtimeError(e.ID, invalidRequest, "conversation_already_has_active_response",
			"an answer is in progress: wait for response.done", "", nil)
	case e.Type == wire.EventResponseCreate:
		return c.begin(e)
	case e.Type == wire.EventCommit:
		c.commits++
	}
	for _, e := range events {
		c.added = c.added.Plus(e.Input)
		c.rows.client(e)
		c.spoken.client(e)
		_ = c.send(e.Body)
	}
	return nil
}

// begin holds the maximum price of an answer and requests it. It returns the error event for the app, or nil. The
// caller must hold mu.
func (c *Conversation) begin(e wire.ClientEvent) []byte {
	t := &turn{added: c.added.Plus(e.Input), asked: e.ID, event: "turn_" + rand.Text(),
		call: &call{s: c.s, who: c.who, model: c.model, own: c.own, key: c.key, started: c.s.Now()}}
	if err := t.reserveAnswer(c.ctx, c.rules); err != nil {
		refusal := refusalOf(err)
		t.recordRefusal(c.ctx, wire.Realtime, refusal)
		return c.refuse(e.ID, refusal)
	}
	if c.unpaid != nil {
		c.unpaid.Stop()
		c.unpaid = nil
	}
	c.s.keep(t.call, c.cut)
	c.rows.begin()
	c.turn, c.latest, c.added = t, t, wire.Input{}
	_ = c.send(slices.Concat(e.Body[:len(e.Body)-1], []byte(`,"event_id":"`+t.event+`"}`)))
	return nil
}

// name replaces the provider's names in an event about the session.
func (c *Conversation) name(event []byte) []byte {
	return wire.NameVoice(wire.NameModel(event, c.model.ID), "session", c.model.voice.voices)
}

// appError returns an error event of the provider as the app receives it, with the event_id that the app chose.
func (c *Conversation) appError(e wire.ServerEvent) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := e.Event
	if update, ok := c.rules.Refused(id); ok {
		id = update
	} else if c.latest != nil && id == c.latest.event {
		id = c.latest.asked
	}
	return e.AppError(id)
}

// reserveAnswer holds the maximum price of an answer.
func (t *turn) reserveAnswer(ctx context.Context, rules *wire.RealtimeRules) error {
	prices := t.model.voice.prices
	if t.own || prices == (wire.RealtimePrices{}) {
		return nil
	}
	return t.takeHold(ctx, prices.Bound(rules.InputBound(t.added, t.model.context), rules.Output))
}

// refuse returns the error event for an answer that was refused. Unless it may be requested again soon, the
// conversation ends after a while in which the app can say why. The caller must hold mu.
func (c *Conversation) refuse(id string, refusal *Refusal) []byte {
	c.rows.failed(refusal.Code, refusal.Message)
	kind := "server_error"
	switch refusal.Code {
	case problem.CodeNoCredit, problem.CodeCapReached, problem.CodeCreditLocked,
		problem.CodeAttestationRequired:
		kind = "insufficient_quota"
		if c.unpaid == nil {
			c.unpaid = time.AfterFunc(c.s.Limits.Unpaid, func() { c.cut(errUnpaid) })
		}
	case problem.CodeCreditReserved:
		kind = "rate_limit_error"
	}
	return wire.RealtimeError(id, kind, refusal.Code, refusal.Message, refusal.Param, refusal.Money)
}

// fromProvider forwards the provider's next event.
func (c *Conversation) fromProvider() error {
	_, data, err := c.provider.Read(c.ctx)
	if err != nil {
		return err
	}
	c.quiet.Reset(c.s.Limits.Quiet)
	e, _ := wire.Server(data, 10*c.model.context)
	forward, err := c.serverEvent(e)
	if err != nil {
		return err
	}
	if forward {
		c.rows.server(e.Type, data)
		c.spoken.server(e.Type, data)
		switch e.Type {
		case wire.EventSessionUpdated:
			data = c.rules.HideNotes(c.name(data))
		case wire.EventError:
			c.s.Log.Info("provider of a realtime session sent an error", "provider", c.model.Provider.ID,
				"model", c.model.ID, "code", e.Code)
			data = c.appError(e)
		case wire.EventResponseCreated:
			data = wire.NameVoice(data, "response", c.model.voice.voices)
		case wire.EventResponseDone:
			data = wire.NameVoice(wire.RedactStatus(data), "response", c.model.voice.voices)
			if e.Status == "failed" {
				c.rows.failed(problem.CodeProviderError, "the model failed to answer")
			}
		}
		for _, event := range c.converter.server(e.Type, data) {
			if err := c.app.Write(websocket.Text, c.redact(event)); err != nil {
				c.app.Drop() // read ends the conversation
			}
		}
	}
	if answer := c.respond(); answer != nil {
		c.tell(answer)
	}
	return nil
}

// serverEvent updates the state by an event of the provider, and reports whether the app receives the event.
func (c *Conversation) serverEvent(e wire.ServerEvent) (forward bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turn
	if !e.Known {
		c.dropped++
		return false, nil
	}
	switch e.Type {
	case wire.EventSessionUpdated:
		if c.ours > 0 {
			c.ours--
			return false, nil
		}
		c.rules.Updated()
	case wire.EventCommitted:
		if c.commits > 0 {
			c.commits--
		} else {
			c.due = c.due || c.rules.Responds
		}
	case wire.EventError:
		return c.ending == nil, c.failed(e)
	case wire.EventResponseCreated, wire.EventResponseDone:
		switch {
		case c.settled[e.Response]: // twice, or late
			return false, nil
		case t == nil || t.response != "" && t.response != e.Response:
			return false, c.unasked()
		}
		t.response = e.Response
		if e.Type == wire.EventResponseDone {
			c.settle(e)
		}
	default:
		if e.Response == "" {
			break
		}
		if t == nil || t.response != e.Response { // of an answer that has ended or was not requested
			return false, nil
		}
		t.text, t.sound = t.text+e.Text, t.sound+e.Sound
	}
	return c.ending == nil, nil
}

// failed handles an error event of the provider, which may refuse the answer in progress. The caller must hold mu.
func (c *Conversation) failed(e wire.ServerEvent) error {
	if e.Event == wire.BeginEvent && c.ours > 0 {
		c.s.Log.Error("provider refused the limits of a realtime session", "model", c.model.ID, "code", e.Code)
		return errLimits
	}
	if e.Code == "input_audio_buffer_commit_empty" && c.commits > 0 {
		c.commits--
	}
	if t := c.turn; t != nil && t.response == "" && e.Event == t.event {
		c.turn = nil
		c.added = c.added.Plus(t.added) // the next answer reads it
		t.settle(c.ctx, result{outcome: outcomeFailed}, wire.RealtimeUsage{})
		c.rows.failed(problem.CodeProviderError, "the model's provider refused to answer")
		return c.ending
	}
	return nil
}

// unasked cancels an answer that the gateway has not requested. The caller must hold mu.
func (c *Conversation) unasked() error {
	c.s.Log.Error("provider started an answer by itself: the operator pays for it", "provider", c.model.Provider.ID,
		"model", c.model.ID)
	_ = c.send([]byte(`{"type":"` + wire.EventResponseCancel + `"}`))
	return errUnasked
}

// settle charges the answer in progress by the provider's receipt. The caller must hold mu.
func (c *Conversation) settle(e wire.ServerEvent) {
	t := c.turn
	c.turn = nil
	c.settled[t.response] = true
	r := result{outcome: outcomeOK, malformed: e.Receipt.Malformed}
	switch e.Status {
	case "cancelled":
		r.outcome = outcomeCancelled
	case "failed":
		r.outcome = outcomeFailed
	}
	usage := e.Receipt.Usage
	if !e.Receipt.Seen {
		usage, r.estimated, r.wholeHold = t.estimate(), true, errors.Is(c.ending, errLeft)
	}
	if usage.TextIn+usage.TextCached+usage.AudioIn+usage.AudioCached == 0 {
		c.added = c.added.Plus(t.added) // the next answer reads it
	}
	t.settle(c.ctx, r, usage)
	if c.ending != nil {
		c.cut(c.ending)
	}
}

// estimate returns the usage of an answer without a receipt: nothing unless the provider sent a part of it.
func (t *turn) estimate() wire.RealtimeUsage {
	if t.text == 0 && t.sound == 0 {
		return wire.RealtimeUsage{}
	}
	v := t.model.voice
	return wire.RealtimeUsage{
		TextIn: t.added.Text, AudioIn: wire.SoundTokens(t.added.Sound, v.inRate),
		TextOut: t.text, AudioOut: wire.SoundTokens(t.sound, v.outRate),
	}
}

// settle charges the answer, or releases its hold, and counts it.
func (t *turn) settle(ctx context.Context, r result, u wire.RealtimeUsage) {
	t.s.forget(t.call)
	ctx, cancel := settleContext(ctx)
	defer cancel()
	row := t.row(r.outcome)
	row.TextIn, row.TextCached, row.TextOut = u.TextIn, u.TextCached, u.TextOut
	row.AudioIn, row.AudioCached, row.AudioOut = u.AudioIn, u.AudioCached, u.AudioOut
	row.Estimated = r.estimated
	charge := credit.Amount(t.model.voice.prices.Of(u))
	if r.wholeHold {
		charge = max(charge, t.held)
	}
	t.book(ctx, charge, row, r)
}

// respond requests the answer to speech that has ended, unless another is in progress. It returns the error event for
// the app, or nil.
func (c *Conversation) respond() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.due || c.turn != nil || c.ending != nil {
		return nil
	}
	c.due = false
	return c.begin(wire.ClientEvent{Type: wire.EventResponseCreate, Body: c.rules.Respond()})
}

// endTurn settles an answer whose usage is unknown, and returns why the conversation ends.
func (c *Conversation) endTurn(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause := cmp.Or(context.Cause(c.ctx), err)
	if closed := (ws.CloseError{}); errors.Is(cause, errHalfOpen) && errors.As(err, &closed) {
		cause = err
	}
	c.ending = cause // begins no other answer
	if c.unpaid != nil {
		c.unpaid.Stop()
	}
	if t := c.turn; t != nil {
		c.turn = nil
		r := result{outcome: outcomeFailed, estimated: true, carried: isCut(cause)}
		// The app must not save money by ending the conversation before the provider reports the usage.
		r.wholeHold = errors.Is(cause, errLeft) || errors.Is(cause, errTooBig) || errors.Is(cause, errRevoked)
		if errors.Is(cause, errLeft) {
			r.outcome = outcomeCancelled
		}
		t.settle(c.ctx, r, t.estimate())
	}
	if c.dropped > 0 {
		c.s.Log.Debug("dropped events of a provider", "model", c.model.ID, "events", c.dropped)
	}
	return cause
}
