package session

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// RealDevice is the transport of real glasses.
const RealDevice = "realdevice"

// Carriers of real glasses. ViaAuto selects BlueZ if it has a Bluetooth adapter, and a page in the user's browser
// otherwise.
const (
	ViaAuto    = "auto"
	ViaBlueZ   = "bluez"
	ViaBrowser = "browser"
)

// Pairs remembers the real glasses that were connected to this computer.
type Pairs interface {
	// Last returns the most recently used pair of a model. The pair has no name if there is none.
	Last(deviceModel string) backend.Pair
	// Named returns the pair with this name. If the pair is unknown, only its name is set.
	Named(deviceModel, name string) backend.Pair
	Use(deviceModel string, p backend.Pair) error
	SetPanel(deviceModel, name string, panel backend.PairPanel) error
	// IsUncleared reports whether the pair may still show a picture.
	IsUncleared(deviceModel, name string) bool
}

// RealRequest requests a session with real glasses.
type RealRequest struct {
	// Project and DeviceModel have the same defaults as in LocalRequest, except that DeviceModel defaults to the first
	// model with a driver.
	Project, DeviceModel string
	// Name is the pair's name. If it is empty, the most recently used pair or the only pair in range is used.
	Name string
	// Via is the carrier. If it is empty, the open session's carrier or ViaAuto is used.
	Via string
	// Wait is how long to wait for the glasses.
	Wait time.Duration
}

// Real is a session with real glasses.
type Real struct {
	Opened
	Hardware backend.Hardware
	// NewPage is the page that the user has to open; empty if an earlier call already returned it.
	NewPage string
}

// hardware is the state of a session's real glasses.
type hardware struct {
	mu       sync.Mutex
	state    *backend.Hardware // nil for simulated glasses
	changed  chan struct{}     // closed and replaced at each change
	saved    string            // the name of the pair that was last remembered
	told     string            // the page that a call has already returned
	detached int               // how often the glasses were detached
}

func (h *hardware) read() (state *backend.Hardware, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.state, h.changed
}

// set stores a state. isNew reports whether the pair is connected for the first time. said is the user's new
// description of the pair's panel, or nil if the description has not changed.
func (h *hardware) set(state backend.Hardware) (isNew bool, said *backend.PairPanel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := state.Answered; now != nil && (h.state == nil || h.state.Answered == nil || *h.state.Answered != *now) {
		said = now
	}
	h.state = &state
	h.notify()
	if !IsConnected(&state) || h.saved == state.Pair.Name {
		return false, said
	}
	h.saved = state.Pair.Name
	return true, said
}

// newPage returns the page that the user has to open, or "" if it was returned before.
func (h *hardware) newPage() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == nil || h.state.ConnectURL == h.told {
		return ""
	}
	h.told = h.state.ConnectURL
	return h.told
}

// notify wakes the goroutines that are waiting for a change. mu must be held.
func (h *hardware) notify() {
	if h.changed != nil {
		close(h.changed)
	}
	h.changed = make(chan struct{})
}

// detach marks the links as down until the next adapter reports their state.
func (h *hardware) detach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.notify()
	h.detached++
	if h.state == nil {
		return
	}
	state := *h.state
	state.Links, state.Problem = slices.Clone(state.Links), nil
	for i := range state.Links {
		state.Links[i].State = "down"
	}
	state.ConnectURL, state.Answered = "", nil // both are valid only while the adapter runs
	h.state = &state
}

// IsConnected reports whether all links of real glasses are up.
func IsConnected(h *backend.Hardware) bool {
	return h != nil && len(h.Links) > 0 && !slices.ContainsFunc(h.Links, func(l backend.HardwareLink) bool {
		return l.State != "up"
	})
}

// setHardware stores the state reported by the adapter. It remembers a pair once the pair is connected, and the session
// keeps using that pair.
func (s *localSession) setHardware(state backend.Hardware) {
	isNew, said := s.hardware.set(state)
	if isNew {
		s.state.update(func(m *meta) { m.GlassesName = state.Pair.Name })
	}
	if s.owner.pairs == nil {
		return
	}
	model := s.state.read().Snapshot.DeviceModel
	if isNew {
		if err := s.owner.pairs.Use(model, state.Pair); err != nil {
			s.owner.log.Warn("failed to remember the glasses", "session", s.id, "err", err)
		}
		s.tellPanel()
	}
	if said != nil {
		if err := s.owner.pairs.SetPanel(model, state.Pair.Name, *said); err != nil {
			s.owner.log.Warn("failed to remember how the panel shows pictures", "session", s.id, "err", err)
		}
	}
}

