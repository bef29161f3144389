package link

import (
	"context"
	"net/http"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/proto/telemetry"
)

const (
	// maxFailures is the number of consecutive failures after which polling ends because the backend is unreachable.
	// With the gaps of pace.go, this takes 30 s.
	maxFailures = 6
	// unreachableAfter is the maximum duration of a series of slow failures; pollTimeout is the maximum duration of a
	// single poll.
	unreachableAfter = 42 * time.Second
	pollTimeout      = 10 * time.Second
	// overtime is how long a code is polled after it expires, because the backend accepts an approval for a short grace
	// period.
	overtime = 30 * time.Second
)

// ensurePolling starts the flow's poller unless it is running or the outcome is known.
func (m *Manager) ensurePolling(f *flow, interval time.Duration) error {
	m.mu.Lock()
	restarted := !f.finished.IsZero() && isRestartable(f.end.err)
	err := m.startPoller(f, interval, restarted)
	m.mu.Unlock()
	if restarted {
		m.initiated(f.who)
	}
	return err
}

// startPoller starts the poller. The caller holds m.mu.
func (m *Manager) startPoller(f *flow, interval time.Duration, restarted bool) error {
	if restarted { // the network failed, not the code, so a waiter may restart the flow
		f.finished, f.end = time.Time{}, newResult()
	}
	if !f.finished.IsZero() {
		return nil
	}
	f.minInterval = interval
	if f.polling {
		return nil
	}
	if m.closed || m.polling >= maxPolling {
		return busy()
	}
	ctx, stop := context.WithCancel(m.life)
	f.polling, f.stop = true, stop
	m.polling++
	m.pollers.Go(func() {
		defer stop()
		m.poll(ctx, f)
	})
	return nil
}

// poll polls the code of f until it is approved, denied or expired, or ctx ends.
func (m *Manager) poll(ctx context.Context, f *flow) {
	failures, since := 0, m.Now()
	for {
		if failures == 0 {
			since = m.Now()
		}
		answer, err := m.ask(ctx, f, since.Add(unreachableAfter))
		if m.stopped(ctx, f, err == nil && answer.Token != nil) {
			if err == nil && answer.Token != nil { // the token arrived after the deadline, and no other program has it
				m.Revoke(context.WithoutCancel(ctx), account.Link{
					AuthToken: account.Secret(answer.Token.AuthToken), BackendURL: f.target.BaseURL,
				})
			}
			m.finish(f, Outcome{}, aborted("the polling was stopped"), telemetry.OutcomePollingAborted)
			return
		}
		var gap time.Duration
		problem := asProblem(err)
		switch {
		case err == nil && answer.Token != nil:
			m.saveLink(context.WithoutCancel(ctx), f, *answer.Token)
			return
		case err == nil:
			failures = 0
			gap = m.scheduleNext(f, answer.PollInterval, "")
			m.supersede(ctx, f) // a link that could not be verified earlier may supersede the flow now
		case problem.HTTPStatus == http.StatusTooManyRequests:
			failures = 0 // a response shows that the backend is reachable
			gap = m.scheduleRetry(f, 1, problem)
		case isTransient(problem) && failures+1 < maxFailures && m.Now().Before(since.Add(unreachableAfter)):
			failures++
			gap = m.scheduleRetry(f, failures, problem)
		default:
			m.refused(f, problem, failures+1)
			return
		}
		if m.Now().Add(gap).After(f.expires.Add(overtime)) {
			m.finish(f, Outcome{}, expired(), telemetry.OutcomeCodeExpired)
			return
		}
		if !pause(ctx, gap) {
			m.finish(f, Outcome{}, aborted("the polling was stopped"), telemetry.OutcomePollingAborted)
			return
		}
	}
}

// ask makes one poll, which ends at until at the latest. It makes the call for the caller that requested the code,
// because the hint in an error depends on that caller's variables.
func (m *Manager) ask(ctx context.Context, f *flow, until time.Time) (backend.Poll, error) {
	ctx, cancel := context.WithTimeout(caller.With(ctx, f.who), min(max(until.Sub(m.Now()), time.Second), pollTimeout))
	defer cancel()
	return m.Backend.PollDeviceToken(ctx, f.target, f.code.DeviceCode)
}

// stopped reports whether the polling was stopped. If token is set, a token was received, and this is the last chance
// to stop before the link is saved.
func (m *Manager) stopped(ctx context.Context, f *flow, token bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return true
	}
	f.saving = token
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// notifyWaiters counts a poll and wakes the waiters. The caller holds m.mu.
func (m *Manager) notifyWaiters(f *flow, note string) {
	f.count++
	f.note = note
	close(f.polled)
	f.polled = make(chan struct{})
}

// saveLink saves the link. Waiters get the outcome once the file is written and the token is verified. Without the
// user's consent, saveLink keeps a live link to another account or backend and revokes the new token.
func (m *Manager) saveLink(ctx context.Context, f *flow, t backend.Token) {
	m.saving.Lock()
	defer m.saving.Unlock()
	issuer, err := m.backendIDAt(ctx, f.target.BaseURL)
	if err != nil {
		m.Log.Warn("failed to read the embedded backend's id", "err", err)
		issuer = f.target.BaseURL
	}
	l := account.Link{State: account.Linked, AuthToken: account.Secret(t.AuthToken), AccountID: t.AccountID,
		LinkedAt:  t.LinkedAt,
		ExpiresAt: t.ExpiresAt, Scope: scope, BackendURL: issuer}
	if !f.replace {
		if other, ok := m.conflictingLink(ctx, issuer, t.AccountID); ok {
			m.Revoke(ctx, l)
			m.finish(f, Outcome{}, conflict(other), telemetry.OutcomePollingAborted)
			return
		}
	}
	file, revokeURL := m.save(ctx, l)
	fresh := m.verifyFresh(ctx, f, t)
	m.mu.Lock()
	f.count++
	count := f.count
	m.mu.Unlock()
	out := Outcome{AccountID: t.AccountID, Tier: t.Tier, LinkedAt: t.LinkedAt, ExpiresAt: t.ExpiresAt, File: file,
		PollCount: count, BackendURL: issuer, RevokeURL: revokeURL}
	if f.exclusive {
		out.Email = fresh.Email
	}
	m.finish(f, out, nil, telemetry.OutcomeSuccess)
}

// save makes l the current link. It revokes the replaced token once the file no longer contains it.
func (m *Manager) save(ctx context.Context, l account.Link) (file AuthFile, revokeURL string) {
	before := m.current()
	file = AuthFile{Path: m.Accounts.Path(), Written: true}
	if err := m.Accounts.Save(l); err != nil {
		m.Log.Error("failed to save the link", "err", err)
		file.Written, file.Error = false, err.Error()
		return file, ""
	}
	if before.AuthToken == l.AuthToken {
		return file, ""
	}
	return file, m.Revoke(ctx, before)
}

// verifyFresh verifies a new token, so that waiters learn whether it works, and returns its account. The account is
// empty if the backend did not respond.
func (m *Manager) verifyFresh(ctx context.Context, f *flow, t backend.Token) backend.Account {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	a, _ := m.verify(ctx, backend.Target{BaseURL: f.target.BaseURL, Bearer: t.AuthToken, Requester: f.target.Requester})
	return a
}
