package host

import (
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
)

func TestRates_DelayFramesOverBurst(t *testing.T) {
	var r Rates
	now, rate := time.UnixMilli(0), Rate{PerSecond: 10, Burst: 2}
	for i, want := range []time.Duration{-100 * time.Millisecond, 0, 100 * time.Millisecond} {
		if got := r.reserve(now, glasses.SenderApp, rate); got != want {
			t.Errorf("frame %d must wait %v, want %v", i, got, want)
		}
	}
	if got := r.reserve(now, glasses.SenderGlasses, rate); got > 0 {
		t.Errorf("a result must wait %v behind the commands, want no delay", got)
	}
	if later := now.Add(300 * time.Millisecond); r.IsFull(now) || !r.IsFull(later) {
		t.Errorf("full %v, 300 ms later %v; want false and true", r.IsFull(now), r.IsFull(later))
	}
}
