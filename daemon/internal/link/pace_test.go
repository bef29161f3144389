package link

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

// pacer is a backend that raises the interval by 5 s after each poll that comes too early by its own clock.
// The manager's clock runs faster than the backend's, by the factor faster.
type pacer struct {
	*fake
	faster   float64
	interval time.Duration
	last     time.Time
	raises   int
}

func (p *pacer) CancelDeviceCode(context.Context, backend.Target, string) error { return nil }

func (p *pacer) PollDeviceToken(context.Context, backend.Target, string) (backend.Poll, error) {
	if !p.last.IsZero() {
		passed := time.Duration(float64(time.Since(p.last)) / p.faster)
		if passed < p.interval {
			p.interval += 5 * time.Second
			p.raises++
		}
	}
	p.last = time.Now()
	return backend.Poll{PollInterval: p.interval}, nil
}

// The interval of a well-behaved client whose clock runs fast is raised at most once, even by a backend without any
// tolerance.
func TestPoll_FastClock(t *testing.T) {
	for _, percent := range []int{0, 2, 4, 5, 10, 20, 30} {
		t.Run(fmt.Sprint(percent, " percent"), func(t *testing.T) {
			run(t, nil, func(t *testing.T, m *Manager, f *fake, _ string) {
				p := &pacer{fake: f, faster: 1 + float64(percent)/100, interval: 5 * time.Second}
				m.Backend = p
				_, err := complete(t, m, ask(t, m), Wait{Max: 5 * time.Minute})
				wantCode(t, err, problem.CodeAuthTimeout)
				most := 1
				if percent < 5 {
					most = 0
				}
				if p.raises > most {
					t.Errorf("the interval was raised %d times to %v", p.raises, p.interval)
				}
			})
		})
	}
}

func TestIntervals(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, -time.Second: 5 * time.Second, time.Second: 5 * time.Second,
		7 * time.Second: 7 * time.Second,
	} {
		run(t, []answer{pending(said), approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
			if _, err := complete(t, m, ask(t, m), Wait{}); err != nil || f.gaps()[0] < want ||
				f.gaps()[0] > want+want/10 {
				t.Errorf("interval %v: gaps %v, error %v; want the bounded interval", said, f.gaps(), err)
			}
		})
	}
	if got := backendInterval(1e9 * time.Second); got != 600*time.Second {
		t.Error(got)
	}
	for asked, want := range map[time.Duration]Wait{
		-time.Second:      {Max: time.Second, Interval: time.Second},
		601 * time.Second: {Max: 600 * time.Second, Interval: 30 * time.Second},
	} {
		if got := (Wait{Max: asked, Interval: asked}).bounded(); got.Max != want.Max || got.Interval != want.Interval {
			t.Errorf("%v: %+v", asked, got)
		}
	}
}
