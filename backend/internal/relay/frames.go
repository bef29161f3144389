package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/proto/glasses"
)

// take handles one frame of a peer. Its bytes go on to the other side as they came, so that unknown fields survive.
func (r *room) take(ctx context.Context, c *conn, sender string, m message) {
	if m.kind == websocket.MessageBinary {
		r.takeBinary(c, sender, m)
		return
	}
	f, err := glasses.Parse(m.data)
	if f.Type != glasses.TypeMotion && f.Type != glasses.TypeBarrier { // a stream, and what is dropped
		r.pace.wait(r.h.life, sender)
	}
	if err == nil {
		if refusal := glasses.MaySend(sender, f.Type); refusal != nil {
			err = refusal
		}
	}
	if err == nil && glasses.IsStream(f.Type) && f.Type != glasses.TypeMotion {
		err = errOnlyBinary
	}
	switch {
	case err != nil:
		r.refuse(c, f.ID, err)
	case f.Type == glasses.TypeBarrier: // of virtual time, which is not here
	case sender == glasses.SenderApp:
		r.fromApp(ctx, c, f, m.data)
	default:
		r.fromPage(ctx, c, f, m)
	}
}

// fromApp writes a frame of an app down and passes a command on.
func (r *room) fromApp(ctx context.Context, c *conn, f glasses.Frame, raw []byte) {
	f.Payload = compact(f.Payload)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isNew(ctx, c, glasses.SenderApp, f) {
		return
	}
	row := r.eventOf(glasses.SenderApp, f, chipOf(glasses.SenderApp, f))
	if row.Kind == glasses.KindRequest {
		r.request(ctx, c, f, raw, row)
		return
	}
	r.row(ctx, c, row, false)
}

// fromPage takes what the glasses say. Only the page that plays them is heard, and one that was asked before another
// took over.
func (r *room) fromPage(ctx context.Context, c *conn, f glasses.Frame, m message) {
	plays := r.active.Load() == c
	switch {
	case f.Type == glasses.TypeResult && r.controlled(c, f):
		return
	case f.Type == glasses.TypeMotion:
		if plays {
			r.streams.add(f.Type, len(f.Payload), r.h.Now)
			m.stream = true
			r.stream(c, m)
		}
		return
	}
	f.Payload = compact(f.Payload)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !plays && (f.Type != glasses.TypeResult || !r.mayAnswer(c, f.ID)) {
		r.refuse(c, f.ID, errLooksOn)
		return
	}
	if f.Type == glasses.TypeResult {
		r.result(ctx, c, f, m.data)
		return
	}
	r.event(ctx, c, f, m.data)
}

// mayAnswer tells whether a page that does not play was asked for this result, as far as is known. mu is held.
func (r *room) mayAnswer(c *conn, id string) bool {
	cmd, waits := r.pending[id]
	return waits && (cmd.to == c || cmd.to == nil)
}

// isNew tells whether a frame has not been taken before, and remembers it; one that has is answered. mu is held.
func (r *room) isNew(ctx context.Context, c *conn, sender string, f glasses.Frame) bool {
	key, digest := glasses.KeyOf(sender, f.ID, glasses.KindOf(f.Type)), r.seen.Sum(f.Type, f.Payload)
	before, again := r.seen.Find(key)
	if !again {
		r.seen.Add(key, glasses.Known{Digest: digest})
		return true
	}
	r.repeat(ctx, c, sender, f, before.Digest, before.Digest == digest)
	return false
}

func (r *room) refuse(c *conn, id string, err error) {
	refusal := &glasses.Error{Code: glasses.CodeBadFrame, Message: err.Error()}
	_ = errors.As(err, &refusal)
	c.tell(r.h.frame(glasses.TypeError, id, refusal))
}

