package app

import "time"

// idleTimer determines when a daemon has been idle for the duration limit. A limit of 0 disables it.
type idleTimer struct {
	since time.Time
	asked time.Time
	calls int64
	limit time.Duration
}

// over reports whether the daemon has been idle for limit. It calls adapters only a few times per limit, because each
// call involves another process.
func (i *idleTimer) over(now time.Time, calls int64, busy bool, adapters func() bool) bool {
	if busy || calls != i.calls {
		i.since, i.calls = now, calls
		return false
	}
	if i.limit <= 0 || now.Sub(i.since) < i.limit/4 {
		return false
	}
	quiet := now.Sub(i.since) >= i.limit
	if !quiet && now.Sub(i.asked) < i.limit/4 {
		return false
	}
	i.asked = now
	if adapters() {
		i.since = now
		return false
	}
	return quiet
}
