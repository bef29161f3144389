package link

import (
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// paced polls a code for its lifetime of ten minutes. wait converts each interval to the client's actual delay. paced
// returns the last interval and how often it was raised.
func paced(t *testing.T, wait func(time.Duration) time.Duration) (interval time.Duration, raises int) {
	t.Helper()
	s := newService(t, Settings{})
	start := time.Unix(0, 0)
	code := Code{DeviceHash: "code", UserHash: "user", State: Pending, CreatedAt: start, ExpiresAt: start.Add(time.Hour),
		Interval: 5 * time.Second}
	if err := s.store.InsertCode(t.Context(), code, audit.Trace{}); err != nil {
		t.Fatal(err)
	}
	interval = code.Interval
	for now := start; now.Sub(start) < 10*time.Minute; now = now.Add(wait(interval)) {
		if _, err := s.pace(t.Context(), "code", interval, now); err != nil {
			t.Fatal(err)
		}
		stored, err := s.store.Progress(t.Context(), "code")
		if err != nil {
			t.Fatal(err)
		}
		if stored.Interval != interval {
			interval = stored.Interval
			raises++
		}
	}
	return interval, raises
}

// If a client waits each interval by a clock that is up to 30 % fast, its interval is raised at most once.
func TestPace_FastClock(t *testing.T) {
	for _, percent := range []time.Duration{0, 2, 10, 20, 30} {
		interval, raises := paced(t, func(interval time.Duration) time.Duration { return interval * 100 / (100 + percent) })
		if raises > 1 {
			t.Errorf("clock that is %d %% fast: got %d raises, up to %s, want at most 1", percent, raises, interval)
		}
	}
}

func TestPace_Greedy(t *testing.T) {
	for name, wait := range map[string]func(time.Duration) time.Duration{
		"every second":       func(time.Duration) time.Duration { return time.Second },
		"twice as often":     func(interval time.Duration) time.Duration { return interval / 2 },
		"three fifths of it": func(interval time.Duration) time.Duration { return interval * 3 / 5 },
	} {
		if interval, _ := paced(t, wait); interval != intervalCap {
			t.Errorf("polling %s: raised to %s in ten minutes, want %s", name, interval, intervalCap)
		}
	}
}
