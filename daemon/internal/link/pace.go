package link

import (
	"net/http"
	"time"

	"github.com/service-dev/service/internal/problem"
)

const (
	failureStep = 2 * time.Second
	// maxFailureGap limits how much of a raised interval is kept after a failure; maxFailures such gaps must fit into
	// 45 s.
	maxFailureGap = 8 * time.Second
)

// backendInterval clamps the interval d that the backend requested: 5 s if it is missing or too short, at most 600 s.
func backendInterval(d time.Duration) time.Duration {
	if d < time.Second {
		return DefaultInterval
	}
	return min(d, MaxWait)
}

// pollGap returns the time until the next poll. It is slightly longer than the interval, because this machine's clock
// may run faster than the backend's. After the backend has found a poll too early, it is considerably longer, so that
// one increase suffices for a clock that is up to 30 % fast.
func (f *flow) pollGap() time.Duration {
	if f.intervalRaised {
		return f.interval + f.interval*35/100
	}
	return f.interval + f.interval/20
}

// scheduleNext records a response and returns the time until the next poll. A backend has no answer slow_down: after a
// poll that was too early, its responses have a longer interval.
func (m *Manager) scheduleNext(f *flow, interval time.Duration, note string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := backendInterval(interval)
	f.intervalRaised = f.intervalRaised || f.count > 0 && next > f.interval
	f.interval = next
	f.answerLost = false // the code is still unused, so no approval was lost
	m.notifyWaiters(f, note)
	return max(f.pollGap(), f.minInterval)
}

// scheduleRetry records a poll without a response and returns the time until the next poll. It honours the
// backend's Retry-After.
func (m *Manager) scheduleRetry(f *flow, failures int, p *problem.Error) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.HTTPStatus == 0 || p.HTTPStatus >= http.StatusInternalServerError {
		f.answerLost = true
	}
	m.notifyWaiters(f, "no usable response from the backend; trying again: "+p.Message)
	gap := min(max(f.pollGap(), f.minInterval), maxFailureGap)
	return max(gap, min(time.Duration(failures)*failureStep, maxFailureGap), min(p.RetryAfter, MaxWait))
}