// repeat acknowledges a frame that was sent before, and relays nothing. Results are not compared: after a change of
// pages both may answer, and the first counted. mu is held.
func (r *room) repeat(ctx context.Context, c *conn, sender string, f glasses.Frame, before uint64, same bool) {
	kind := glasses.KindOf(f.Type)
	switch {
	case kind == glasses.KindResult && before == 0:
		r.refuse(c, f.ID, &glasses.Error{Code: glasses.CodeTimeout, Message: "the command was answered already; this came too late"})
		return
	case !same && kind != glasses.KindResult:
		r.refuse(c, f.ID, &glasses.Error{Code: glasses.CodeIDReused,
			Message: "id was used before in this session for another frame; start ids with something random"})
		return
	}
	r.row(ctx, c, r.eventOf(sender, f, chipOf(sender, f)), false)
}

// request writes a command down and passes it to the pages: the one that plays the glasses answers, the others draw. A
// command that cannot reach glasses is answered here. mu is held.
func (r *room) request(ctx context.Context, c *conn, f glasses.Frame, raw []byte, row glasses.Event) {
	r.row(ctx, c, row, false)
	if _, err := glasses.ParseCommand(f.Type, f.Payload); err != nil {
		r.answer(ctx, f.ID, glasses.CodeBadPayload, err.Error())
		return
	}
	page := r.active.Load()
	if page == nil {
		r.answer(ctx, f.ID, glasses.CodeNotConnected, "no glasses are attached: open the session's simulator page")
		return
	}
	raw = bytes.Clone(raw)
	r.ask(f.ID, command{typ: f.Type, payload: f.Payload, to: page, raw: raw})
	r.h.bus.Publish(r.id, toPages, text(raw))
}

// ask remembers a command that waits for its result. mu is held.
func (r *room) ask(id string, cmd command) {
	r.asked++
	cmd.nr, cmd.due = r.asked, r.h.Now().Add(r.h.CommandWait+takes(cmd))
	r.pending[id] = cmd
	r.open.Store(int64(len(r.pending)))
}

// settled forgets a command. mu is held.
func (r *room) settled(id string) {
	delete(r.pending, id)
	r.open.Store(int64(len(r.pending)))
}

// takes is how long a command lasts by itself.
func takes(cmd command) time.Duration {
	parsed, err := glasses.ParseCommand(cmd.typ, cmd.payload)
	if err != nil {
		return 0
	}
	switch p := parsed.(type) {
	case *glasses.Sleep:
		return time.Duration(p.Ms) * time.Millisecond
	case *glasses.Video:
		return time.Duration(p.DurationMs) * time.Millisecond
	}
	return 0
}

// waiting lists the commands that are due up to an instant, the oldest first. mu is held.
func (r *room) waiting(upTo time.Time) []string {
	var ids []string
	for id, cmd := range r.pending {
		if !cmd.due.After(upTo) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(r.pending[a].due.Compare(r.pending[b].due), cmp.Compare(a, b)) })
	return ids
}

// answer is a result by the service itself, in place of the glasses'. mu is held.
func (r *room) answer(ctx context.Context, id, code, message string) {
	r.settled(id)
	payload, err := json.Marshal(glasses.Result{Error: &glasses.Error{Code: code, Message: message}})
	if err != nil {
		r.h.Logger.Error("composing result", "error", err)
		return
	}
	r.seen.Add(glasses.KeyOf("", id, glasses.KindResult), glasses.Known{})
	r.h.bus.Publish(r.id, toApps, text(r.h.frame(glasses.TypeResult, id, json.RawMessage(payload))))
	r.row(ctx, nil, glasses.Event{
		Kind: glasses.KindResult, Chip: glasses.ChipErrors, Type: glasses.TypeResult, ID: id,
		Sender: glasses.SenderService, Payload: payload,
	}, false)
}

