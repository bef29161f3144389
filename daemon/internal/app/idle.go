package app

import "time"

// idleness tells when a daemon has had nothing to do for limit; 0 means never.
type idleness struct {
	since time.Time
	asked time.Time
	calls int64
	limit time.Duration
}

// over takes what is known for free, and adapters, which costs a call and is asked a few times per limit only.
func (i *idleness) over(now time.Time, calls int64, busy bool, adapters func() bool) bool {
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
