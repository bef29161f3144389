package link

import (
	"testing"

	"github.com/service-dev/service/internal/problem"
)

func TestLogoutForgetsTheOutcome(t *testing.T) {
	run(t, []answer{approved}, func(t *testing.T, m *Manager, _ *fake, _ string) {
		code := ask(t, m)
		if _, err := complete(t, m, code, Wait{}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Accounts.Delete(); err != nil {
			t.Fatal(err)
		}
		_, err := complete(t, m, code, Wait{})
		wantCode(t, err, problem.CodeUnknownDeviceCode)
	})
}
