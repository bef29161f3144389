package session

import (
	"context"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
)

// appRate is the rate of all apps of a session together.
var appRate = host.Rate{PerSecond: 2000, Burst: 2000}

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
	if err == nil && f.Type == glasses.TypeBarrier {
		a.barrierAnswered(f)
		return
	}
	s.rates.Wait(ctx, glasses.SenderApp, appRate)
	if err != nil {
		a.refuse(f.ID, err)
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
	a.SendText(broker.ErrorFrame(a.session.now(), id, err))
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
			from.SendText(o.Data)
		case broker.ToApps:
			s.apps.send(host.Text(o.Data))
		case broker.ToGlasses:
			if err := s.transport.send(host.Text(o.Data)); err != nil {
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

// handleGlasses handles one frame from the glasses. If it belongs to a stream with which the apps do not keep up, it
// returns after a pause, unless ctx ends.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Type != glasses.TypeResult {
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
			a.End(glasses.CloseRestart, glasses.DroppedByFault)
		}
	}
}

// deliverControl passes the result of a control frame to its caller, who may have given up. It returns false for any
// other result.
func (s *localSession) deliverControl(f glasses.Frame) bool {
	res, err := glasses.ParseResult(f.Payload)
	if err != nil || !host.IsControlID(f.ID) {
		return false
	}
	answer := s.controls.Take(f.ID)
	if answer == nil && s.isCommand(f.ID) {
		return false // an app chose an ID with this prefix
	}
	s.state.applyAnswer(res)
	if answer != nil {
		answer <- res
	}
	return true
}

// isCommand reports whether a command with this ID is still waiting for its result.
func (s *localSession) isCommand(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.broker.Command(id)
	return ok
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saveMedia(f, body)
	s.apps.send(host.Binary(data))
}

// relayStream counts a frame of a stream and sends it to the apps.
func (s *localSession) relayStream(ctx context.Context, typ string, size int, m host.Message) {
	s.mu.Lock()
	s.streams.Add(s.now(), typ, size)
	s.mu.Unlock()
	m.Stream = true
	if relieved := s.apps.send(m); relieved != nil {
		host.AwaitRelief(relieved, ctx.Done())
	}
}
