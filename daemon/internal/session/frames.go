package session

import (
	"context"
	"encoding/json"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// Handle handles one frame from the app. It passes raw to the glasses unchanged to keep unknown fields. It returns
// after the frame has been sent and, in virtual time, after the glasses have handled it.
func (a *App) Handle(ctx context.Context, raw []byte, binary bool) {
	defer a.noteActivity()
	a.isStuck.Store(false)
	s := a.session
	if binary {
		_, _, err := broker.AdmitBinary(glasses.SenderApp, raw)
		a.refuse("", err)
		return
	}
	f, err := broker.Admit(glasses.SenderApp, raw)
	if err != nil {
		a.refuse(f.ID, err)
		return
	}
	if f.Type == glasses.TypeBarrier {
		a.barrierAnswered(f)
		return
	}
	if s.turns.exchange.take(ctx) != nil {
		return
	}
	defer s.turns.exchange.give()
	if !s.handleApp(a, f, raw) {
		return
	}
	// An answer proves that the glasses have handled all previous frames. In virtual time, every command with an
	// immediate effect needs one. In real time, an occasional answer keeps the glasses' queue from overflowing.
	if s.isVirtual() {
		if !s.hasDelayedEffect(f.ID) {
			_, _ = s.step(ctx, s.state.nowMs())
		}
	} else if s.turns.unconfirmed++; s.turns.unconfirmed >= maxUnconfirmed {
		_, _ = s.ask(ctx, glasses.SimState, nil, nil)
		s.turns.unconfirmed = 0
	}
}

// maxUnconfirmed is the maximum number of commands sent without waiting for an answer; the queue of the glasses is
// longer.
const maxUnconfirmed = 100

// hasDelayedEffect reports whether a command has no immediate effect, which is the case for a sleep unless a fault ends
// it. Asking the glasses after each sleep would slow down an app that ticks every second by a quarter.
func (s *localSession) hasDelayedEffect(id string) bool {
	s.mu.Lock()
	cmd, _ := s.broker.Command(id)
	s.mu.Unlock()
	sleep, ok := cmd.Value.(*glasses.Sleep)
	return ok && sleep.Ms > 0 && len(s.state.read().Snapshot.State.Faults) == 0
}

func (a *App) refuse(id string, err error) {
	a.peer.Send(broker.ErrorFrame(a.session.now(), id, err), false, false)
}

// handleApp logs an app's frame and passes a command on; sent reports whether the glasses received it.
func (s *localSession) handleApp(a *App, f glasses.Frame, raw []byte) (sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return false
	}
	outputs := s.broker.FromApp(s.now(), s.transport.player(), f, raw)
	if s.perform(a, outputs) != nil {
		_ = s.perform(nil, s.broker.NotConnected(s.now(), f.ID))
		return false
	}
	return outputs[len(outputs)-1].Action == broker.ToGlasses
}

// perform executes the broker's decision about a frame from an app, or from the glasses if from is nil. It fails if a
// frame cannot be sent to the glasses. The caller holds mu.
func (s *localSession) perform(from *App, outputs []broker.Output) error {
	for _, o := range outputs {
		switch o.Action {
		case broker.Refuse:
			if from == nil {
				s.owner.often.Warn("rejected a frame from the glasses", "session", s.id, "err", o.Err)
				continue
			}
			from.peer.Send(o.Data, false, false)
		case broker.ToApps:
			s.apps.send(o.Data, false, false)
		case broker.ToGlasses:
			if err := s.transport.send(o.Data, false); err != nil {
				return err
			}
		case broker.Acknowledge:
			if from != nil {
				s.log.acknowledge(o.Row, from)
			}
		case broker.Append:
			sender := from
			if o.Row.Sender == glasses.SenderService {
				sender = nil
			}
			s.appendRow(o.Row, sender, o.Answered)
			if o.Answered != nil {
				s.logStreams(s.streams.TakeStopped(o.Answered.Type))
			}
		}
	}
	return nil
}

// handleGlasses handles one frame from the glasses.
func (s *localSession) handleGlasses(data []byte, binary bool) {
	if binary {
		s.handleGlassesBinary(data)
		return
	}
	f, err := broker.Admit(glasses.SenderGlasses, data)
	if err == nil && f.Type == glasses.TypeError {
		f = errorResult(f)
		data, err = f.Encode()
	}
	if err != nil {
		s.owner.often.Warn("rejected a frame from the glasses", "session", s.id, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.advanceTo(f.At)
	switch {
	case f.Type == glasses.TypeResult:
		if s.deliverControl(f) {
			return
		}
	case glasses.IsStream(f.Type):
		s.streams.Add(s.now(), f.Type, len(f.Payload))
		s.apps.send(data, false, true)
		return
	default:
		// An event gets the number of its row as its ID. Restarted glasses would repeat their own IDs, and every
		// run in virtual time would use the same IDs.
		f.ID = s.newEventID()
		if data, err = f.Encode(); err != nil {
			return
		}
	}
	_ = s.perform(nil, s.broker.FromGlasses(s.now(), player, player, f, data))
	if glasses.DropsApp(f.Type, f.Payload) {
		for _, a := range s.apps.all() {
			a.peer.End(glasses.CloseRestart, glasses.DroppedByFault)
		}
	}
}

// deliverControl passes the result of a control frame to the caller that waits for it, or returns false for any other
// result. The caller holds mu.
func (s *localSession) deliverControl(f glasses.Frame) bool {
	res, err := glasses.ParseResult(f.Payload)
	if err != nil {
		return false
	}
	answer := s.transport.takeAnswer(f.ID)
	if answer == nil {
		return false
	}
	s.state.applyAnswer(res)
	answer <- res
	return true
}

// handleGlassesBinary handles a binary frame from the glasses: a piece of a stream, or the media of the next result.
func (s *localSession) handleGlassesBinary(data []byte) {
	f, body, err := broker.AdmitBinary(glasses.SenderGlasses, data)
	if err != nil {
		s.owner.often.Warn("rejected a binary frame from the glasses", "session", s.id, "type", f.Type, "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.advanceTo(f.At)
	if f.Type == glasses.TypeMedia {
		s.saveMedia(f, body)
	} else {
		s.streams.Add(s.now(), f.Type, len(body))
	}
	s.apps.send(data, true, f.Type != glasses.TypeMedia)
}

// errorResult converts an error frame, which glasses send for an unreadable frame, to a result.
func errorResult(f glasses.Frame) glasses.Frame {
	var refusal glasses.Error
	if json.Unmarshal(f.Payload, &refusal) != nil || refusal.Code == "" {
		refusal = glasses.Error{Code: glasses.CodePlatform, Message: "the glasses refused the frame"}
	}
	f.Type, f.Payload = glasses.TypeResult, broker.Payload(glasses.Result{Error: &refusal})
	return f
}
