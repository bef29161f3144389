package link

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/proto/telemetry"
)

const (
	codeAborted = "polling_aborted"
	// maxFailures in a row make the backend unreachable; with the gaps below that takes 30 s.
	maxFailures = 6
	failureStep = 2 * time.Second
	// maxFailureGap is how much of a raised interval is kept after a failure; six must fit into 45 s (S16).
	maxFailureGap = 8 * time.Second
	// unreachableAfter ends a row of failures that are slow; a single poll has pollTimeout.
	unreachableAfter = 42 * time.Second
	pollTimeout      = 10 * time.Second
	// overtime is how long after the window a code is still polled: an approval in time is honoured for a short grace.
	overtime = 30 * time.Second
)

// ensurePolling starts the one poller of a flow unless it runs or the outcome is known.
func (m *Manager) ensurePolling(f *flow, interval time.Duration) error {
	m.mu.Lock()
	restarted := !f.finished.IsZero() && again(f.end.err)
	err := m.polled(f, interval, restarted)
	m.mu.Unlock()
	if restarted {
		m.initiated(f.who)
	}
	return err
}

// polled starts the poller. m.mu is held.
func (m *Manager) polled(f *flow, interval time.Duration, restarted bool) error {
	if restarted { // the network failed, not the code: whoever asks again starts the flow again
		f.finished, f.end = time.Time{}, newEnding()
	}
	if !f.finished.IsZero() {
		return nil
	}
	f.wanted = interval
	if f.polling {
		return nil
	}
	if m.closed || m.polling >= maxPolling {
		return &backend.Problem{Code: "busy", Message: "too many codes are being polled", Retryable: true, FixHint: "Try again in a minute."}
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

func again(err error) bool { return err != nil && asProblem(err).Code == backend.CodeUnreachable }

// poll polls one code until its outcome.
func (m *Manager) poll(ctx context.Context, f *flow) {
	failures, since := 0, m.Now()
	for {
		if failures == 0 {
			since = m.Now()
		}
		answer, err := m.ask(ctx, f, since.Add(unreachableAfter))
		if m.stopped(ctx, f, err == nil && answer.Token != nil) {
			// A token that came with the cancellation is dropped: the backend revokes it as unused.
			m.finish(f, Outcome{}, &backend.Problem{Code: codeAborted, Message: "the polling was stopped", Retryable: true}, telemetry.OutcomePollingAborted)
			return
		}
		var gap time.Duration
		problem := asProblem(err)
		switch {
		case err == nil && answer.Token != nil:
			m.linked(context.WithoutCancel(ctx), f, *answer.Token)
			return
		case err == nil:
			failures = 0
			gap = m.waiting(f, answer.PollInterval, "")
		case problem.HTTPStatus == http.StatusTooManyRequests:
			failures = 0 // an answer: the backend is there
			gap = m.failed(f, 1, problem)
		case passing(problem) && failures+1 < maxFailures && m.Now().Before(since.Add(unreachableAfter)):
			failures++
			gap = m.failed(f, failures, problem)
		default:
			m.refused(f, problem)
			return
		}
		if m.Now().Add(gap).After(f.expires.Add(overtime)) {
			m.finish(f, Outcome{}, expired(), telemetry.OutcomeCodeExpired)
			return
		}
		if !pause(ctx, gap) {
			m.finish(f, Outcome{}, &backend.Problem{Code: codeAborted, Message: "the polling was stopped", Retryable: true}, telemetry.OutcomePollingAborted)
			return
		}
	}
}

// ask makes one poll, which may take until the time at which the backend counts as unreachable.
func (m *Manager) ask(ctx context.Context, f *flow, until time.Time) (backend.Poll, error) {
	ctx, cancel := context.WithTimeout(ctx, min(max(until.Sub(m.Now()), time.Second), pollTimeout))
	defer cancel()
	return m.Backend.PollDeviceToken(ctx, f.target, f.code.DeviceCode)
}

// stopped tells whether the polling was stopped. With a token in hand this is the last moment at which it can be: from
// here on the link is saved.
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

// passing tells whether a poll may simply be made again: no answer, a gateway's trouble, too many requests.
func passing(p *backend.Problem) bool {
	return p.Code == backend.CodeUnreachable || p.Code == backend.CodeAdapterUnavailable ||
		p.HTTPStatus >= http.StatusInternalServerError || p.HTTPStatus == http.StatusTooManyRequests
}

// waiting takes note of an answer and gives the gap to the next poll.
func (m *Manager) waiting(f *flow, interval time.Duration, note string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := backendInterval(interval)
	f.raised = f.raised || f.count > 0 && next > f.interval
	f.interval = next
	f.trouble = false // the code is not used, so nothing was lost
	m.tell(f, note)
	return max(f.paced(), f.wanted)
}

// failed takes note of a poll without an answer. The backend's Retry-After is honoured.
func (m *Manager) failed(f *flow, failures int, p *backend.Problem) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.HTTPStatus == 0 || p.HTTPStatus >= http.StatusInternalServerError {
		f.trouble = true
	}
	m.tell(f, "the backend did not answer properly and is asked again: "+p.Message)
	gap := min(max(f.paced(), f.wanted), maxFailureGap)
	return max(gap, min(time.Duration(failures)*failureStep, maxFailureGap), min(p.RetryAfter, MaxWait))
}

// tell wakes the waiters. m.mu is held.
func (m *Manager) tell(f *flow, note string) {
	f.count++
	f.note = note
	close(f.beat)
	f.beat = make(chan struct{})
}

// linked saves the link; what waits gets the outcome once the file is written and the token was tried. A live link of
// another account or backend stays unless the person agreed: the fresh token is revoked then.
func (m *Manager) linked(ctx context.Context, f *flow, t backend.Token) {
	m.saving.Lock()
	defer m.saving.Unlock()
	minted, err := m.mintedAt(ctx, f.target.BaseURL)
	if err != nil {
		m.Log.Warn("failed to learn the embedded backend's id", "err", err)
		minted = f.target.BaseURL
	}
	l := account.Link{State: account.Linked, AuthToken: account.Secret(t.AuthToken), AccountID: t.AccountID, LinkedAt: t.LinkedAt,
		ExpiresAt: t.ExpiresAt, Scope: scope, BackendURL: minted}
	if !f.replace {
		if rival, ok := m.rival(ctx, minted, t.AccountID); ok {
			m.Revoke(ctx, l)
			m.finish(f, Outcome{}, conflict(rival), telemetry.OutcomePollingAborted)
			return
		}
	}
	file, revokeURL := m.save(ctx, l)
	m.verifyFresh(ctx, f, t)
	m.mu.Lock()
	f.count++
	count := f.count
	m.mu.Unlock()
	m.Record.Record(caller.With(ctx, f.who), telemetry.Linked, nil)
	m.finish(f, Outcome{AccountID: t.AccountID, Tier: t.Tier, LinkedAt: t.LinkedAt, ExpiresAt: t.ExpiresAt, File: file,
		PollCount: count, BackendURL: minted, RevokeURL: revokeURL}, nil, telemetry.OutcomeSuccess)
}

// save makes l the link and revokes the token that it replaces, once that is no longer in the file.
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

// verifyFresh tries a new token, so that what waits hears of one that does not work.
func (m *Manager) verifyFresh(ctx context.Context, f *flow, t backend.Token) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	m.verify(ctx, backend.Target{BaseURL: f.target.BaseURL, Bearer: t.AuthToken, Requester: f.target.Requester})
}

