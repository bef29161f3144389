package link

import (
	"context"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/proto/telemetry"
)

func (m *Manager) record(who caller.Caller, event string, fields map[string]any) {
	m.Record.Record(caller.With(context.Background(), who), event, fields)
}

func (m *Manager) initiated(who caller.Caller) { m.record(who, telemetry.LoginInitiated, nil) }

// completed records an outcome of a flow. It is called a second time if a wait was aborted and the code was decided
// later. It records polling_aborted once for each code. The caller must not hold m.mu.
func (m *Manager) completed(f *flow, outcome string) {
	switch outcome {
	case telemetry.OutcomeSuccess:
		m.record(f.who, telemetry.Linked, nil)
	case telemetry.OutcomePollingAborted:
		m.mu.Lock()
		again := f.aborted
		f.aborted = true
		m.mu.Unlock()
		if again {
			return
		}
		m.updateCode(f, func(i *codes.Issued) { i.Aborted = true })
	}
	m.record(f.who, telemetry.LoginCompleted, map[string]any{"outcome": outcome})
}

// recordExpired records that codes expired without being completed. It writes files, so the caller must not hold m.mu.
func (m *Manager) recordExpired(flows []*flow) {
	for _, f := range flows {
		m.completed(f, telemetry.OutcomeCodeExpired)
	}
}

// takeExpired removes the flows whose codes have expired, and returns the flows without an outcome.
func (m *Manager) takeExpired() (expired []*flow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for code, f := range m.flows {
		if m.Now().After(f.expires) {
			expired = m.drop(code, f, expired)
		}
	}
	return expired
}
