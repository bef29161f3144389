package relay

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

// handle handles one frame from a peer. It relays the bytes unchanged, to preserve unknown fields.
func (s *liveSession) handle(ctx context.Context, c *conn, m host.Message) {
	sender := c.sender()
	if m.Kind == websocket.Binary {
		s.handleBinary(c, sender, m)
		return
	}
	f, err := broker.Admit(sender, m.Data)
	if f.Type != glasses.TypeMotion && f.Type != glasses.TypeBarrier { // neither a stream nor an ignored frame
		s.hub.wait(s.rates, sender)
	}
	switch {
	case err != nil:
		s.refuse(c, f.ID, err)
	case f.Type == glasses.TypeBarrier: // used only in virtual time, which the backend's sessions do not have
	case sender == glasses.SenderApp:
		s.handleApp(ctx, c, f, m.Data)
	default:
		s.handlePage(ctx, c, f, m)
	}
}

func (s *liveSession) handleApp(ctx context.Context, c *conn, f glasses.Frame, raw []byte) {
	if glasses.IsCommand(f.Type) {
		raw = bytes.Clone(raw) // the broker keeps it until the result
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perform(ctx, c, s.broker.FromApp(s.hub.Now(), s.player(), f, raw))
}

func (s *liveSession) handlePage(ctx context.Context, c *conn, f glasses.Frame, m host.Message) {
	player := s.player()
	switch {
	case f.Type == glasses.TypeResult && s.deliverControl(c, f):
		return
	case f.Type == glasses.TypeMotion:
		if player == c.ID {
			s.countStream(f.Type, len(f.Payload))
			m.Stream = true
			s.relayStream(c, m)
		}
		return
	}
	raw := bytes.Clone(m.Data)
	s.mu.Lock()
	defer s.mu.Unlock()
	outputs := s.broker.FromGlasses(s.hub.Now(), c.ID, player, f, raw)
	s.perform(ctx, c, outputs)
	if isNew := outputs[len(outputs)-1].Action == broker.Append; isNew && glasses.DropsApp(f.Type, f.Payload) {
		s.peersMu.Lock()
		defer s.peersMu.Unlock()
		for _, app := range s.apps {
			app.End(glasses.CloseRestart, glasses.DroppedByFault)
		}
	}
}

// handleBinary handles a binary frame from a page: part of a stream, or the media of the result that follows. It does
// not lock mu, because it logs nothing and the frames of one page stay in order.
func (s *liveSession) handleBinary(c *conn, sender string, m host.Message) {
	f, body, err := broker.AdmitBinary(sender, m.Data)
	if err != nil {
		s.refuse(c, "", err)
		return
	}
	if s.active.Load() != c {
		return // a page that no longer acts as the glasses may still be sending a stream
	}
	m.Stream = f.Type != glasses.TypeMedia
	if m.Stream {
		s.countStream(f.Type, len(body))
	}
	s.relayStream(c, m)
}

// relayStream sends a stream frame to the apps. If one of them cannot keep up, the page is delayed briefly before
// frames are dropped.
func (s *liveSession) relayStream(c *conn, m host.Message) {
	if relieved := s.publish(toApps, m); relieved != nil {
		host.AwaitRelief(relieved, c.Leaves())
	}
}

func (s *liveSession) refuse(c *conn, id string, err error) {
	c.SendText(broker.ErrorFrame(s.hub.Now(), id, err))
}

// perform carries out the broker's decisions about a frame. from is the sender of the frame, or nil if the decisions
// concern no frame. The caller must hold mu.
func (s *liveSession) perform(ctx context.Context, from *conn, outputs []broker.Output) {
	for _, o := range outputs {
		switch o.Action {
		case broker.Refuse:
			from.SendText(o.Data)
		case broker.ToApps:
			s.publish(toApps, host.Text(o.Data))
		case broker.ToGlasses: // the page that acts as the glasses answers; the others only draw
			s.publish(toPages, host.Text(o.Data))
		case broker.Acknowledge: // the log finds the existing row and acknowledges it
			s.appendRow(ctx, from, o.Row, false)
		case broker.Append:
			sender := from
			if o.Row.Sender == glasses.SenderService {
				sender = nil
			}
			s.applyResult(o.Answered)
			if o.Row.Sender == glasses.SenderGlasses && o.Row.Kind == glasses.KindEvent {
				s.applyEvent(ctx, o.Row.Type, o.Row.Payload)
			}
			s.appendRow(ctx, sender, o.Row, o.Answered != nil)
			if o.Answered != nil {
				s.logStreams(ctx, func(c *broker.StreamCounter) []glasses.StreamCount {
					return c.TakeStopped(o.Answered.Type)
				})
			}
		}
	}
	s.pending.Store(int64(s.broker.Pending()))
}

// applyResult stores the effect of a successful command for peers that attach later. The caller must hold mu.
func (s *liveSession) applyResult(answered *broker.Command) {
	if answered == nil {
		return
	}
	switch answered.Type {
	case glasses.TypeDisplayShow:
		s.display = answered.Payload
	case glasses.TypeDisplayClear:
		s.display = nil
	}
	if answered.ChangesStanding() {
		s.setStanding(answered.Standing(s.state.Standing))
	}
}

// applyEvent stores the effect of an event of the glasses for peers that attach later. The caller must hold mu.
func (s *liveSession) applyEvent(ctx context.Context, typ string, payload json.RawMessage) {
	if typ == glasses.TypeDevice {
		var d glasses.DeviceChange
		_ = json.Unmarshal(payload, &d)
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		if err := s.hub.Sessions.SetModel(ctx, s.id, d.DeviceModel.ID); err != nil {
			s.hub.Logger.Warn("failed to save device model", "session", s.id, "err", err)
		}
		s.display = nil
	}
	if after, changed := s.state.Glasses.AfterEvent(typ, payload); changed {
		state := *s.state
		if glasses.PanelClears(state.Glasses.Link, after.Link) {
			s.display = nil
		}
		state.Glasses = after
		s.setState(state)
	}
}

// countStream adds a frame to the counts, which are logged as rows.
func (s *liveSession) countStream(typ string, size int) {
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	s.streams.Add(s.hub.Now(), typ, size)
}

// logStreams appends a row for each count that take removes from the counter. The caller must hold mu.
func (s *liveSession) logStreams(ctx context.Context, take func(*broker.StreamCounter) []glasses.StreamCount) {
	s.streamsMu.Lock()
	counts := take(&s.streams)
	s.streamsMu.Unlock()
	for _, c := range counts {
		s.logService(ctx, glasses.RowStreamCounted, c)
	}
}
