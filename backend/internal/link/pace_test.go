package link

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/secret"
)

// raisedStore records how often and how far a code's interval was raised.
type raisedStore struct {
	CodeStore
	interval time.Duration
	raises   int
}

func (s *raisedStore) RaiseInterval(_ context.Context, _ string, interval time.Duration) error {
	s.interval = interval
	s.raises++
	return nil
}

// paced polls a code for its lifetime of ten minutes. wait converts each interval to the client's actual delay. paced
// returns the store for inspection.
func paced(t *testing.T, wait func(time.Duration) time.Duration) *raisedStore {
	t.Helper()
	store := &raisedStore{interval: 5 * time.Second}
	s := NewService(store, nil, secret.NewHasher(make([]byte, 32)), Settings{}, slog.New(slog.DiscardHandler), nil)
	start := time.Unix(0, 0)
	for now := start; now.Sub(start) < 10*time.Minute; now = now.Add(wait(store.interval)) {
		if _, err := s.pace(t.Context(), "code", store.interval, now); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// If a client waits each interval by a clock that is up to 30 % fast, its interval is raised at most once.
func TestPace_FastClock(t *testing.T) {
	for _, percent := range []time.Duration{0, 2, 10, 20, 30} {
		store := paced(t, func(interval time.Duration) time.Duration { return interval * 100 / (100 + percent) })
		if store.raises > 1 {
			t.Errorf("clock that is %d %% fast: got %d raises, up to %s, want at most 1", percent, store.raises, store.interval)
		}
	}
}

func TestPace_Greedy(t *testing.T) {
	for name, wait := range map[string]func(time.Duration) time.Duration{
		"every second":       func(time.Duration) time.Duration { return time.Second },
		"twice as often":     func(interval time.Duration) time.Duration { return interval / 2 },
		"three fifths of it": func(interval time.Duration) time.Duration { return interval * 3 / 5 },
	} {
		if store := paced(t, wait); store.interval != intervalCap {
			t.Errorf("polling %s: raised to %s in ten minutes, want %s", name, store.interval, intervalCap)
		}
	}
}
