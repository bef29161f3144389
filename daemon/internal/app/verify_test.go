package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/link"
)

// replacingBackend is one during whose first answer another program replaces the link.
type replacingBackend struct {
	adapters
	asked   []string
	replace func()
}

func (b *replacingBackend) Account(_ context.Context, t backend.Target) (backend.Account, error) {
	b.asked = append(b.asked, t.Bearer)
	if len(b.asked) == 1 {
		b.replace()
	}
	return backend.Account{}, nil
}

// A link that was replaced while the backend was asked about the old one is asked about too: whoever asks hears yes or
// no, not that it is unknown.
func TestVerify_LinkReplacedMeanwhile(t *testing.T) {
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
	b := &replacingBackend{replace: func() { save("second") }}
	links := link.New(link.Options{Accounts: accounts, Config: settings})
	p := &parts{accounts: accounts, backends: b, now: time.Now, link: links}
	l := p.verify(t.Context(), caller.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": address}})
	if l.AccountID != "second" || !l.Verified.OK {
		t.Errorf("asked about %v, got %+v", b.asked, l)
	}
}
