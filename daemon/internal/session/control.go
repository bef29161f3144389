package session

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

// Control makes the glasses of a session do something: it sends one control frame and gives its result, which may be an
// error of the glasses. media is the picture of sim.camera or the WAV of sim.microphone. In virtual time the apps have
// reacted when it returns. Errors are *backend.Problem.
func (m *Manager) Control(ctx context.Context, target backend.Target, id, typ string, payload any, media []byte) (glasses.Result, error) {
	if !glasses.IsControl(typ) || typ == glasses.SimAdvance {
		return glasses.Result{}, invalid(typ+" is not a control frame to send", "use one of sim.input, sim.transcript, sim.state, sim.motion, sim.fault, sim.device, sim.camera, sim.microphone")
	}
	if len(media) > MaxUpload {
		return glasses.Result{}, invalid("the file is larger than 1 MiB", "make the picture or the sound smaller")
	}
	if !IsLocal(id) {
		if !validID(id) {
			return glasses.Result{}, notFound()
		}
		res, err := m.controlBrowser(ctx, target, id, typ, payload, media)
		if err == nil {
			m.used(ctx, id)
		}
		return res, err
	}
	r, err := m.local.attended(ctx, id)
	if err != nil {
		return glasses.Result{}, err
	}
	m.used(ctx, id)
	return r.control(ctx, typ, payload, media)
}

func (m *Manager) controlBrowser(ctx context.Context, target backend.Target, id, typ string, payload any, media []byte) (glasses.Result, error) {
	raw := encode(payload)
	if string(raw) == "null" {
		raw = encode(struct{}{})
	}
	answer, err := m.opts.Live.Control(ctx, target, id, typ, raw, media)
	if err != nil {
		return glasses.Result{}, err
	}
	res, err := glasses.ParseResult(answer)
	if err != nil {
		return res, &backend.Problem{Code: backend.CodeInvalidResponse, Message: "the glasses' answer cannot be read: " + err.Error(),
			FixHint: "reload the simulator page, so that it fits this version"}
	}
	return res, nil
}

// control acts, and does not tell of it before it is in the log: nobody may rely on what a daemon that is killed the
// next moment forgets.
func (r *room) control(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	res, err := r.act(ctx, typ, payload, media)
	if err == nil {
		err = r.recorded(ctx)
	}
	return res, err
}

func (r *room) act(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	if !r.virtual() {
		return r.ask(ctx, typ, payload, media)
	}
	if err := r.op.take(ctx); err != nil {
		return glasses.Result{}, err
	}
	defer r.op.give()
	r.settle(ctx)
	if err := r.turn.take(ctx); err != nil {
		return glasses.Result{}, err
	}
	res, err := r.ask(ctx, typ, payload, media)
	r.turn.give()
	if err == nil {
		r.settle(ctx)
	}
	return res, err
}

// Display is Look with the picture. Errors are *backend.Problem.
func (m *Manager) Display(ctx context.Context, target backend.Target, id string) (Display, error) {
	d, err := m.Look(ctx, target, id)
	d.PNG = d.Picture()
	return d, err
}

// Picture draws the panel to the pixel, as PNG; nil for a model without one. It takes some milliseconds.
func (d Display) Picture() []byte {
	if d.Model.Panel == nil {
		return nil
	}
	return render.PNG(render.Draw(d.Model, d.View))
}

// Look asks the glasses what they show, and does not draw it. Errors are *backend.Problem.
func (m *Manager) Look(ctx context.Context, target backend.Target, id string) (Display, error) {
	res, err := m.Control(ctx, target, id, glasses.SimState, struct{}{}, nil)
	if err != nil {
		return Display{}, err
	}
	if res.Error != nil {
		return Display{}, &backend.Problem{Code: res.Error.Code, Message: res.Error.Message}
	}
	if res.State == nil || res.View == nil {
		return Display{}, &backend.Problem{Code: backend.CodeInvalidResponse, Message: "the glasses did not say what they show",
			FixHint: "update the service so that daemon and simulator fit together"}
	}
	s, err := m.Get(ctx, target, id)
	if err != nil {
		return Display{}, err
	}
	model, _ := glasses.Model(s.DeviceModel)
	return Display{Model: model, State: *res.State, View: *res.View, Text: render.Text(res.View.Tree)}, nil
}

// Advance moves the virtual time of a local session by ms, up to MaxAdvance, and lets the apps react to everything on the
// way. settled is false when an app did not come to rest. Errors are *backend.Problem.
func (m *Manager) Advance(ctx context.Context, id string, ms int64) (nowMs int64, settled bool, err error) {
	if ms < 0 || ms > MaxAdvance {
		return 0, false, invalid("ms goes from 0 to 86400000", "advance by at most a day at once")
	}
	if !IsLocal(id) {
		return 0, false, notVirtual()
	}
	r, err := m.local.attended(ctx, id)
	if err != nil {
		return 0, false, err
	}
	if !r.virtual() {
		return 0, false, notVirtual()
	}
	return r.advance(ctx, ms)
}

func notVirtual() error {
	return &backend.Problem{Code: backend.CodeUnsupported, Message: "the session's time is real: it passes by itself",
		FixHint: `wait for what should happen, or open a local session with clock "virtual"`}
}

// Wait is Since that waits up to wait for a row when there is none after the cursor.
func (m *Manager) Wait(ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration) (backend.EventPage, error) {
	limit, since = clampLimit(limit), max(since, 0)
	if !IsLocal(id) {
		if !validID(id) {
			return backend.EventPage{}, notFound()
		}
		return m.opts.Live.WaitEvents(ctx, target, id, since, limit, wait)
	}
	r, err := m.local.awake(id)
	if err != nil {
		return backend.EventPage{}, err
	}
	return r.page(ctx, since, limit, wait)
}

func (r *room) page(ctx context.Context, since int64, limit int, wait time.Duration) (backend.EventPage, error) {
	if r.virtual() && r.op.try() { // else somebody moves time, and the rows come as they come
		r.settle(ctx)
		r.op.give()
	}
	// Everything that has happened is in the answer.
	if err := r.recorded(ctx); err != nil {
		return backend.EventPage{}, err
	}
	if wait > 0 {
		inner, cancel := context.WithTimeout(ctx, wait)
		_ = r.log.reach(inner, since+1)
		cancel()
	}
	p, err := r.log.read(since, limit)
	if err != nil {
		return backend.EventPage{}, stateProblem("reading the event log", err)
	}
	return backend.EventPage{Events: p.rows, Next: p.next, More: p.more, Truncated: p.truncated}, nil
}

// recorded waits until everything that has happened so far is written.
func (r *room) recorded(ctx context.Context) error {
	if err := r.log.reach(ctx, r.log.newest()); err != nil && !errors.Is(err, errLogClosed) {
		return stateProblem("writing the event log", err)
	}
	return nil
}

func clampLimit(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}
