package session

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
)

// RealPair is a pair of real glasses that is connected to an open session. Uncleared has the same meaning as in
// backend.Hardware.
type RealPair struct {
	SessionID, DeviceModel, Name string
	Uncleared                    bool
}

// RealPairs returns the connected pairs.
func (m *Manager) RealPairs() (list []RealPair) {
	for _, s := range m.local.list() {
		if state, _ := s.hardware.read(); IsConnected(state) {
			list = append(list, RealPair{s.id, s.state.read().Snapshot.DeviceModel, state.Pair.Name, state.Uncleared})
		}
	}
	return list
}

// SetPanel stores the user's description of the panel of a session's glasses, and applies it to later pictures. It
// returns a *problem.Error on failure.
func (m *Manager) SetPanel(id string, panel backend.PairPanel) error {
	s, err := m.local.wake(id)
	if err != nil {
		return err
	}
	state, _ := s.hardware.read()
	if state == nil || state.Pair.Name == "" || m.local.pairs == nil {
		return notConnected("the session has no real glasses")
	}
	if err := m.local.pairs.SetPanel(s.state.read().Snapshot.DeviceModel, state.Pair.Name, panel); err != nil {
		return err
	}
	s.transport.setPanel(panel)
	return nil
}

// choosePair restricts a session to the pair called name. It does nothing if the session has had glasses before.
func (s *localSession) choosePair(ctx context.Context, name string) error {
	if name == "" || s.state.read().GlassesName != "" {
		return nil
	}
	s.state.update(func(m *meta) { m.GlassesName = name })
	return s.reattach(ctx)
}

// reattach detaches the session's glasses, so that new ones are attached. It returns after the old ones have been
// detached.
func (s *localSession) reattach(ctx context.Context) error {
	before := s.hardware.detachments() // from now on, also counts glasses that detach by themselves
	if err := s.transport.wait(ctx, s.owner.life); err != nil {
		return err
	}
	s.transport.finish()
	for {
		_, changed := s.hardware.read()
		if s.hardware.detachments() != before {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (h *hardware) detachments() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.detached
}

// finish ends the connection to the attached glasses. Their session then attaches new ones.
func (t *transport) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end()
	}
}
