package link

import (
	"context"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// untrusted is a backend whose polls fail with a hint for their caller.
type untrusted struct{ *fake }

func (untrusted) PollDeviceToken(ctx context.Context, _ backend.Target, _ string) (backend.Poll, error) {
	return backend.Poll{}, &problem.Error{
		Code: problem.CodeBackendUnreachable, Untrusted: true, FixHint: "for " + caller.From(ctx).Env["SSL_CERT_FILE"],
	}
}

func TestPoll_FailureKeepsHintForCaller(t *testing.T) {
	run(t, nil, func(t *testing.T, m *Manager, f *fake, _ string) {
		m.Backend = untrusted{f}
		attempt, err := m.Start(t.Context(), caller.Caller{Env: map[string]string{"SSL_CERT_FILE": "/ca.pem"}}, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = attempt.Wait(t.Context(), Wait{Max: 5 * time.Minute})
		if p := asProblem(err); p.Code != problem.CodeBackendUnreachable || !p.Untrusted || p.FixHint != "for /ca.pem" {
			t.Errorf("got %+v, want the hint of the poll", p)
		}
	})
}