// tellPanel sends the stored settings of the panel to connected glasses, unless these settings were already sent when
// the glasses were attached. The name of the glasses may not have been known then.
func (s *localSession) tellPanel() {
	state, _ := s.hardware.read()
	if !IsConnected(state) || s.owner.pairs == nil {
		return
	}
	known := s.owner.pairs.Named(s.state.read().Snapshot.DeviceModel, state.Pair.Name).PairPanel
	if known != state.Pair.PairPanel {
		s.transport.setPanel(known)
	}
}

// glassesName returns the name of the session's pair, either requested or connected.
func (s *localSession) glassesName(m meta) string {
	if state, _ := s.hardware.read(); m.GlassesName == "" && state != nil {
		return state.Pair.Name
	}
	return m.GlassesName
}

// pair returns the pair for the session's next glasses.
func (s *localSession) pair(m meta) backend.Pair {
	switch model := m.Snapshot.DeviceModel; {
	case m.transportName() != RealDevice || s.owner.pairs == nil:
		return backend.Pair{}
	case m.GlassesName != "":
		return s.owner.pairs.Named(model, m.GlassesName)
	default:
		return s.owner.pairs.Last(model)
	}
}

// describeHardware returns the known state of the session's real glasses, or nil. Before the glasses are attached, e.g.
// after a restart of the daemon, only Uncleared is known.
func (s *localSession) describeHardware(m meta) *backend.Hardware {
	state, _ := s.hardware.read()
	if pair := s.pair(m); state == nil && pair.Name != "" && s.owner.pairs.IsUncleared(m.Snapshot.DeviceModel, pair.Name) {
		return &backend.Hardware{Pair: pair, Uncleared: true}
	}
	return state
}

// batteryWait is how long to wait for connected glasses to report their battery levels.
const batteryWait = 2 * time.Second

func knowsBatteries(h *backend.Hardware) bool {
	return !slices.ContainsFunc(h.Links, func(l backend.HardwareLink) bool { return l.BatteryPercent == 0 })
}

// ConnectReal opens the session for real glasses of (project, directory), or finds the open one, and waits until the
// glasses are connected. It returns earlier if the user has to act first and no call has reported that yet. The
// hardware then describes the action, the session stays open, and the glasses connect without another call. It returns
// a *problem.Error on failure.
func (m *Manager) ConnectReal(ctx context.Context, who caller.Caller, req RealRequest) (Real, error) {
	opened, err := m.StartLocal(ctx, who, LocalRequest{
		Project: req.Project, DeviceModel: req.DeviceModel, Transport: RealDevice, GlassesName: strings.TrimSpace(req.Name),
		Via: req.Via,
	})
	if err != nil {
		return Real{}, err
	}
	s := m.local.find(opened.SessionID)
	if s == nil {
		return Real{}, notFound()
	}
	if err := s.choosePair(ctx, strings.TrimSpace(req.Name)); err != nil {
		return Real{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, req.Wait)
	defer cancel()
	var late <-chan time.Time // when to stop waiting for the battery levels
	for {
		state, changed := s.hardware.read()
		switch {
		case !IsConnected(state):
			late = nil
		case late == nil:
			late = time.After(batteryWait)
		}
		if page := s.hardware.newPage(); page != "" {
			return Real{opened, *state, page}, nil
		}
		if IsConnected(state) && knowsBatteries(state) || NeedsPerson(state) {
			return Real{Opened: opened, Hardware: *state}, nil
		}
		select {
		case <-changed:
		case <-late:
			return Real{Opened: opened, Hardware: *state}, nil
		case <-ctx.Done():
			if state == nil {
				state = &backend.Hardware{}
			}
			return Real{Opened: opened, Hardware: *state}, nil
		}
	}
}

// CloseReal closes the sessions with real glasses that were opened from the caller's directory, which clears the
// glasses. It returns the IDs of the closed sessions.
func (m *Manager) CloseReal(ctx context.Context, who caller.Caller) (ids []string, err error) {
	for _, s := range m.local.list() {
		if meta := s.state.read(); meta.transportName() != RealDevice || meta.Dir != cleanDir(who.Workspace()) {
			continue
		}
		if _, err := m.Close(ctx, backend.Target{}, s.id); err != nil {
			return ids, err
		}
		ids = append(ids, s.id)
	}
	return ids, nil
}

// NeedsPerson reports whether the user has to act before the glasses can connect. It returns false for a page in the
// browser, because that page shows the next step itself.
func NeedsPerson(h *backend.Hardware) bool {
	return h != nil && h.Problem != nil && h.Carrier != ViaBrowser && slices.Contains([]string{
		"no_bluetooth", "radio_off", "no_permission", "several_in_range", "not_paired",
	}, h.Problem.Code)
}