// result settles a command. mu is held.
func (r *room) result(ctx context.Context, c *conn, f glasses.Frame, raw []byte) {
	res, err := glasses.ParseResult(f.Payload)
	if err != nil {
		r.refuse(c, f.ID, err)
		return
	}
	cmd, waits := r.pending[f.ID]
	if _, known := r.seen.Find(glasses.KeyOf("", f.ID, glasses.KindResult)); !waits && !known {
		r.refuse(c, f.ID, &glasses.Error{Code: glasses.CodeBadFrame, Message: "the result answers no command of this session"})
		return
	}
	if !r.isNew(ctx, c, glasses.SenderGlasses, f) {
		return
	}
	r.settled(f.ID)
	chip := glasses.ChipErrors
	if res.OK {
		chip = glasses.ChipOf(cmd.typ)
		switch cmd.typ {
		case glasses.TypeDisplayShow:
			r.display = cmd.payload
		case glasses.TypeDisplayClear:
			r.display = nil
		}
	}
	r.h.bus.Publish(r.id, toApps, text(bytes.Clone(raw)))
	r.row(ctx, c, r.eventOf(glasses.SenderGlasses, f, chip), res.OK)
	if res.OK {
		r.noteStreams(ctx, r.streams.of(cmd.typ))
	}
}

// event relays what the glasses say of themselves; a type that is not known is only written down. mu is held.
func (r *room) event(ctx context.Context, c *conn, f glasses.Frame, raw []byte) {
	if _, again := r.seen.Find(glasses.KeyOf(glasses.SenderGlasses, f.ID, glasses.KindEvent)); !again {
		if err := r.learn(ctx, f); err != nil {
			r.refuse(c, f.ID, err)
			return
		}
	}
	if !r.isNew(ctx, c, glasses.SenderGlasses, f) {
		return
	}
	if glasses.FromGlasses(f.Type) {
		r.h.bus.Publish(r.id, toApps, text(bytes.Clone(raw)))
	}
	r.row(ctx, c, r.eventOf(glasses.SenderGlasses, f, chipOf(glasses.SenderGlasses, f)), false)
}

// learn keeps what peers that attach later must know. The error refuses the event. mu is held.
func (r *room) learn(ctx context.Context, f glasses.Frame) error {
	switch f.Type {
	case glasses.TypeLink:
		var link glasses.LinkState
		if json.Unmarshal(f.Payload, &link) != nil || !slices.Contains([]string{glasses.LinkConnected, glasses.LinkLossy, glasses.LinkLost}, link.State) {
			return &glasses.Error{Code: glasses.CodeBadPayload, Message: "link payload is not {state: connected, lossy or lost}"}
		}
		r.link = link.State
	case glasses.TypeDevice:
		var d glasses.DeviceChange
		_ = json.Unmarshal(f.Payload, &d)
		if _, known := glasses.Model(d.DeviceModel.ID); !known {
			return &glasses.Error{Code: glasses.CodeBadPayload, Message: "device payload is not {deviceModel: a known model}"}
		}
		ctx, cancel := context.WithTimeout(ctx, checkWait)
		defer cancel()
		if err := r.h.Sessions.SetModel(ctx, r.id, d.DeviceModel.ID); err != nil {
			r.h.Logger.Warn("noting the device model", "session", r.id, "error", err)
		}
		r.display = nil
	}
	return nil
}

func (r *room) eventOf(sender string, f glasses.Frame, chip string) glasses.Event {
	return glasses.Event{Kind: glasses.KindOf(f.Type), Chip: chip, Type: f.Type, ID: f.ID, Sender: sender, Payload: f.Payload}
}

// chipOf sorts a peer's frame that is no result; lifecycle is the word of the service and the glasses.
func chipOf(sender string, f glasses.Frame) string {
	chip := glasses.ChipOf(f.Type)
	if chip == glasses.ChipLifecycle && sender == glasses.SenderApp && !glasses.IsCommand(f.Type) {
		return glasses.ChipCustom
	}
	return chip
}

// failPending answers every command that waits, the oldest first. mu is held.
func (r *room) failPending(ctx context.Context, code, message string) {
	for _, id := range r.waiting(r.h.Now().Add(time.Hour)) {
		r.answer(ctx, id, code, message)
	}
}
