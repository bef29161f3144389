package relay

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/service-dev/service/proto/glasses"
)

// take handles one frame of a peer. raw goes on to the other side as it came, so that unknown fields survive.
func (r *room) take(ctx context.Context, c *conn, sender string, raw []byte) {
	f, err := glasses.Parse(raw)
	if err == nil {
		if refusal := glasses.MaySend(sender, f.Type); refusal != nil {
			err = refusal
		}
	}
	if err != nil {
		r.refuse(c, f.ID, err)
		return
	}
	f.Payload = compact(f.Payload)
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := glasses.KindOf(f.Type)
	key, digest := keyOf(sender, f.ID, kind), r.seen.sum(f.Type, f.Payload)
	if before, again := r.seen.find(key); again {
		r.repeat(ctx, c, sender, f, before == digest)
		return
	}
	if f.Type == glasses.TypeResult {
		if _, err := glasses.ParseResult(f.Payload); err != nil {
			r.refuse(c, f.ID, err)
			return
		}
	}
	r.seen.add(key, digest)
	switch kind {
	case glasses.KindRequest:
		r.request(ctx, c, f, raw)
	case glasses.KindResult:
		r.result(ctx, c, f, raw)
	default:
		r.event(ctx, c, sender, f, raw)
	}
}

func (r *room) refuse(c *conn, id string, err error) {
	refusal := &glasses.Error{Code: glasses.CodeBadFrame, Message: err.Error()}
	_ = errors.As(err, &refusal)
	c.send(r.h.frame(glasses.TypeError, id, refusal))
}

// repeat acknowledges a frame that was sent before, and relays nothing. Results are not compared: with two pages open
// both answer, and the first counted.
func (r *room) repeat(ctx context.Context, c *conn, sender string, f glasses.Frame, same bool) {
	kind := glasses.KindOf(f.Type)
	if !same && kind != glasses.KindResult {
		r.refuse(c, f.ID, &glasses.Error{Code: glasses.CodeIDReused,
			Message: "id was used before in this session for another frame; start ids with something random"})
		return
	}
	r.row(ctx, c, r.eventOf(sender, f, chipOf(sender, f)), false)
}

func (r *room) request(ctx context.Context, c *conn, f glasses.Frame, raw []byte) {
	row := r.eventOf(glasses.SenderApp, f, glasses.ChipOf(f.Type))
	if f.Type == glasses.TypeDisplayShow {
		if _, err := glasses.ParseShow(f.Payload); err != nil {
			r.row(ctx, c, row, false)
			r.answer(ctx, f.ID, glasses.CodeBadPayload, err.Error())
			return
		}
	}
	if r.pageCount() == 0 {
		r.row(ctx, c, row, false)
		r.answer(ctx, f.ID, glasses.CodeNotConnected, "no glasses are attached: open the session's simulator page")
		return
	}
	r.pending[f.ID] = command{typ: f.Type, payload: f.Payload, since: r.h.Now()}
	r.h.bus.Publish(r.id, toPages, raw)
	r.row(ctx, c, row, false)
}

// answer is a result by the service itself, in place of the glasses'.
func (r *room) answer(ctx context.Context, id, code, message string) {
	delete(r.pending, id)
	payload, err := json.Marshal(glasses.Result{Error: &glasses.Error{Code: code, Message: message}})
	if err != nil {
		r.h.Logger.Error("composing result", "error", err)
		return
	}
	r.seen.add(keyOf("", id, glasses.KindResult), 0)
	r.h.bus.Publish(r.id, toApps, r.h.frame(glasses.TypeResult, id, json.RawMessage(payload)))
	r.row(ctx, nil, glasses.Event{
		Kind: glasses.KindResult, Chip: glasses.ChipErrors, Type: glasses.TypeResult, ID: id,
		Sender: glasses.SenderService, Payload: payload,
	}, false)
}

func (r *room) result(ctx context.Context, c *conn, f glasses.Frame, raw []byte) {
	res, err := glasses.ParseResult(f.Payload)
	if err != nil {
		r.refuse(c, f.ID, err)
		return
	}
	cmd := r.pending[f.ID]
	delete(r.pending, f.ID)
	chip := chipOf(glasses.SenderGlasses, f)
	if res.OK {
		chip = glasses.ChipDisplay
		switch cmd.typ {
		case glasses.TypeDisplayShow:
			r.display = cmd.payload
		case glasses.TypeDisplayClear:
			r.display = nil
		}
	}
	r.h.bus.Publish(r.id, toApps, raw)
	r.row(ctx, c, r.eventOf(glasses.SenderGlasses, f, chip), res.OK)
}

// event relays what the glasses say; an unknown type of an app is only written down.
func (r *room) event(ctx context.Context, c *conn, sender string, f glasses.Frame, raw []byte) {
	if f.Type == glasses.TypeInput {
		r.h.bus.Publish(r.id, toApps, raw)
	}
	r.row(ctx, c, r.eventOf(sender, f, chipOf(sender, f)), false)
}

func (r *room) eventOf(sender string, f glasses.Frame, chip string) glasses.Event {
	return glasses.Event{Kind: glasses.KindOf(f.Type), Chip: chip, Type: f.Type, ID: f.ID, Sender: sender, Payload: f.Payload}
}

// chipOf sorts a peer's frame; lifecycle is the service's own word.
func chipOf(sender string, f glasses.Frame) string {
	if f.Type == glasses.TypeResult {
		if res, err := glasses.ParseResult(f.Payload); err != nil || res.Error != nil {
			return glasses.ChipErrors
		}
		return glasses.ChipDisplay
	}
	chip := glasses.ChipOf(f.Type)
	if chip == glasses.ChipLifecycle && sender != glasses.SenderService {
		return glasses.ChipCustom
	}
	return chip
}

// failPending answers every command that waits. mu is held.
func (r *room) failPending(ctx context.Context, code, message string) {
	for id := range r.pending {
		r.answer(ctx, id, code, message)
	}
}

// tick ends a session that is over, answers commands that waited too long and keeps an attended session from expiring.
func (r *room) tick(ctx context.Context) {
	if r.isOver(ctx) {
		r.endAll(closeSessionOver, "the session is over")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.h.Now()
	for id, cmd := range r.pending {
		if now.Sub(cmd.since) >= r.h.CommandWait {
			r.answer(ctx, id, glasses.CodeTimeout, "the glasses did not answer in time")
		}
	}
	if now.Sub(r.touched) >= touchEvery {
		if err := r.touch(ctx); err != nil {
			r.h.Logger.Warn("attended session", "session", r.id, "error", err)
		}
	}
}
