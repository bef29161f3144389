package link

import (
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
)

// All events of a flow, including background polls, are recorded for the shell that requested its code.
func TestEventsBelongToWhoAsked(t *testing.T) {
	run(t, []answer{pending(0), approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		attempt, err := m.Start(t.Context(), caller.Caller{Env: map[string]string{"SERVICE_TELEMETRY": "0"}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := attempt.Wait(t.Context(), Wait{}); err != nil {
			t.Fatal(err)
		}
		if len(f.shells) != 3 || f.shells[0] != "0" || f.shells[1] != "0" || f.shells[2] != "0" {
			t.Errorf("events %v of shells %v, want shell 0 for all", f.events, f.shells)
		}
	})
}
