package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// Pauses between attempts to attach glasses whose adapter does not start.
const (
	attachPause    = 100 * time.Millisecond
	maxAttachPause = 5 * time.Second
	attachTimeout  = 20 * time.Second
)

// transport holds the connection to a session's glasses, which may be replaced.
type transport struct {
	mu       sync.Mutex
	glasses  backend.Glasses    // nil while none are attached
	end      context.CancelFunc // detaches the glasses; new ones are then attached
	attached chan struct{}      // closed while glasses are attached
	failed   chan struct{}      // closed and replaced after each failed attempt
	err      error              // of the last attempt
}

func newTransport() *transport {
	return &transport{attached: make(chan struct{}), failed: make(chan struct{})}
}

// player returns the PeerID of the attached glasses, or broker.NoPeer if none are attached.
func (t *transport) player() broker.PeerID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.glasses == nil {
		return broker.NoPeer
	}
	return player
}

func (t *transport) attach(g backend.Glasses, end context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.glasses, t.end, t.err = g, end, nil
	close(t.attached)
}

// detach removes the glasses.
func (t *transport) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.glasses, t.attached = nil, make(chan struct{})
}

// fail records that an attempt to attach glasses failed with err.
func (t *transport) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	close(t.failed)
	t.failed = make(chan struct{})
}

// wait waits until glasses are attached. It returns an error if their adapter fails.
func (t *transport) wait(ctx, life context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	for {
		t.mu.Lock()
		attached, failed, err := t.attached, t.failed, t.err
		t.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-attached:
			return nil
		case <-failed:
		case <-life.Done():
			return notConnected("the daemon is stopping")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return notConnected("the simulated glasses did not start in time")
			}
			return context.Cause(ctx)
		}
	}
}

// send passes a frame to the glasses.
func (t *transport) send(m host.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.glasses == nil {
		return notConnected(noGlasses)
	}
	return t.glasses.Send(m.Data, m.Kind == websocket.Binary)
}

// setPanel sends the settings of the panel to attached glasses. Later glasses receive the settings when they are
// attached.
func (t *transport) setPanel(p backend.PairPanel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.glasses != nil {
		_ = t.glasses.SetPanel(p) // fails only while the glasses are being detached
	}
}

// attachTransport keeps a pair of glasses attached. When their adapter exits, a new pair continues with the same state.
// Repeated failures with the same reason are logged once.
func (s *localSession) attachTransport(ctx context.Context) {
	pause, logged := attachPause, ""
	for ctx.Err() == nil {
		life, end := context.WithCancel(ctx)
		g, err := s.openTransport(life)
		if err != nil {
			end()
			s.transport.fail(err)
			if reason := err.Error(); reason != logged && ctx.Err() == nil {
				s.owner.log.Warn("failed to attach glasses", "session", s.id, "err", err)
				logged = reason
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, maxAttachPause)
			continue
		}
		pause, logged = attachPause, ""
		s.attached(g, end)
		err = s.receive(life, g)
		end()
		_ = g.Close()
		s.detached(ctx, err)
	}
}

// openTransport opens glasses with the session's transport.
func (s *localSession) openTransport(ctx context.Context) (backend.Glasses, error) {
	m := s.state.read()
	open := backend.TransportOpen{
		SessionID: s.id, DeviceModel: m.Snapshot.DeviceModel, Virtual: s.isVirtual(), NowMs: s.state.nowMs(),
		FixturesDir: s.fixturesCopy(m), Pace: m.Pace == PaceReal, Pair: s.pair(m), AnyPair: m.GlassesName == "",
		Via: m.Via,
	}
	if m.transportName() == RealDevice { // ignore hardware reported by any other adapter
		open.OnHardware = s.setHardware
	}
	if m.Attached > 0 {
		open.Snapshot = &m.Snapshot
	}
	attempt, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	g, err := s.owner.transports.Attach(attempt, m.transportName(), open)
	switch { // do not report a cancelled call, because the caller did not cancel it
	case errors.Is(err, context.DeadlineExceeded):
		err = notConnected("the simulated glasses did not start in time")
	case err != nil && ctx.Err() != nil:
		err = notConnected("the session is restarting")
	}
	return g, m.transportProblem(err)
}

func (s *localSession) attached(g backend.Glasses, end context.CancelFunc) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.state.update(func(m *meta) { m.Attached++ })
	s.transport.attach(g, end)
	s.tellPanel()
	s.SendLink(s.link())
	s.logService(glasses.RowGlassesAttached, struct{}{})
	if standing := s.Standing(); len(standing.Phrases) > 0 || standing.Transcription != nil {
		s.SendStanding()
	}
	s.handOver()
}

// handOver sends the glasses the commands that had no result when the daemon was killed. A sleep starts again with its
// full duration. The caller holds Mu.
func (s *localSession) handOver() {
	now := s.Now()
	s.Broker.ExtendDeadlines(now)
	for _, frame := range s.Broker.HandOver(now, broker.NoPeer, player) {
		_ = s.transport.send(host.Text(frame)) // a command that cannot be sent times out
	}
}

// SendCommand sends a command to the glasses (host.Host).
func (s *localSession) SendCommand(frame []byte) error { return s.transport.send(host.Text(frame)) }

// SendControl sends a control frame to the glasses, if any are attached (host.Host).
func (s *localSession) SendControl(frame []byte) { _ = s.transport.send(host.Text(frame)) }

// Standing returns the settings by apps that the next glasses receive (host.Host).
func (s *localSession) Standing() glasses.Standing { return s.state.read().Standing }

// SetStanding changes the settings that Standing returns (host.Host).
func (s *localSession) SetStanding(standing glasses.Standing) {
	s.state.update(func(m *meta) { m.Standing = standing })
}

// detached fails the commands that are waiting for the detached glasses.
func (s *localSession) detached(ctx context.Context, why error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.transport.detach()
	s.controls.Close()
	s.hardware.detach()
	if ctx.Err() == nil {
		s.owner.log.Warn("glasses disconnected", "session", s.id, "err", why)
	}
	s.GlassesGone(ctx, "the glasses were detached")
	s.logService(glasses.RowGlassesDetached, struct{}{})
}

// receive handles frames from the glasses until their stream ends.
func (s *localSession) receive(ctx context.Context, g backend.Glasses) error {
	for {
		data, binary, err := g.Receive(ctx)
		if err != nil {
			return err
		}
		s.handleGlasses(ctx, data, binary)
	}
}

// link returns the link state that is sent to apps.
func (s *localSession) link() string {
	if s.transport.player() == broker.NoPeer {
		return glasses.LinkDisconnected
	}
	return s.state.read().Snapshot.State.Link
}

func notConnected(message string) error {
	return &problem.Error{
		Code: problem.CodeNotConnected, Message: message, Retryable: true,
		FixHint: "Repeat the call in a moment; if that does not help, run `servicectl doctor` or `servicectl daemon logs`.",
	}
}
