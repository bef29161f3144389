package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestLimiter_CountsCallersSeparately(t *testing.T) {
	now := time.Now()
	l := New(3, func() time.Time { return now })
	for i, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"} {
		if wait := l.Take(address); wait != 0 {
			t.Errorf("attempt %d: got a wait of %s, want none", i, wait)
		}
	}
	if wait := l.Take("192.0.2.1"); wait <= 0 || wait > 20*time.Second || !l.Spent("192.0.2.1") {
		t.Errorf("fourth attempt: got a wait of %s, want up to 20 s", wait)
	}
	if known := len(l.callers); l.Spent("192.0.2.3") || len(l.callers) != known {
		t.Error("Spent added its address to the callers")
	}
	if l.Spent("192.0.2.2") || l.Take("192.0.2.2") != 0 {
		t.Error("another address has no attempts left")
	}
	now = now.Add(21 * time.Second)
	if l.Take("192.0.2.1") != 0 {
		t.Error("an attempt after the wait was refused")
	}
	for i := range 3 {
		l.Take(fmt.Sprintf("2001:db8::%d", i))
	}
	if !l.Spent("2001:db8::ffff") || l.Spent("2001:db8:0:1::1") {
		t.Error("want each /64 network to count as one caller")
	}
}

func TestLimiter_FloodKeepsOtherCounts(t *testing.T) {
	now := time.Now()
	l := New(1, func() time.Time { return now })
	kept := 0
	for i := range 3 * maxCallers {
		l.Take(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	for i := 2 * maxCallers; i < 3*maxCallers; i++ {
		if l.Spent(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)) {
			kept++
		}
	}
	// The limiter drops random callers, so about half of the last ones remain.
	if len(l.callers) > maxCallers || kept < maxCallers/4 {
		t.Errorf("got %d callers, %d of them among the last ones, want at most maxCallers and at least a quarter of it",
			len(l.callers), kept)
	}
}

func TestTakeN_AllOrNone(t *testing.T) {
	now := time.Now()
	l := New(60, func() time.Time { return now })
	if l.TakeN("192.0.2.1", 50) != 0 || l.TakeN("192.0.2.1", 20) <= 0 || l.TakeN("192.0.2.1", 10) != 0 ||
		l.TakeN("192.0.2.1", 0) != 0 {
		t.Error("want TakeN to spend n attempts, or none if too few are left")
	}
	if wait := l.TakeN("192.0.2.1", 20); wait <= 19*time.Second || wait > 20*time.Second {
		t.Errorf("twenty more attempts: got a wait of %s, want 19 to 20 s", wait)
	}
}

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.77": "192.0.2.0/24", "2001:db8:1:2::3": "2001:db8:1::/48", "": "", "x": "x",
	} {
		if got := Network(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
