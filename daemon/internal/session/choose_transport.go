package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// chooseTransport sets the transport of a new session, and its device model if the request does not specify one. It
// rejects options that the transport does not support.
func (m *Manager) chooseTransport(want *meta, req LocalRequest) error {
	want.GlassesName, want.Via = req.GlassesName, req.Via
	if req.Transport != localSim {
		want.Transport = req.Transport
	}
	t, err := m.opts.Transports.Transport(want.transportName())
	switch {
	case err != nil:
		return err
	case t.NeedsAccount:
		return problem.New(problem.CodeUnsupported, fmt.Sprintf("transport %s needs an account", t.Name),
			"Call createSimulatorSession, or leave transport out.")
	case want.Clock == backend.ClockVirtual && !t.VirtualClock:
		return problem.New(problem.CodeUnsupported, fmt.Sprintf("transport %s has no virtual clock", t.Name),
			"Set clock to real, in the scenario too, or leave transport out for simulated glasses in virtual time.")
	case req.DeviceModel == "" && !t.Offers(want.Snapshot.DeviceModel):
		want.Snapshot.DeviceModel = t.DeviceModels[0]
	}
	return checkModel(t, want.Snapshot.DeviceModel)
}

// checkOffered returns an error if the session's transport does not support the device model.
func (s *localSession) checkOffered(model string) error {
	m := s.state.read()
	t, err := s.owner.transports.Transport(m.transportName())
	if err != nil {
		return m.transportProblem(err)
	}
	if _, known := glasses.Model(model); !known {
		return nil // the glasses refuse it with their own error
	}
	return checkModel(t, model)
}

func checkModel(t backend.Transport, model string) error {
	if t.Offers(model) {
		return nil
	}
	return problem.New(problem.CodeUnsupported, fmt.Sprintf("transport %s does not offer %s", t.Name, model),
		"Pass one that it offers: "+strings.Join(t.DeviceModels, ", ")+".")
}

// transportProblem replaces err with a clearer error if the session's adapter was removed. The session continues once
// the adapter is added again.
func (m meta) transportProblem(err error) error {
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != problem.CodeUnknownTransport {
		return err
	}
	return &problem.Error{
		Code: p.Code, Message: fmt.Sprintf("the adapter of this session's transport, %s, was removed", m.transportName()),
		FixHint: "Let the user add it again with `servicectl plugin add PATH`, and the session continues; or call " +
			"startLocalSimulation with fresh true.",
	}
}
