package link

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/internal/problem"
)

// until returns pending responses until the code has reached age t, and approved from then on.
func until(t time.Duration) []answer {
	script := slices.Repeat([]answer{pending(20 * time.Second)}, int(t/(21*time.Second))+1)
	return append(script, approved)
}

// A code is valid for the time that the backend reports, which may be longer than one call waits. Its approval is
// fetched by the polls that continue after the call, and a later call gets the outcome.
func TestComplete_WindowLongerThanOneWait(t *testing.T) {
	for name, test := range map[string]struct{ window, approved time.Duration }{
		"20 minutes": {20 * time.Minute, 640 * time.Second},
		"an hour":    {time.Hour, 50 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, until(test.approved), func(t *testing.T, m *Manager, f *fake, _ string) {
				f.window = test.window
				code := ask(t, m)
				if code.ExpiresIn != test.window {
					t.Errorf("the code is shown as valid for %v, want %v", code.ExpiresIn, test.window)
				}
				start := time.Now()
				_, err := complete(t, m, code, Wait{})
				wantCode(t, err, problem.CodeAuthTimeout)
				if waited := time.Since(start); waited != MaxWait {
					t.Errorf("the call waited %v, want %v", waited, MaxWait)
				}
				time.Sleep(time.Until(start.Add(test.approved + time.Minute)))
				if f.count("account.linked") != 1 || m.Polling() != 0 {
					t.Errorf("events %v, %d codes polled; want the approval fetched without a call", f.events,
						m.Polling())
				}
				if out, err := complete(t, m, code, Wait{}); err != nil || out.AccountID != "acc" {
					t.Errorf("a later call: %+v, %v; want the link", out, err)
				}
			})
		})
	}
}

// A later call also continues a code after a restart of the daemon.
func TestComplete_LongWindowAfterARestart(t *testing.T) {
	dir := t.TempDir()
	var code Code
	runWith(t, dir, []answer{pending(0)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		f.window = 20 * time.Minute
		code = ask(t, m)
	})
	runWith(t, dir, until(640*time.Second), func(t *testing.T, m *Manager, _ *fake, _ string) {
		_, err := complete(t, m, code, Wait{})
		wantCode(t, err, problem.CodeAuthTimeout)
		if out, err := complete(t, m, code, Wait{}); err != nil || out.AccountID != "acc" {
			t.Errorf("got %+v, %v; want the link", out, err)
		}
	})
}

// A login waits for as long as its code is valid.
func TestLogin_LongWindow(t *testing.T) {
	run(t, until(640*time.Second), func(t *testing.T, m *Manager, f *fake, _ string) {
		f.window = 20 * time.Minute
		attempt, err := m.Start(t.Context(), caller.Caller{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := attempt.Wait(t.Context(), Wait{}); err != nil || out.AccountID != "acc" {
			t.Errorf("got %+v, %v; want the link", out, err)
		}
	})
}

// A backend cannot make the daemon follow a code for longer than codes.MaxWindow.
func TestWindow_IsBounded(t *testing.T) {
	m := New(Options{})
	for said, want := range map[time.Duration]time.Duration{
		-1: DefaultWindow, 0: DefaultWindow, time.Second: time.Second, time.Hour: time.Hour,
		1e6 * time.Hour: codes.MaxWindow,
	} {
		f := m.newFlow(caller.Caller{}, backend.DeviceCode{ExpiresIn: said}, backend.Target{})
		if f.code.ExpiresIn != want {
			t.Errorf("a window of %v counts as %v, want %v", said, f.code.ExpiresIn, want)
		}
	}
}

// An unreachable backend is reported with the number of polls that were made.
func TestUnreachable_CountsAttempts(t *testing.T) {
	for name, frozen := range map[string]bool{"refuses quickly": false, "does not answer": true} {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{reset}, func(t *testing.T, m *Manager, f *fake, _ string) {
				f.frozen = frozen
				_, err := complete(t, m, ask(t, m), Wait{})
				wantCode(t, err, problem.CodeBackendUnreachable)
				if want := "could not be reached in " + attempts(len(f.at)); !strings.Contains(err.Error(), want) ||
					frozen && len(f.at) >= maxFailures {
					t.Errorf("after %d polls: %v; want %q", len(f.at), err, want)
				}
			})
		})
	}
	if got := attempts(1); got != "1 attempt" {
		t.Error(got)
	}
}
