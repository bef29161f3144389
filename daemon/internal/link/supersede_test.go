package link

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// outcome is the result of a Complete that runs in the background.
type outcome struct {
	Outcome
	err error
	// after is how long Complete waited.
	after time.Duration
}

func completing(t *testing.T, m *Manager, deviceCode string) <-chan outcome {
	t.Helper()
	done := make(chan outcome, 1)
	start := time.Now()
	go func() {
		o, err := m.Complete(t.Context(), caller.Caller{}, deviceCode, Wait{})
		done <- outcome{o, err, time.Since(start)}
	}()
	synctest.Wait()
	return done
}

// linkAt returns a link that another program wrote to auth.json.
func linkAt(token, backendURL string) account.Link {
	return account.Link{AuthToken: account.Secret(token), AccountID: "other", Tier: account.TierFree,
		LinkedAt: time.Unix(2, 0), BackendURL: backendURL}
}

func TestComplete_EndsWhenAnotherLinkAppears(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		code := ask(t, m)
		done := completing(t, m, code.DeviceCode.DeviceCode)
		time.Sleep(7 * time.Second) // between two polls
		if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := <-done
		if got.err != nil || got.AccountID != "other" || !got.File.Written || got.after != 7*time.Second {
			t.Errorf("got %+v", got)
		}
		if !slices.Equal(f.cancelled, []string{code.DeviceCode.DeviceCode}) {
			t.Errorf("cancelled %q, want the abandoned code", f.cancelled)
		}
		polls := len(f.at)
		time.Sleep(time.Minute)
		if len(f.at) != polls || m.Polling() != 0 {
			t.Errorf("%d more polls of an abandoned code, %d codes polled; want none", len(f.at)-polls, m.Polling())
		}
		if gated, ok := m.TakeGated(code.DeviceCode.DeviceCode); !ok || gated.Tool != "createSimulatorSession" {
			t.Errorf("the gated call is %+v, %v; want it kept", gated, ok)
		}
	})
}

func TestComplete_EndsAtOnceWhenLinkedBefore(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		code := ask(t, m)
		if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
			t.Fatal(err)
		}
		got := <-completing(t, m, code.DeviceCode.DeviceCode)
		if got.err != nil || got.AccountID != "other" || got.after != 0 || len(f.at) != 0 {
			t.Errorf("got %+v after %d polls, want the existing link without a poll", got, len(f.at))
		}
	})
}

func TestComplete_WaitsOnForLinkThatDoesNotCount(t *testing.T) {
	for name, save := range map[string]account.Link{
		"another backend's": linkAt("svc_other", "https://other.example"),
		"a revoked one":     linkAt("svc_dead", "embedded:one"),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
				f.dead = map[string]bool{"svc_dead": true}
				done := completing(t, m, ask(t, m).DeviceCode.DeviceCode)
				if err := m.Accounts.Save(save); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				select {
				case got := <-done:
					t.Errorf("the wait ended with %+v, want it to continue", got)
				default:
				}
				if m.Polling() != 1 || f.cancelled != nil {
					t.Errorf("%d codes polled, cancelled %q; want 1 and none", m.Polling(), f.cancelled)
				}
			})
		})
	}
}

// A link that could not be verified because the backend is unreachable may be revoked. The wait continues until it is
// verified.
func TestComplete_WaitsOnForLinkThatCannotBeVerified(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		f.mute = true
		done := completing(t, m, ask(t, m).DeviceCode.DeviceCode)
		if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case got := <-done:
			t.Fatalf("the wait ended with %+v before the link was verified", got)
		default:
		}
		f.mu.Lock()
		f.mute = false
		f.mu.Unlock()
		if got := <-done; got.err != nil || got.AccountID != "other" || got.after > 70*time.Second {
			t.Errorf("got %+v", got)
		}
	})
}

// For several codes of one backend, a single request verifies the link that supersedes them.
func TestSupersedeAll_VerifiesLinkOnce(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		first := ask(t, m)
		m.mu.Lock()
		m.keep(m.newFlow(caller.Caller{}, backend.DeviceCode{DeviceCode: "sdc_second"},
			backend.Target{BaseURL: first.BackendURL}))
		m.mu.Unlock()
		if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		slices.Sort(f.cancelled)
		if !slices.Equal(f.cancelled, []string{first.DeviceCode.DeviceCode, "sdc_second"}) {
			t.Errorf("cancelled %q", f.cancelled)
		}
		if !slices.Equal(f.asked, []string{"svc_other"}) {
			t.Errorf("asked about the tokens %q, want one request", f.asked)
		}
	})
}

// A login that the user started is not ended by a link that appears in the meantime.
func TestLogin_IsNotSuperseded(t *testing.T) {
	run(t, []answer{pending(5 * time.Second), pending(5 * time.Second), approved},
		func(t *testing.T, m *Manager, f *fake, _ string) {
			attempt, err := m.Start(t.Context(), caller.Caller{}, true)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Second, func() { _ = m.Accounts.Save(linkAt("svc_other", "embedded:one")) })
			if o, err := attempt.Wait(t.Context(), Wait{}); err != nil || o.AccountID != "acc" {
				t.Errorf("the login ended with %+v, %v; want its own account", o, err)
			}
		})
}

func TestLogin_CancelledCancelsItsCode(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		attempt, err := m.Start(t.Context(), caller.Caller{}, false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(7*time.Second, cancel)
		if _, err := attempt.Wait(ctx, Wait{}); err == nil {
			t.Error("a cancelled login succeeded")
		}
		synctest.Wait()
		if !slices.Equal(f.cancelled, []string{attempt.Code().DeviceCode.DeviceCode}) {
			t.Errorf("cancelled %q", f.cancelled)
		}
	})
}

// When the daemon stops, a login ends and its code is cancelled. An agent's code stays valid for the next daemon.
func TestLogin_EndOfDaemonCancelsItsCode(t *testing.T) {
	var backendOf *fake
	var waiting, started string
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		backendOf = f
		completing(t, m, ask(t, m).DeviceCode.DeviceCode)
		login := func() *Attempt {
			attempt, err := m.Start(t.Context(), caller.Caller{}, false)
			if err != nil {
				t.Fatal(err)
			}
			return attempt
		}
		attempt := login()
		go func() { _, _ = attempt.Wait(context.Background(), Wait{}) }()
		synctest.Wait()
		waiting, started = attempt.Code().DeviceCode.DeviceCode, login().Code().DeviceCode.DeviceCode
	})
	slices.Sort(backendOf.cancelled)
	if !slices.Equal(backendOf.cancelled, []string{waiting, started}) {
		t.Errorf("cancelled %q, want %q and %q", backendOf.cancelled, waiting, started)
	}
}

// A token that arrives in a poll after the flow was superseded is dropped. The backend revokes it together with the
// code.
func TestComplete_PollInFlightLosesToAnotherLink(t *testing.T) {
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		f.hold = make(chan struct{})
		code := ask(t, m)
		done := completing(t, m, code.DeviceCode.DeviceCode)
		if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(f.hold)
		if got := <-done; got.err != nil || got.AccountID != "other" {
			t.Errorf("got %+v", got)
		}
		synctest.Wait()
		if !slices.Equal(f.revoked, []string{"svc_t at embedded:"}) {
			t.Errorf("revoked %q, want the token that arrived too late", f.revoked)
		}
		if l := m.Accounts.For("embedded:one"); l.AuthToken.Reveal() != "svc_other" || len(f.cancelled) != 1 {
			t.Errorf("auth.json holds the link of %s, cancelled %q; want the other link and one code",
				l.AccountID, f.cancelled)
		}
	})
}
