package link

import (
	"context"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
)

// Limits of revoking a token that is no longer needed here.
const (
	// revokeWait is how long a person waits for it.
	revokeWait = 3 * time.Second
	// maxRevoking bounds the tokens that are kept to be tried again.
	maxRevoking     = 16
	firstRevokeWait = 5 * time.Second
	maxRevokeWait   = 5 * time.Minute
)

// dashboardPath is the page of a backend on which a person revokes links.
const dashboardPath = "/account"

// Revoke asks the backend of a link that was given up to revoke its token, for at most revokeWait. When that fails it
// returns the page on which the person revokes it, and goes on trying: the token is then held in memory only, until
// the daemon ends. It returns "" when there is nothing left to revoke.
func (m *Manager) Revoke(ctx context.Context, l account.Link) (page string) {
	if l.AuthToken == "" || l.State == account.Revoked || l.State == account.Expired {
		return ""
	}
	target := backend.Target{BaseURL: l.BackendURL, Bearer: l.AuthToken.Reveal()}
	done, again := m.revoke(ctx, target)
	if done {
		return ""
	}
	if again {
		m.keepRevoking(target)
	}
	if page = m.dashboardOf(ctx, l.BackendURL); page == "" {
		page = "the account page of the embedded backend (see `servicectl status`)"
	}
	return page
}

// revoke makes one try. again reports whether another one may help.
func (m *Manager) revoke(ctx context.Context, target backend.Target) (done, again bool) {
	ctx, cancel := context.WithTimeout(ctx, revokeWait)
	defer cancel()
	err := m.Backend.RevokeLink(ctx, target)
	problem := asProblem(err)
	switch {
	case err == nil, problem.Code == backend.CodeAuthRequired: // the backend does not honour it
		return true, false
	case ctx.Err() != nil, passing(problem):
		return false, true
	}
	m.Log.Warn("failed to revoke a token", "err", err)
	return false, false
}

// keepRevoking tries again in growing intervals, and a last time when the daemon ends.
func (m *Manager) keepRevoking(target backend.Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.revoking >= maxRevoking {
		return
	}
	m.revoking++
	m.pollers.Go(func() {
		gap, alive := firstRevokeWait, true
		for alive {
			alive = pause(m.life, gap)
			if done, again := m.revoke(context.WithoutCancel(m.life), target); done || !again {
				break
			}
			gap = min(2*gap, maxRevokeWait)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.revoking--
	})
}

// revokeUnsaved revokes a link that could not be written before the daemon ends: nobody could use or revoke it later.
func (m *Manager) revokeUnsaved() {
	if m.Unsaved == nil {
		return
	}
	if l, ok := m.Unsaved.Unsaved(); ok {
		done, _ := m.revoke(context.Background(), backend.Target{BaseURL: l.BackendURL, Bearer: l.AuthToken.Reveal()})
		m.Log.Warn("the link was never written to auth.json and ends with the daemon", "revoked", done)
	}
}

// dashboardOf is the page for people of a backend; empty for an embedded one that does not run.
func (m *Manager) dashboardOf(ctx context.Context, backendURL string) string {
	if !strings.HasPrefix(backendURL, backend.EmbeddedURL) {
		return strings.TrimRight(backendURL, "/") + dashboardPath
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, address, err := m.Embedder.Embedded(ctx)
	if err != nil {
		return ""
	}
	return address + dashboardPath
}

// current is the link, whichever backend minted it.
func (m *Manager) current() account.Link {
	l := m.Accounts.For("")
	if l.State == account.OtherBackend {
		l = m.Accounts.For(l.BackendURL)
	}
	return l
}

// rival is the live link that a link to an account at a backend would replace; ok is false when there is none. An empty
// accountID stands for an account that is not known yet. The rival's own backend is asked whether it still honours it:
// a link that was revoked there stands in nobody's way.
func (m *Manager) rival(ctx context.Context, minted, accountID string) (l account.Link, ok bool) {
	l = m.Accounts.For(minted)
	if l.State != account.OtherBackend && (accountID == "" || l.AccountID == accountID) {
		return account.Link{}, false
	}
	if l = m.current(); !l.Linked() {
		return account.Link{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, revokeWait)
	defer cancel()
	m.verify(ctx, backend.Target{BaseURL: l.BackendURL, Bearer: l.AuthToken.Reveal()})
	l = m.current()
	return l, l.Linked()
}

// rivalAt is the live link of another backend than the one at address.
func (m *Manager) rivalAt(ctx context.Context, address string) (account.Link, bool) {
	if m.Accounts.For(address).State != account.OtherBackend {
		return account.Link{}, false
	}
	return m.rival(ctx, address, "")
}

// conflict is the refusal to replace a live link without the person's word.
func conflict(rival account.Link) *backend.Problem {
	return &backend.Problem{Code: CodeLinkConflict,
		Message: "this machine is linked to account " + rival.AccountID + " at " + backend.DisplayName(rival.BackendURL) + ", and that link was not replaced",
		FixHint: "Ask the person. To replace the link they run `servicectl login --replace` in a terminal; to keep it, change nothing."}
}