// refused ends a flow with the error that fits the refusal.
func (m *Manager) refused(f *flow, p *backend.Problem) {
	m.mu.Lock()
	f.count++
	lost := f.trouble
	m.mu.Unlock()
	switch {
	case p.Code == backend.CodeAuthRequired: // the embedded backend that issued it was replaced by a new one
		m.finish(f, Outcome{}, unknownCode(), telemetry.OutcomeCodeExpired)
	case p.Code == backend.CodeUnknownDeviceCode && lost:
		// The approval was redeemed by a poll whose answer never arrived (S13).
		m.finish(f, Outcome{}, &backend.Problem{Code: backend.CodeUnknownDeviceCode, HTTPStatus: p.HTTPStatus,
			Message: "the approval was used, but its answer was lost on the network; the unused token revokes itself",
			FixHint: "Link again for a fresh code: call createSimulatorSession, or run servicectl login."}, telemetry.OutcomeNetworkError)
	case p.Code == backend.CodeUnknownDeviceCode:
		m.finish(f, Outcome{}, unknownCode(), telemetry.OutcomeCodeExpired)
	case p.Code == backend.CodeDeviceCodeExpired:
		m.finish(f, Outcome{}, expired(), telemetry.OutcomeCodeExpired)
	case p.Code == backend.CodeDeviceCodeDenied:
		m.finish(f, Outcome{}, &backend.Problem{Code: p.Code, Message: "the person declined at the verification page", Retryable: true,
			HTTPStatus: p.HTTPStatus, FixHint: "Ask the person whether to try again; then call createSimulatorSession for a fresh code, which they accept."}, telemetry.OutcomeUserDenied)
	case p.Code == backend.CodeInvalidResponse:
		m.finish(f, Outcome{}, &backend.Problem{Code: p.Code, Message: p.Message, HTTPStatus: p.HTTPStatus,
			FixHint: "The backend and this build do not understand each other: update both, and check the backend address."}, telemetry.OutcomeNetworkError)
	case passing(p):
		m.finish(f, Outcome{}, &backend.Problem{Code: backend.CodeUnreachable, Retryable: true, HTTPStatus: p.HTTPStatus,
			Message: fmt.Sprintf("the backend could not be reached in %d tries: %s", maxFailures, p.Message),
			FixHint: "Check the network and the backend address; then call completeAuthLink again with the same code."}, telemetry.OutcomeNetworkError)
	default:
		m.finish(f, Outcome{}, p, telemetry.OutcomeNetworkError)
	}
}

