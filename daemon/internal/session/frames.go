package session

import (
	"context"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
)

// appRate is the rate of all apps of a session together, and separately of their chunks of sound.
var appRate = host.Rate{PerSecond: 2000, Burst: 2000}

// Handle handles a frame from the app. It passes raw to the glasses unchanged, to keep unknown fields. It returns after
// the frame has been sent and, in virtual time, after the glasses have handled it.
func (a *App) Handle(ctx context.Context, raw []byte, binary bool) {
	defer a.noteActivity()
	a.isStuck.Store(false)
	s := a.session
	f, body, err := admitFromApp(raw, binary)
	isBarrier := err == nil && f.Type == glasses.TypeBarrier
	if isBarrier && a.barrierAnswered(f) {
		return // the session limits how many barriers it sends
	}
	isChunk := err == nil && f.Type == glasses.TypePlaybackChunk
	limit := glasses.SenderApp
	if isChunk {
		limit = glasses.TypePlaybackChunk
	}
	s.rates.Wait(ctx, limit, appRate)
	switch {
	case err != nil:
		a.refuse(f.ID, err)
		return
	case isBarrier: // no barrier is waiting for it
		return
	}
	if s.turns.exchange.take(ctx) != nil {
		return
	}
	defer s.turns.exchange.give()
	if isChunk {
		if s.transport.send(host.Binary(raw)) != nil {
			return // without glasses there is no playback
		}
		s.CountStream(f.Type, len(body))
	} else if !s.handleApp(a, f, raw) {
		return
	}
	// An answer proves that the glasses have handled all previous frames. In virtual time, every command with an
	// immediate effect needs an answer. In real time, an occasional answer keeps the queue of the glasses from
	// overflowing.
	if s.isVirtual() {
		if !s.hasDelayedEffect(f.ID) {
			_, _ = s.ask(ctx, glasses.SimState, nil, nil)
		}
	} else if s.turns.unconfirmed++; s.turns.unconfirmed >= maxUnconfirmed {
		_, _ = s.ask(ctx, glasses.SimState, nil, nil)
		s.turns.unconfirmed = 0
	}
}

func admitFromApp(raw []byte, binary bool) (f glasses.Frame, body []byte, err error) {
	if binary {
		return broker.AdmitBinary(glasses.SenderApp, raw)
	}
	f, err = broker.Admit(glasses.SenderApp, raw)
	return f, nil, err
}

// maxUnconfirmed is the maximum number of commands sent without waiting for an answer. The queue of the glasses is
// longer.
const maxUnconfirmed = 100

// hasDelayedEffect reports whether a command has no immediate effect. This is the case for a sleep unless a fault ends
// it. Waiting for an answer after each sleep would slow down an app that ticks every second by a quarter.
func (s *localSession) hasDelayedEffect(id string) bool {
	s.Mu.Lock()
	cmd, _ := s.Broker.Command(id)
	s.Mu.Unlock()
	sleep, ok := cmd.Value.(*glasses.Sleep)
	return ok && sleep.Ms > 0 && len(s.state.read().Snapshot.State.Faults) == 0
}

func (a *App) refuse(id string, err error) {
	a.SendText(broker.ErrorFrame(a.session.Now(), id, err))
}

// handleApp logs an app's frame and passes a command to the glasses. sent reports whether the glasses received it.
func (s *localSession) handleApp(a *App, f glasses.Frame, raw []byte) (sent bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.isOver {
		return false
	}
	outputs := s.Broker.FromApp(s.Now(), s.transport.player(), f, raw)
	if s.Perform(s.life, a, outputs) != nil {
		_ = s.Perform(s.life, nil, s.Broker.NotConnected(s.Now(), f.ID))
		return false
	}
	return outputs[len(outputs)-1].Action == broker.ToGlasses
}

// handleGlasses handles a frame from the glasses. If the frame belongs to a stream that is too fast for the apps,
// handleGlasses returns after a pause, or when ctx ends.
func (s *localSession) handleGlasses(ctx context.Context, data []byte, binary bool) {
	if binary {
		s.handleGlassesBinary(ctx, data)
		return
	}
	f, err := broker.Admit(glasses.SenderGlasses, data)
	if err != nil {
		s.owner.often.Warn("rejected a frame from the glasses", "session", s.id, "err", err)
		return
	}
	s.state.advanceTo(f.At)
	switch {
	case f.Type == glasses.TypeResult && s.deliverControl(f):
		return
	case glasses.IsStream(f.Type):
		s.relayStream(ctx, f.Type, len(f.Payload), host.Text(data))
		return
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.FromGlasses(ctx, nil, player, player, f, data); err != nil {
		s.owner.often.Warn("rejected a frame from the glasses", "session", s.id, "err", err)
	}
}

// deliverControl passes the result of a control frame to its caller, who may no longer be waiting. It returns false for
// any other result.
func (s *localSession) deliverControl(f glasses.Frame) bool {
	res, err := glasses.ParseResult(f.Payload)
	if err != nil || !host.IsControlID(f.ID) {
		return false
	}
	answer := s.controls.Take(f.ID)
	if answer == nil && s.IsCommand(f.ID) {
		return false // an app used an ID with this prefix
	}
	s.state.applyAnswer(res)
	if answer != nil {
		answer <- res
	}
	return true
}

// handleGlassesBinary handles a binary frame from the glasses: a piece of a stream, or the media of the next result.
func (s *localSession) handleGlassesBinary(ctx context.Context, data []byte) {
	f, body, err := broker.AdmitBinary(glasses.SenderGlasses, data)
	if err != nil {
		s.owner.often.Warn("rejected a binary frame from the glasses", "session", s.id, "type", f.Type, "err", err)
		return
	}
	s.state.advanceTo(f.At)
	if f.Type != glasses.TypeMedia {
		s.relayStream(ctx, f.Type, len(body), host.Binary(data))
		return
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.saveMedia(f, body)
	s.Apps.Send(host.Binary(data))
}

// relayStream sends a frame of a stream to the apps.
func (s *localSession) relayStream(ctx context.Context, typ string, size int, m host.Message) {
	if relieved := s.RelayStream(typ, size, m); relieved != nil {
		host.AwaitRelief(relieved, ctx.Done())
	}
}
