package link

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// browser counts the pages that it opens.
type browser struct {
	mu     sync.Mutex
	broken bool
	slow   time.Duration
	pages  []string
}

func (b *browser) open(ctx context.Context, page string) bool {
	b.mu.Lock()
	slow, broken := b.slow, b.broken
	b.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return false
	}
	if broken {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages = append(b.pages, page)
	return true
}

const page = "http://localhost:1/activate?code=WDJB-MJHT"

// A call that waits for a code opens its page once, unless it is open already.
func TestComplete_OpensThePageOnce(t *testing.T) {
	pend := []answer{pending(5 * time.Second)}
	for name, test := range map[string]struct {
		before func(t *testing.T, m *Manager, code Code, b *browser)
		calls  int
		want   int
	}{
		"not opened before": {func(*testing.T, *Manager, Code, *browser) {}, 3, 1},
		"opened before": {func(t *testing.T, m *Manager, code Code, b *browser) {
			if !m.OpenPage(code.DeviceCode.DeviceCode, false, func(p string) bool { return b.open(t.Context(), p) }) {
				t.Error("the page was not opened")
			}
		}, 2, 1},
		"opening failed": {func(_ *testing.T, m *Manager, code Code, _ *browser) {
			m.OpenPage(code.DeviceCode.DeviceCode, false, func(string) bool { return false })
		}, 2, 1},
		"no browser": {func(_ *testing.T, _ *Manager, _ Code, b *browser) { b.broken = true }, 2, 0},
		"linked by another program": {func(t *testing.T, m *Manager, _ Code, _ *browser) {
			if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
				t.Error(err)
			}
		}, 1, 0},
		"linked at another backend": {func(t *testing.T, m *Manager, _ Code, _ *browser) {
			if err := m.Accounts.Save(linkAt("svc_other", "https://other.example")); err != nil {
				t.Error(err)
			}
		}, 1, 0},
		"about to expire": {func(*testing.T, *Manager, Code, *browser) { time.Sleep(10*time.Minute - time.Second) },
			1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, pend, func(t *testing.T, m *Manager, f *fake, _ string) {
				code, b := ask(t, m), &browser{}
				test.before(t, m, code, b)
				for range test.calls {
					_, _ = complete(t, m, code, Wait{Max: 3 * time.Second, OpenPage: b.open})
				}
				if len(b.pages) != test.want || test.want > 0 && b.pages[0] != page {
					t.Errorf("opened %v, want %d times %s", b.pages, test.want, page)
				}
			})
		})
	}
}

// Concurrent calls open the page once, and a browser that hangs does not extend a call.
func TestComplete_OpensThePageOnceForConcurrentCalls(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		code, b := ask(t, m), &browser{slow: 2 * time.Second}
		start := time.Now()
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				_, err := complete(t, m, code, Wait{Max: 5 * time.Second, OpenPage: b.open})
				wantCode(t, err, problem.CodeAuthTimeout)
			})
		}
		calls.Wait()
		if took := time.Since(start); took != 5*time.Second || len(b.pages) != 1 {
			t.Errorf("opened %v in %v, want one page in 5 s", b.pages, took)
		}
		code, b = second(t, m, code), &browser{slow: time.Hour}
		start = time.Now()
		_, err := complete(t, m, code, Wait{Max: 5 * time.Second, OpenPage: b.open})
		wantCode(t, err, problem.CodeAuthTimeout)
		if took := time.Since(start); took != 5*time.Second || len(f.at) == 0 {
			t.Errorf("with a browser that hangs the call took %v, want 5 s with polls meanwhile", took)
		}
	})
}

// second returns the code that the backend issues after it has denied the first one.
func second(t *testing.T, m *Manager, first Code) Code {
	t.Helper()
	m.mu.Lock()
	f := m.flows[first.DeviceCode.DeviceCode]
	m.mu.Unlock()
	m.finish(f, Outcome{}, &problem.Error{Code: problem.CodeDeviceCodeDenied}, "user_denied")
	synctest.Wait()
	return ask(t, m)
}

// A later daemon opens the page of a code that an earlier daemon issued but did not open.
func TestComplete_OpensThePageAfterARestart(t *testing.T) {
	for name, test := range map[string]struct {
		before func(string) bool
		want   int
	}{
		"not opened": {func(string) bool { return false }, 1},
		"opened":     {func(string) bool { return true }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var code Code
			pend := []answer{pending(5 * time.Second)}
			runWith(t, dir, pend, func(t *testing.T, m *Manager, f *fake, _ string) {
				code = ask(t, m)
				m.OpenPage(code.DeviceCode.DeviceCode, false, test.before)
			})
			b := &browser{}
			for range 2 {
				runWith(t, dir, pend, func(t *testing.T, m *Manager, f *fake, _ string) {
					_, err := complete(t, m, code, Wait{Max: 3 * time.Second, OpenPage: b.open})
					wantCode(t, err, problem.CodeAuthTimeout)
				})
			}
			if len(b.pages) != test.want || test.want > 0 && b.pages[0] != page {
				t.Errorf("opened %v, want %d times %s", b.pages, test.want, page)
			}
		})
	}
}

// The page of a login is opened by its own client.
func TestOpenPage_NotOfALogin(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		attempt, err := m.Start(t.Context(), caller.Caller{}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range []string{attempt.Code().DeviceCode.DeviceCode, "sdc_unknown"} {
			if m.OpenPage(code, true, func(string) bool { return true }) {
				t.Errorf("the page of %s was opened", code)
			}
		}
	})
}
