// Package limit limits attempts per network address, and concurrent calls per account or address. It counts in this
// process only; limits that apply across replicas belong in the store.
package limit

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxCallers limits the memory of one Limiter.
const maxCallers = 10_000

// Limiter allows each caller a number of attempts per minute. It treats an IPv6 /64 network as one caller, because all
// of its addresses usually have one owner.
type Limiter struct {
	perMinute int
	now       func() time.Time
	mu        sync.Mutex
	callers   map[string]*rate.Limiter
}

// New returns a limiter that allows perMinute attempts per minute, and as many in a burst.
func New(perMinute int, now func() time.Time) *Limiter {
	return &Limiter{perMinute: max(1, perMinute), now: now, callers: map[string]*rate.Limiter{}}
}

// Take spends one attempt and returns 0. If none is left, it returns the time until the next one is available.
func (l *Limiter) Take(address string) time.Duration { return l.TakeN(address, 1) }

// TakeN spends n attempts and returns 0. If fewer than n are left, it spends none and returns the wait, like Take. n
// must not exceed the burst.
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

// Spent reports whether no attempt is left. It spends none.
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

// forget deletes callers that have all their attempts left. If there are none, it deletes a random tenth of the
// callers, so that a flood of addresses cannot reset all counts at once.
func (l *Limiter) forget() {
	for key, c := range l.callers {
		if c.TokensAt(l.now()) >= float64(l.perMinute) {
			delete(l.callers, key)
		}
	}
	for key := range l.callers { // the iteration order of a map is random enough
		if len(l.callers) <= maxCallers*9/10 {
			return
		}
		delete(l.callers, key)
	}
}

// Caller returns the caller that an address belongs to.
func Caller(address string) string { return network(address, 32, 64) }

// Network returns the network that an address belongs to: an IPv4 /24 or an IPv6 /48. An attacker may control all
// addresses of such a network.
func Network(address string) string { return network(address, 24, 48) }

// network returns the network of an address, with the prefix length bits4 or bits6. It returns a network of a single
// address, or text that is not an address, unchanged.
func network(address string, bits4, bits6 int) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	bits := bits6
	if ip = ip.Unmap(); ip.Is4() {
		bits = bits4
	}
	prefix, err := ip.Prefix(bits)
	if err != nil || prefix.IsSingleIP() {
		return address
	}
	return prefix.String()
}