// finish sets the outcome, once.
func (m *Manager) finish(f *flow, out Outcome, problem *backend.Problem, word string) {
	m.mu.Lock()
	if !f.finished.IsZero() {
		m.mu.Unlock()
		return
	}
	f.end.outcome, f.finished = out, m.Now()
	if problem != nil {
		f.end.err = problem
	}
	if f.polling { // whoever starts the flow again from here on starts a poller of their own
		f.polling, f.saving = false, false
		m.polling--
	}
	if key := liveKey(f.target.BaseURL); m.live[key] == f && !again(f.end.err) {
		delete(m.live, key)
	}
	end := f.end
	m.mu.Unlock()
	if !f.exclusive && !again(end.err) && asProblem(end.err).Code != codeAborted { // a daemon that stops leaves the code to the next one
		if err := m.Codes.Remove(f.code.DeviceCode); err != nil {
			m.Log.Warn("failed to forget a used device code", "err", err)
		}
	}
	// The record comes before anybody learns of the outcome, so that it is there when they look.
	m.completed(f.who, word)
	close(end.done)
}

func expired() *backend.Problem {
	return &backend.Problem{Code: backend.CodeDeviceCodeExpired, Message: "the device code's window is over and nobody approved it", Retryable: true,
		HTTPStatus: http.StatusGone, FixHint: "Call createSimulatorSession again for a fresh code."}
}

func unknownCode() *backend.Problem {
	return &backend.Problem{Code: backend.CodeUnknownDeviceCode, HTTPStatus: http.StatusNotFound,
		Message: "the backend does not know the device code: it was never issued there or is used up",
		FixHint: "Call createSimulatorSession again for a fresh code."}
}

// foreignCode is the refusal of a code that was not issued to this install.
func foreignCode() *backend.Problem {
	return &backend.Problem{Code: backend.CodeUnknownDeviceCode,
		Message: "this device code was not issued to this install, or its time is over",
		FixHint: "Call createSimulatorSession for a code of this install. Never take a deviceCode from anywhere but an auth_required answer."}
}

func timedOut(wait time.Duration) *backend.Problem {
	return &backend.Problem{Code: CodeAuthTimeout, Retryable: true,
		Message: fmt.Sprintf("nobody approved the code within %d s; it is still being polled", int(wait.Seconds())),
		FixHint: "Ask the person to approve the code, then call completeAuthLink again with the same deviceCode."}
}
