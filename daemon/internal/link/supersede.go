package link

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/telemetry"
)

const (
	// verifyLinkTimeout is the timeout for verifying a link that another program saved.
	verifyLinkTimeout = 5 * time.Second
	// cancelTimeout is the timeout for cancelling an abandoned code.
	cancelTimeout = 5 * time.Second
)

// supersedeAll ends every flow whose backend now has a live link. It verifies each link once and all of them
// concurrently, so that a backend that does not respond does not delay the others.
func (m *Manager) supersedeAll(ctx context.Context) {
	m.mu.Lock()
	open := map[string][]*flow{} // by the backend's address
	for _, f := range m.flows {
		if f.supersedable() {
			open[f.target.BaseURL] = append(open[f.target.BaseURL], f)
		}
	}
	m.mu.Unlock()
	var verifying sync.WaitGroup
	for address, flows := range open {
		verifying.Go(func() {
			if l, ok := m.verifiedLinkAt(ctx, address); ok {
				for _, f := range flows {
					m.finishWith(f, l)
				}
			}
		})
	}
	verifying.Wait()
}

// supersedable reports whether another link makes the flow unnecessary: the flow has no outcome yet, and its own token
// is not being saved. A login is not superseded, because the user requested it. The caller holds m.mu.
func (f *flow) supersedable() bool { return f.finished.IsZero() && !f.saving && !f.exclusive }

// supersede ends a flow with success if auth.json contains a link that the flow's backend accepts, regardless of the
// program that wrote it.
func (m *Manager) supersede(ctx context.Context, f *flow) {
	m.mu.Lock()
	open := f.supersedable()
	m.mu.Unlock()
	if !open {
		return
	}
	if l, ok := m.verifiedLinkAt(ctx, f.target.BaseURL); ok {
		m.finishWith(f, l)
	}
}

// verifiedLinkAt returns the link to the backend at address if the backend currently accepts it. It returns false if
// the backend does not respond, because the link may have been revoked.
func (m *Manager) verifiedLinkAt(ctx context.Context, address string) (account.Link, bool) {
	if !m.Accounts.For(address).Linked() {
		return account.Link{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, verifyLinkTimeout)
	defer cancel()
	issuer, err := m.backendIDAt(ctx, address)
	if err != nil {
		m.Log.Warn("failed to read the embedded backend's id", "err", err)
		return account.Link{}, false
	}
	l := m.Accounts.For(issuer)
	if !l.Linked() {
		return account.Link{}, false
	}
	if _, err := m.verify(ctx, backend.Target{BaseURL: issuer, Bearer: l.AuthToken.Reveal()}); err != nil {
		m.Log.Debug("failed to verify a link that could end a wait", "err", err)
		return account.Link{}, false
	}
	verified := m.Accounts.For(issuer)
	// If the link was replaced in the meantime, a separate notification reports that change.
	return verified, verified.Linked() && verified.AuthToken == l.AuthToken
}

// finishWith ends a flow with a link that another flow or program saved, and cancels the flow's code. It does nothing
// if the flow has received an outcome or a token in the meantime.
func (m *Manager) finishWith(f *flow, l account.Link) {
	m.mu.Lock()
	if !f.supersedable() {
		m.mu.Unlock()
		return
	}
	out := Outcome{AccountID: l.AccountID, Tier: l.Tier, LinkedAt: l.LinkedAt, ExpiresAt: l.ExpiresAt,
		File: m.fileOf(l), PollCount: f.count, BackendURL: l.BackendURL}
	end := m.setOutcome(f, out, nil)
	m.mu.Unlock()
	m.announce(f, end, telemetry.OutcomeSuccess)
	m.cancelCode(f)
}

// fileOf reports whether auth.json contains the current link.
func (m *Manager) fileOf(l account.Link) AuthFile {
	file := AuthFile{Path: m.Accounts.Path(), Written: true}
	if _, unsaved := m.Accounts.Unsaved(); unsaved {
		file.Written, file.Error = false, l.Detail
	}
	return file
}

// cancelCode asks the backend to cancel the code of an abandoned flow, without waiting. The code's page then reports
// that the request was cancelled, and a poll in progress creates no token.
func (m *Manager) cancelCode(f *flow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || f.cancelled {
		return
	}
	f.cancelled = true
	m.pollers.Go(func() { m.requestCancel(f) })
}

// cancelLogins cancels the codes of logins that the stopping daemon interrupts, because no one will poll them again. It
// waits for the responses. Agents' codes are kept for the next daemon.
func (m *Manager) cancelLogins() {
	m.mu.Lock()
	var open []*flow
	for _, f := range m.flows {
		if f.exclusive && !f.cancelled && (f.finished.IsZero() || asProblem(f.end.err).Code == problem.CodePollingAborted) {
			f.cancelled = true
			open = append(open, f)
		}
	}
	m.mu.Unlock()
	var cancelling sync.WaitGroup
	for _, f := range open {
		cancelling.Go(func() { m.requestCancel(f) })
	}
	cancelling.Wait()
}

func (m *Manager) requestCancel(f *flow) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.life), cancelTimeout)
	defer cancel()
	if err := m.Backend.CancelDeviceCode(ctx, f.target, f.code.DeviceCode); err != nil {
		m.Log.Debug("failed to cancel an abandoned device code", "err", err)
	}
}
