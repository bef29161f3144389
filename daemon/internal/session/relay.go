package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
)

// Take handles one frame of the app. raw goes to the glasses as it came, so that unknown fields survive. It returns when
// the frame is on its way and, in virtual time, when the glasses are done with it.
func (a *App) Take(ctx context.Context, raw []byte, binary bool) {
	defer a.move()
	a.stuck.Store(false)
	r := a.r
	if binary {
		a.refuse(r.nowMs(), "", &glasses.Error{Code: glasses.CodeBadFrame, Message: "apps send text frames only"})
		return
	}
	f, err := glasses.Parse(raw)
	if err == nil {
		if refusal := glasses.MaySend(glasses.SenderApp, f.Type); refusal != nil {
			err = refusal
		}
	}
	if err != nil {
		a.refuse(r.nowMs(), f.ID, err)
		return
	}
	if f.Type == glasses.TypeBarrier {
		a.answered(f.ID)
		return
	}
	if r.turn.take(ctx) != nil {
		return
	}
	defer r.turn.give()
	if !r.fromApp(a, f, raw) {
		return
	}
	// An answer tells that the glasses have done everything before: in virtual time what follows from the command at
	// once, in real time as much as may wait for them without being lost.
	if r.virtual() {
		if !r.answersLater(f.ID) {
			_, _ = r.step(ctx, r.nowMs())
		}
	} else if r.unasked++; r.unasked >= maxUnasked {
		_, _ = r.ask(ctx, glasses.SimState, nil, nil)
		r.unasked = 0
	}
}

// answersLater tells of a command from which nothing follows at once: sleeping, unless a fault wakes it. Asking after each
// of them would cost an app that ticks every second a quarter of its time.
func (r *room) answersLater(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sleep, ok := r.pending[id].parsed.(*glasses.Sleep)
	return ok && sleep.Ms > 0 && len(r.meta.Snapshot.State.Faults) == 0
}

// maxUnasked is how many commands go to the glasses without a question in between; their queue is longer.
const maxUnasked = 100

func (a *App) refuse(at int64, id string, err error) {
	refusal := &glasses.Error{Code: glasses.CodeBadFrame, Message: err.Error()}
	_ = errors.As(err, &refusal)
	a.tell(at, glasses.TypeError, id, refusal)
}

// fromApp writes a frame of an app down and passes it on; sent tells whether the glasses got it.
func (r *room) fromApp(a *App, f glasses.Frame, raw []byte) (sent bool) {
	f.Payload = compact(f.Payload)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	kind := glasses.KindOf(f.Type)
	key, digest := glasses.KeyOf(glasses.SenderApp, f.ID, kind), r.seen.Sum(f.Type, f.Payload)
	if before, again := r.seen.Find(key); again {
		r.repeat(a, f, kind, before, digest)
		return false
	}
	row := glasses.Event{Kind: kind, Chip: chipOf(glasses.SenderApp, f), Type: f.Type, ID: f.ID, Sender: glasses.SenderApp, Payload: f.Payload}
	seq := r.row(row, a)
	r.seen.Add(key, glasses.Known{Digest: digest, Seq: seq})
	if kind != glasses.KindRequest {
		return false
	}
	parsed, err := glasses.ParseCommand(f.Type, f.Payload)
	if err != nil {
		r.answer(f.ID, glasses.CodeBadPayload, err.Error())
		return false
	}
	r.pending[f.ID] = command{typ: f.Type, parsed: parsed, due: r.clock() + waitFor(parsed)}
	if r.glasses == nil || r.glasses.Send(raw, false) != nil {
		r.answer(f.ID, glasses.CodeNotConnected, "no glasses are attached")
		return false
	}
	return true
}

// repeat acknowledges a frame that was sent before, and relays nothing. mu is held.
func (r *room) repeat(a *App, f glasses.Frame, kind string, before glasses.Known, digest uint64) {
	if before.Digest != digest {
		a.refuse(r.clock(), f.ID, &glasses.Error{Code: glasses.CodeIDReused,
			Message: "id was used before in this session for another frame; start ids with something random"})
		return
	}
	r.log.again(glasses.Event{Seq: before.Seq, At: r.clock(), ID: f.ID, Kind: kind}, a)
}

