package session

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Control sends a control frame to the glasses of a session and returns its result, which may be an error of the
// glasses. media is the picture for sim.camera or the WAV file for sim.microphone. In virtual time, the apps have
// reacted when Control returns. It returns a *problem.Error on failure.
func (m *Manager) Control(
	ctx context.Context, target backend.Target, id, typ string, payload any, media []byte,
) (glasses.Result, error) {
	if !glasses.IsControl(typ) || typ == glasses.SimAdvance || typ == glasses.SimStanding {
		return glasses.Result{}, invalid(typ+" is not a control frame to send", "Use one of sim.input, sim.transcript, "+
			"sim.state, sim.motion, sim.fault, sim.device, sim.camera, sim.microphone.")
	}
	if len(media) > MaxUpload {
		return glasses.Result{}, invalid("the file is larger than 1 MiB", "Make the picture or the sound smaller.")
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
	s, err := m.local.ready(ctx, id)
	if err != nil {
		return glasses.Result{}, err
	}
	m.used(ctx, id)
	return s.control(ctx, typ, payload, media)
}

func (m *Manager) controlBrowser(
	ctx context.Context, target backend.Target, id, typ string, payload any, media []byte,
) (glasses.Result, error) {
	raw := broker.Payload(payload)
	if string(raw) == "null" {
		raw = broker.Payload(struct{}{})
	}
	answer, err := m.opts.Backend.Control(ctx, target, id, typ, raw, media)
	if err != nil {
		return glasses.Result{}, err
	}
	res, err := glasses.ParseResult(answer)
	if err != nil {
		return res, problem.New(problem.CodeInvalidResponse, "the glasses' answer cannot be read: "+err.Error(),
			"Reload the simulator page, so that it fits this version.")
	}
	return res, nil
}

// control sends a control frame. It returns the result after the effects have been written to the log, so that they
// survive if the daemon is killed right afterwards.
func (s *localSession) control(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	if choice, ok := payload.(glasses.DeviceChoice); ok {
		if err := s.checkOffered(choice.DeviceModel); err != nil {
			return glasses.Result{}, err
		}
	}
	res, err := s.act(ctx, typ, payload, media)
	if err == nil {
		err = s.waitRecorded(ctx)
	}
	return res, err
}

func (s *localSession) act(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	if !s.isVirtual() {
		return s.ask(ctx, typ, payload, media)
	}
	if err := s.turns.operation.take(ctx); err != nil {
		return glasses.Result{}, err
	}
	defer s.turns.operation.give()
	s.settle(ctx)
	if err := s.turns.exchange.take(ctx); err != nil {
		return glasses.Result{}, err
	}
	apps := s.Apps.All()
	res, err := s.ask(ctx, typ, payload, media)
	s.turns.exchange.give()
	if err == nil {
		if typ == glasses.SimFault && res.Error == nil && glasses.DropsApp(glasses.TypeFault, broker.Payload(payload)) {
			s.waitReattached(ctx, apps)
		}
		s.settle(ctx)
	}
	return res, err
}

// waitReattached waits until as many apps have attached as were dropped, but no longer than barrierTimeout, because
// virtual time stops while they reconnect.
func (s *localSession) waitReattached(ctx context.Context, dropped []*App) {
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	for _, a := range dropped {
		select {
		case <-a.gone:
		case <-ctx.Done():
			return
		}
	}
	for {
		newest := s.log.newest() // each app that attaches adds a row
		if len(s.Apps.All()) >= len(dropped) || s.log.waitWritten(ctx, newest+1) != nil {
			return
		}
	}
}

// refusal returns the error of a control frame that the glasses refused, or err.
func refusal(res glasses.Result, err error) error {
	if err == nil && res.Error != nil {
		return &problem.Error{Code: res.Error.Code, Message: res.Error.Message}
	}
	return err
}

// Display is like Look, but includes the picture. It returns a *problem.Error on failure.
func (m *Manager) Display(ctx context.Context, target backend.Target, id string) (Display, error) {
	d, err := m.Look(ctx, target, id)
	d.PNG = d.Picture()
	return d, err
}

// Look returns what the glasses show, without a picture. It returns a *problem.Error on failure.
func (m *Manager) Look(ctx context.Context, target backend.Target, id string) (Display, error) {
	res, err := m.Control(ctx, target, id, glasses.SimState, struct{}{}, nil)
	if err = refusal(res, err); err != nil {
		return Display{}, err
	}
	if res.State == nil || res.View == nil {
		return Display{}, problem.New(problem.CodeInvalidResponse, "the glasses did not report what they show",
			"Update the service so that daemon and simulator have the same version.")
	}
	described, err := m.Get(ctx, target, id)
	if err != nil {
		return Display{}, err
	}
	model, _ := ModelOf(id, described.DeviceModel)
	d := NewDisplay(model, *res.State, *res.View)
	d.Unconfirmed, d.Confirmed = res.Unconfirmed, res.Confirmed
	return d, nil
}

// Advance advances the virtual time of a local session by ms milliseconds, at most MaxAdvance. It lets the apps react
// to everything that happens in that time. settled is false if an app did not settle. It returns a *problem.Error on
// failure.
func (m *Manager) Advance(ctx context.Context, id string, ms int64) (nowMs int64, settled bool, err error) {
	if ms < 0 || ms > MaxAdvance {
		return 0, false, invalid("ms must be between 0 and 86400000", "Advance by at most a day per call.")
	}
	if !IsLocal(id) {
		return 0, false, notVirtual()
	}
	s, err := m.local.ready(ctx, id)
	if err != nil {
		return 0, false, err
	}
	if !s.isVirtual() {
		return 0, false, notVirtual()
	}
	return s.advance(ctx, ms)
}

func notVirtual() error {
	return problem.New(problem.CodeUnsupported, "the session runs in real time, which cannot be advanced",
		`Wait for what should happen, or open a local session with clock "virtual".`)
}

// Wait is like Since, but waits up to the duration wait for a row if there is none after the cursor.
func (m *Manager) Wait(
	ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration,
) (backendapi.EventPage, error) {
	limit, since = clampLimit(limit), max(since, 0)
	if !IsLocal(id) {
		if !validID(id) {
			return backendapi.EventPage{}, notFound()
		}
		return m.opts.Backend.WaitEvents(ctx, target, id, since, limit, wait)
	}
	s, err := m.local.wake(id)
	if err != nil {
		return backendapi.EventPage{}, err
	}
	return s.page(ctx, since, limit, wait)
}

func (s *localSession) page(
	ctx context.Context, since int64, limit int, wait time.Duration,
) (backendapi.EventPage, error) {
	if s.isVirtual() && s.turns.operation.try() { // otherwise another call is advancing time and the apps cannot settle
		s.settle(ctx)
		s.turns.operation.give()
	}
	// Include everything that has happened so far in the page.
	if err := s.waitRecorded(ctx); err != nil {
		return backendapi.EventPage{}, err
	}
	if wait > 0 {
		waitCtx, cancel := context.WithTimeout(ctx, wait)
		_ = s.log.waitWritten(waitCtx, since+1)
		cancel()
	}
	p, err := s.log.read(since, limit)
	if err != nil {
		return backendapi.EventPage{}, stateProblem("read the event log", err)
	}
	return backendapi.EventPage{Events: p.rows, Next: p.next, More: p.more, Truncated: p.truncated}, nil
}

// waitRecorded waits until everything that has happened so far is written.
func (s *localSession) waitRecorded(ctx context.Context) error {
	if err := s.log.waitWritten(ctx, s.log.newest()); err != nil && !errors.Is(err, errLogClosed) {
		return stateProblem("write the event log", err)
	}
	return nil
}

func clampLimit(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}
