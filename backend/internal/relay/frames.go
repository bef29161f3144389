package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

// handle handles one frame from a peer. It relays the bytes unchanged, to preserve unknown fields.
func (s *liveSession) handle(ctx context.Context, c *conn, m host.Message) {
	sender := c.sender()
	if m.Kind == websocket.Binary {
		if sender == glasses.SenderApp {
			s.handleChunk(c, m)
		} else {
			s.handleBinary(c, m)
		}
		return
	}
	f, err := broker.Admit(sender, m.Data)
	if err != nil || f.Type != glasses.TypeMotion { // streams are not limited
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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	_ = s.Perform(ctx, c, s.Broker.FromApp(s.hub.Now(), s.player(), f, raw)) // SendCommand never fails
}

func (s *liveSession) handlePage(ctx context.Context, c *conn, f glasses.Frame, m host.Message) {
	player := s.player()
	switch {
	case f.Type == glasses.TypeResult && s.deliverControl(c, f):
		return
	case f.Type == glasses.TypeMotion:
		if player == c.ID {
			s.relayStream(c, f.Type, len(f.Payload), m)
		}
		return
	}
	raw := bytes.Clone(m.Data)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	_ = s.FromGlasses(ctx, c, c.ID, player, f, raw) // FromGlasses reports a failure to the page
}

// handleBinary handles a binary frame from a page: part of a stream, or the media of the result that follows. It does
// not lock Mu, because it logs nothing and the frames of one page stay in order.
func (s *liveSession) handleBinary(c *conn, m host.Message) {
	f, body, err := broker.AdmitBinary(glasses.SenderGlasses, m.Data)
	if err != nil {
		s.hub.wait(s.rates, glasses.SenderGlasses)
		s.refuse(c, "", err)
		return
	}
	if s.active.Load() != c {
		return // a page that no longer acts as the glasses may still be sending a stream
	}
	if f.Type != glasses.TypeMedia {
		s.relayStream(c, f.Type, len(body), m)
	} else if relieved := s.Apps.Send(m); relieved != nil {
		host.AwaitRelief(relieved, c.Leaves())
	}
}

// handleChunk sends sound from an app to the page that acts as the glasses. Without one there is no playback.
func (s *liveSession) handleChunk(c *conn, m host.Message) {
	f, body, err := broker.AdmitBinary(glasses.SenderApp, m.Data)
	if err != nil {
		s.hub.wait(s.rates, glasses.SenderApp)
		s.refuse(c, f.ID, err)
		return
	}
	s.rates.Wait(s.hub.life, glasses.TypePlaybackChunk, chunkRate)
	player := s.active.Load()
	if player == nil {
		return
	}
	s.CountStream(f.Type, len(body))
	m.Stream = true
	if relieved := player.Send(m); relieved != nil {
		host.AwaitRelief(relieved, c.Leaves())
	}
}

// relayStream sends a stream frame to the apps. If one of them cannot keep up, the page is delayed briefly before
// frames are dropped.
func (s *liveSession) relayStream(c *conn, typ string, size int, m host.Message) {
	if relieved := s.RelayStream(typ, size, m); relieved != nil {
		host.AwaitRelief(relieved, c.Leaves())
	}
}

func (s *liveSession) refuse(c *conn, id string, err error) {
	c.SendText(broker.ErrorFrame(s.hub.Now(), id, err))
}

// Now returns the current time (host.Host).
func (s *liveSession) Now() time.Time { return s.hub.Now() }

// EventID returns the page's ID: pages choose unique ones (host.Host).
func (s *liveSession) EventID(id string) string { return id }

// Append applies a row to the session's state and queues it for the log (host.Host).
func (s *liveSession) Append(
	ctx context.Context, row glasses.Event, from host.Receiver, answered *broker.Command,
) {
	if row.ID == "" {
		row.ID = "svc-" + rand.Text()
	}
	if answered != nil {
		s.applyResult(answered)
	} else if row.Sender == glasses.SenderGlasses && row.Kind == glasses.KindEvent {
		s.applyEvent(ctx, row.Type, row.Payload)
	}
	s.appendRow(ctx, from, row, answered != nil)
}

// Acknowledge queues the row again, so that the writer finds and acknowledges the existing row (host.Host).
func (s *liveSession) Acknowledge(ctx context.Context, row glasses.Event, to host.Receiver) {
	s.appendRow(ctx, to, row, false)
}

// SendCommand sends a command to every page: the page that acts as the glasses answers, the others only draw
// (host.Host).
func (s *liveSession) SendCommand(frame []byte) error {
	s.pages.Send(host.Text(frame))
	return nil
}

// SendControl sends a control frame to the page that acts as the glasses (host.Host).
func (s *liveSession) SendControl(frame []byte) {
	if player := s.active.Load(); player != nil {
		player.SendText(frame)
	}
}

// applyResult stores the effect of a successful command for peers that attach later. The caller must hold Mu.
func (s *liveSession) applyResult(answered *broker.Command) {
	switch answered.Type {
	case glasses.TypeDisplayShow:
		s.display = answered.Payload
	case glasses.TypeDisplayClear:
		s.display = nil
	}
	if answered.ChangesStanding() {
		s.SetStanding(answered.Standing(s.state.Standing))
	}
}

// applyEvent stores the effect of an event of the glasses for peers that attach later. The caller must hold Mu.
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
