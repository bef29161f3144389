package link

import (
	"context"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

// Limits on revoking tokens that are no longer needed.
const (
	// revokeWait is how long the user waits for the revocation.
	revokeWait = 3 * time.Second
	// maxRevoking is the maximum number of tokens kept for retries.
	maxRevoking     = 16
	firstRevokeWait = 5 * time.Second
	maxRevokeWait   = 5 * time.Minute
)

// dashboardPath is the path of the page on which users revoke links.
const dashboardPath = "/account"

// Revoke asks the backend of a replaced or deleted link to revoke its token, for at most revokeWait. If that fails,
// Revoke keeps the token in memory, retries until the daemon exits, and returns the page on which the user can revoke
// the token. Otherwise it returns "".
func (m *Manager) Revoke(ctx context.Context, l account.Link) (page string) {
	if l.AuthToken == "" || l.State == account.Revoked || l.State == account.Expired {
		return ""
	}
	target := backend.Target{BaseURL: l.BackendURL, Bearer: l.AuthToken.Reveal()}
	done, retry := m.revoke(ctx, target)
	if done {
		return ""
	}
	if retry {
		m.keepRevoking(target)
	}
	if page = m.dashboardOf(ctx, l.BackendURL); page == "" {
		page = "the account page of the embedded backend (see `servicectl status`)"
	}
	return page
}

// revoke makes one attempt. retry reports whether another attempt may help.
func (m *Manager) revoke(ctx context.Context, target backend.Target) (done, retry bool) {
	ctx, cancel := context.WithTimeout(ctx, revokeWait)
	defer cancel()
	err := m.Backend.RevokeLink(ctx, target)
	p := asProblem(err)
	switch {
	case err == nil, p.Code == problem.CodeAuthRequired: // the backend no longer accepts it
		return true, false
	case ctx.Err() != nil, isTransient(p):
		return false, true
	}
	m.Log.Warn("failed to revoke a token", "err", err)
	return false, false
}

// keepRevoking retries at growing intervals, and once more when the daemon stops.
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
			if done, retry := m.revoke(context.WithoutCancel(m.life), target); done || !retry {
				break
			}
			gap = min(2*gap, maxRevokeWait)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.revoking--
	})
}

// revokeUnsaved revokes a link that could not be written before the daemon stops, because the link cannot be used or
// revoked later.
func (m *Manager) revokeUnsaved() {
	if l, ok := m.Accounts.Unsaved(); ok {
		done, _ := m.revoke(context.Background(), backend.Target{BaseURL: l.BackendURL, Bearer: l.AuthToken.Reveal()})
		m.Log.Warn("link was never written to auth.json and is lost when the daemon exits", "revoked", done)
	}
}

// dashboardOf returns the URL of a backend's dashboard, or "" for an embedded backend that is not running.
func (m *Manager) dashboardOf(ctx context.Context, backendURL string) string {
	if !strings.HasPrefix(backendURL, backend.EmbeddedURL) {
		return strings.TrimRight(backendURL, "/") + dashboardPath
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, address, err := m.Backend.Embedded(ctx)
	if err != nil {
		return ""
	}
	return address + dashboardPath
}

// current returns the link, regardless of the backend that issued it.
func (m *Manager) current() account.Link {
	l := m.Accounts.For("")
	if l.State == account.OtherBackend {
		l = m.Accounts.For(l.BackendURL)
	}
	return l
}

// conflictingLink returns the live link that linking an account at a backend would replace; ok is false if there is
// none. An empty accountID means that the account is unknown. conflictingLink asks the link's backend whether the link
// is still valid, because a revoked link does not conflict.
func (m *Manager) conflictingLink(ctx context.Context, issuer, accountID string) (l account.Link, ok bool) {
	l = m.Accounts.For(issuer)
	if l.State != account.OtherBackend && (accountID == "" || l.AccountID == accountID) {
		return account.Link{}, false
	}
	if l = m.current(); !l.Linked() {
		return account.Link{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, revokeWait)
	defer cancel()
	_, _ = m.verify(ctx, backend.Target{BaseURL: l.BackendURL, Bearer: l.AuthToken.Reveal()})
	l = m.current()
	return l, l.Linked()
}

// conflictingLinkAt returns the live link if another backend than the one at address issued it.
func (m *Manager) conflictingLinkAt(ctx context.Context, address string) (account.Link, bool) {
	if m.Accounts.For(address).State != account.OtherBackend {
		return account.Link{}, false
	}
	return m.conflictingLink(ctx, address, "")
}
