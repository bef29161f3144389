package api

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxAddresses bounds the limiter's memory; when it is full, those who waited longest are forgotten together.
const maxAddresses = 10_000

// limiter counts by address; IPv6 addresses of one /64 are one caller.
type limiter struct {
	perMinute int
	now       func() time.Time
	mu        sync.Mutex
	callers   map[string]*rate.Limiter
}

func newLimiter(perMinute int, now func() time.Time) *limiter {
	return &limiter{perMinute: max(1, perMinute), now: now, callers: map[string]*rate.Limiter{}}
}

// take gives 0 when the caller may go on, else how long it has to wait.
func (l *limiter) take(ip string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := group(ip)
	caller, ok := l.callers[key]
	if !ok {
		if len(l.callers) >= maxAddresses {
			clear(l.callers)
		}
		caller = rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.perMinute)
		l.callers[key] = caller
	}
	now := l.now()
	reservation := caller.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

func group(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Unmap().Is4() {
		return ip
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return ip
	}
	return prefix.String()
}
