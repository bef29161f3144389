// Package limit counts attempts by address, in this process only; limits across replicas belong into the store. It does
// not know what is attempted.
package limit

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxCallers bounds the memory of one Limiter.
const maxCallers = 10_000

// Limiter allows each caller a number of attempts per minute. An IPv6 /64 is one caller: its owner has all of its
// addresses.
type Limiter struct {
	perMinute int
	now       func() time.Time
	mu        sync.Mutex
	callers   map[string]*rate.Limiter
}

// New returns a limiter; perMinute is also the burst.
func New(perMinute int, now func() time.Time) *Limiter {
	return &Limiter{perMinute: max(1, perMinute), now: now, callers: map[string]*rate.Limiter{}}
}

// Take spends one attempt and returns 0, or returns how long the caller has to wait for the next one.
func (l *Limiter) Take(address string) time.Duration { return l.TakeN(address, 1) }

// TakeN is Take for n attempts at once: all or none. n is at most the burst.
func (l *Limiter) TakeN(address string, n int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	reservation := l.of(address).ReserveN(now, n)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// Spent reports whether no attempt is left, without spending one.
func (l *Limiter) Spent(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.callers[Caller(address)]
	return known && c.TokensAt(l.now()) < 1
}

func (l *Limiter) of(address string) *rate.Limiter {
	key := Caller(address)
	if c, ok := l.callers[key]; ok {
		return c
	}
	if len(l.callers) >= maxCallers {
		l.forget()
	}
	c := rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.perMinute)
	l.callers[key] = c
	return c
}

// forget deletes callers that have all attempts left. If none is idle, it deletes a random tenth, so that a flood of
// addresses cannot reset everybody's count at once.
func (l *Limiter) forget() {
	for key, c := range l.callers {
		if c.TokensAt(l.now()) >= float64(l.perMinute) {
			delete(l.callers, key)
		}
	}
	for key := range l.callers { // the order of a map is random enough
		if len(l.callers) <= maxCallers*9/10 {
			return
		}
		delete(l.callers, key)
	}
}

// Caller returns the caller that an address belongs to.
func Caller(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