// answer is a result by the service itself, in place of the glasses'. mu is held.
func (r *room) answer(id, code, message string) {
	delete(r.pending, id)
	payload := encode(glasses.Result{Error: &glasses.Error{Code: code, Message: message}})
	r.publish(r.frame(glasses.TypeResult, id, payload))
	seq := r.row(glasses.Event{
		Kind: glasses.KindResult, Chip: glasses.ChipErrors, Type: glasses.TypeResult, ID: id, Sender: glasses.SenderService, Payload: payload,
	}, nil)
	r.seen.Add(glasses.KeyOf("", id, glasses.KindResult), glasses.Known{Seq: seq})
}

// heard handles one frame of the glasses.
func (r *room) heard(data []byte, binary bool) {
	if binary {
		r.heardBytes(data)
		return
	}
	f, err := glasses.Parse(data)
	if err == nil && f.Type == glasses.TypeError {
		f = refusalOf(f)
		data, err = f.Encode()
	}
	if err == nil {
		if refusal := glasses.MaySend(glasses.SenderGlasses, f.Type); refusal != nil {
			err = refusal
		}
	}
	if err != nil {
		r.l.often.Warn("a frame of the glasses", "session", r.id, "err", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes(f.At)
	switch {
	case f.Type == glasses.TypeResult:
		r.result(f, data)
	case glasses.IsStream(f.Type):
		r.count(f.Type, len(f.Payload))
		r.spread(data, false, true)
	default:
		r.event(f)
	}
}

// passes moves virtual time to that of the glasses, who keep it. mu is held.
func (r *room) passes(at int64) {
	if r.virtual() && at > r.meta.NowMs {
		r.meta.NowMs, r.changed = at, true
	}
}

func (r *room) result(f glasses.Frame, raw []byte) {
	res, err := glasses.ParseResult(f.Payload)
	if err != nil {
		r.l.often.Warn("a result of the glasses", "session", r.id, "err", err)
		return
	}
	if wait, ok := r.controls[f.ID]; ok {
		delete(r.controls, f.ID)
		r.learn(res)
		wait <- res
		return
	}
	cmd, waits := r.pending[f.ID]
	if !waits {
		return // answered already: it came too late
	}
	f.Payload = compact(f.Payload)
	chip := glasses.ChipErrors
	if res.OK {
		chip = glasses.ChipOf(cmd.typ)
	}
	r.publish(raw)
	seq := r.row(glasses.Event{
		Kind: glasses.KindResult, Chip: chip, Type: f.Type, ID: f.ID, Sender: glasses.SenderGlasses, Payload: f.Payload,
	}, nil)
	delete(r.pending, f.ID)
	r.seen.Add(glasses.KeyOf("", f.ID, glasses.KindResult), glasses.Known{Seq: seq})
	if res.OK {
		r.stopped(cmd.typ)
	}
}

// refusalOf makes the result of an error frame: glasses that cannot read a frame answer with one.
func refusalOf(f glasses.Frame) glasses.Frame {
	var why glasses.Error
	if json.Unmarshal(f.Payload, &why) != nil || why.Code == "" {
		why = glasses.Error{Code: glasses.CodePlatform, Message: "the glasses refused the frame"}
	}
	f.Type, f.Payload = glasses.TypeResult, encode(glasses.Result{Error: &why})
	return f
}

// event relays what the glasses say by themselves. It is named after its row: glasses that were started anew would
// repeat their own names, and in virtual time every run has the same.
func (r *room) event(f glasses.Frame) {
	f.ID = fmt.Sprintf("g-%d", r.log.newest()+1)
	if data, err := f.Encode(); err == nil && glasses.FromGlasses(f.Type) {
		r.publish(data)
	}
	f.Payload = compact(f.Payload)
	r.row(glasses.Event{
		Kind: glasses.KindEvent, Chip: chipOf(glasses.SenderGlasses, f), Type: f.Type, ID: f.ID, Sender: glasses.SenderGlasses, Payload: f.Payload,
	}, nil)
}

// chipOf sorts a peer's frame; lifecycle is the word of service and glasses.
func chipOf(sender string, f glasses.Frame) string {
	chip := glasses.ChipOf(f.Type)
	if chip == glasses.ChipLifecycle && sender == glasses.SenderApp && !glasses.IsCommand(f.Type) {
		return glasses.ChipCustom
	}
	return chip
}

// failPending answers every command that waits, the oldest first. mu is held.
func (r *room) failPending(code, message string) {
	for _, id := range r.waiting(1 << 62) {
		r.answer(id, code, message)
	}
}
