package link

import (
	"context"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/telemetry"
)

// cancelTimeout bounds the request that cancels an abandoned code.
const cancelTimeout = 5 * time.Second

// supersedeAll ends every flow whose backend has a live link by now.
func (m *Manager) supersedeAll(ctx context.Context) {
	m.mu.Lock()
	var open []*flow
	for _, f := range m.flows {
		if f.supersedable() {
			open = append(open, f)
		}
	}
	m.mu.Unlock()
	for _, f := range open {
		m.supersede(ctx, f)
	}
}

// supersedable reports whether another link makes the flow unnecessary: it has no outcome yet, and no token of its own
// is being saved. A login is never superseded, because the person asked for it. m.mu is held.
func (f *flow) supersedable() bool { return f.finished.IsZero() && !f.saving && !f.exclusive }

// supersede ends a flow with success if auth.json holds a live link for its backend, however it got there, and cancels
// the flow's code. A link that the backend no longer honours does not count.
func (m *Manager) supersede(ctx context.Context, f *flow) {
	m.mu.Lock()
	open := f.supersedable()
	m.mu.Unlock()
	if !open || !m.Accounts.For(f.target.BaseURL).Linked() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	issuer, err := m.backendIDAt(ctx, f.target.BaseURL)
	if err != nil {
		m.Log.Warn("failed to read the embedded backend's id", "err", err)
		return
	}
	l := m.Accounts.For(issuer)
	if l.Linked() {
		_ = m.verify(ctx, backend.Target{BaseURL: issuer, Bearer: l.AuthToken.Reveal(), Requester: f.target.Requester})
		l = m.Accounts.For(issuer)
	}
	if l.Linked() && m.finishWith(f, l) {
		m.cancelCode(f)
	}
}

// finishWith ends a flow with a link that was made by other means, unless the flow got an outcome or a token
// meanwhile.
func (m *Manager) finishWith(f *flow, l account.Link) bool {
	m.mu.Lock()
	if !f.supersedable() {
		m.mu.Unlock()
		return false
	}
	out := Outcome{AccountID: l.AccountID, Tier: l.Tier, LinkedAt: l.LinkedAt, ExpiresAt: l.ExpiresAt,
		File: m.fileOf(l), PollCount: f.count, BackendURL: l.BackendURL}
	end := m.setOutcome(f, out, nil)
	m.mu.Unlock()
	m.announce(f, end, telemetry.OutcomePollingAborted)
	return true
}

// fileOf reports whether auth.json holds the link.
func (m *Manager) fileOf(l account.Link) AuthFile {
	file := AuthFile{Path: m.Accounts.Path(), Written: true}
	if m.Unsaved != nil {
		if _, unsaved := m.Unsaved.Unsaved(); unsaved {
			file.Written, file.Error = false, l.Detail
		}
	}
	return file
}

// cancelCode asks the backend, in the background, to cancel the code of an abandoned flow: its page then says so, and a
// poll that is under way leaves no token behind.
func (m *Manager) cancelCode(f *flow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.pollers.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.life), cancelTimeout)
		defer cancel()
		if err := m.Backend.CancelDeviceCode(ctx, f.target, f.code.DeviceCode); err != nil {
			m.Log.Debug("failed to cancel an abandoned device code", "err", err)
		}
	})
}
