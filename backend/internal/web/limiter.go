package web

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	signInsPerMinute    = 20    // attempts to sign in or up, per address
	wrongCodesPerMinute = 10    // unknown, expired or used user codes looked at, per address
	maxAddresses        = 10000 // addresses remembered by one limiter
)

// limiter counts per address. It is local to this process: what must hold across replicas belongs into the store.
type limiter struct {
	mu        sync.Mutex
	perMinute int
	now       func() time.Time
	addresses map[string]*rate.Limiter
}

func newLimiter(perMinute int, now func() time.Time) *limiter {
	return &limiter{perMinute: perMinute, now: now, addresses: map[string]*rate.Limiter{}}
}

// take spends one attempt and says whether there was one left.
func (l *limiter) take(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(address).AllowN(l.now(), 1)
}

// spent says whether no attempt is left, without spending one.
func (l *limiter) spent(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(address).TokensAt(l.now()) < 1
}

func (l *limiter) of(address string) *rate.Limiter {
	if a, ok := l.addresses[address]; ok {
		return a
	}
	if len(l.addresses) >= maxAddresses {
		l.forgetIdle()
	}
	every := rate.Every(time.Minute / time.Duration(l.perMinute))
	a := rate.NewLimiter(every, l.perMinute)
	l.addresses[address] = a
	return a
}

// forgetIdle drops the addresses that have all attempts left; if none is idle it drops all, which errs on the side of
// letting people in.
func (l *limiter) forgetIdle() {
	for address, a := range l.addresses {
		if a.TokensAt(l.now()) >= float64(l.perMinute) {
			delete(l.addresses, address)
		}
	}
	if len(l.addresses) >= maxAddresses {
		clear(l.addresses)
	}
}
