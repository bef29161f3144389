package link

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// A client that starts one login after another is refused once 64 codes are being polled, with an error that explains
// the limit. Earlier logins continue, and logins that end make room for new ones.
func TestLoginsThatArePolledAreBounded(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		code := ask(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waiting sync.WaitGroup
		wait := func() {
			a, err := m.Start(ctx, caller.Caller{}, false)
			if err != nil {
				t.Fatal(err)
			}
			waiting.Go(func() {
				if _, err := a.Wait(ctx, Wait{}); !errors.Is(err, context.Canceled) {
					t.Errorf("a login ended with %v, want context.Canceled", err)
				}
			})
		}
		for range maxPolling {
			wait()
		}
		synctest.Wait()
		if n := m.Polling(); n != maxPolling {
			t.Fatalf("%d codes are polled, want maxPolling", n)
		}
		for range 20 {
			a, err := m.Start(ctx, caller.Caller{}, false)
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Wait(ctx, Wait{})
			if p := asProblem(err); p.Code != "busy" || !p.Retryable || p.FixHint == "" {
				t.Fatalf("one login above the limit: %v, want busy", err)
			}
		}
		_, err := complete(t, m, code, Wait{Max: time.Second})
		if p := asProblem(err); p.Code != "busy" {
			t.Errorf("an agent's code above the limit: %v, want busy", err)
		}
		polls := func() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.at) }
		before := polls()
		time.Sleep(30 * time.Second)
		if n := polls() - before; n < maxPolling {
			t.Errorf("the other codes were polled %d times in 30 s, want at least once each", n)
		}
		cancel()
		waiting.Wait()
		_, err = complete(t, m, code, Wait{Max: time.Second})
		wantCode(t, err, problem.CodeAuthTimeout)
	})
}
