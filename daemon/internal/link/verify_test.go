package link

import (
	"context"
	"log/slog"
	"testing"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/internal/problem"
)

// replacingBackend simulates another program that replaces the link while the backend processes the first call.
type replacingBackend struct {
	Backend
	asked   []string
	replace func()
	err     error
}

func (b *replacingBackend) Account(_ context.Context, t backend.Target) (backend.Account, error) {
	b.asked = append(b.asked, t.Bearer)
	if len(b.asked) == 1 {
		b.replace()
	}
	return backend.Account{}, b.err
}

// verifying returns a manager with a real account store whose link has the token "first".
func verifying(t *testing.T) (m *Manager, b *replacingBackend, who caller.Caller) {
	t.Helper()
	const address = "https://backend.test"
	dir := t.TempDir()
	settings, err := config.Open(dir, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	accounts := account.Open(account.Options{Dir: dir})
	save := func(token string) {
		l := account.Link{AuthToken: account.Secret(token), AccountID: token, BackendURL: address}
		if err := accounts.Save(l); err != nil {
			t.Fatal(err)
		}
	}
	save("first")
	b = &replacingBackend{replace: func() { save("second") }}
	who = caller.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": address}}
	return New(Options{Backend: b, Accounts: accounts, Config: settings.Current}), b, who
}

// If a link is replaced while the backend is asked about the old one, the new one is verified as well. The result is
// then yes or no, never unknown.
func TestVerify_LinkReplacedMeanwhile(t *testing.T) {
	m, b, who := verifying(t)
	l := m.Verify(t.Context(), who)
	if l.AccountID != "second" || !l.Verified.OK {
		t.Errorf("asked about %v, got %+v; want the second link verified", b.asked, l)
	}
}

func TestVerify_UnreachableBackendKeepsTheStoredVerdict(t *testing.T) {
	m, b, who := verifying(t)
	if l := m.Verify(t.Context(), who); !l.Verified.OK {
		t.Fatalf("%+v", l)
	}
	b.err = &problem.Error{Code: problem.CodeBackendUnreachable, Message: "no network"}
	if l := m.Verify(t.Context(), who); l.Verified.OK || l.Verified.Err == "" || !l.Linked() {
		t.Errorf("the returned link is %+v, want a failed verification", l)
	}
	if l := m.current(); !l.Verified.OK {
		t.Errorf("the stored verdict changed to %+v", l.Verified)
	}
}
