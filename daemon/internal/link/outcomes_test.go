package link

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// Every way in which a flow or a wait for it ends is recorded, in order: account.login_completed with its outcome, and
// account.linked with each success.
func TestLoginCompleted_IsRecordedForEveryOutcome(t *testing.T) {
	const aborted, success, expired, denied, network = "polling_aborted", "success linked", "code_expired",
		"user_denied", "network_error"
	pend := pending(5 * time.Second)
	short := Wait{Max: 7 * time.Second}
	for name, test := range map[string]struct {
		script []answer
		do     func(t *testing.T, m *Manager, f *fake)
		want   []string
	}{
		"approved": {[]answer{approved}, waits(Wait{}), []string{success}},
		"denied":   {[]answer{refusal(problem.CodeDeviceCodeDenied, 403, 0)}, waits(Wait{}), []string{denied}},
		"expired":  {[]answer{refusal(problem.CodeDeviceCodeExpired, 410, 0)}, waits(Wait{}), []string{expired}},
		"unknown":  {[]answer{refusal(problem.CodeUnknownDeviceCode, 404, 0)}, waits(Wait{}), []string{expired}},
		"invalid":  {[]answer{refusal(problem.CodeInvalidResponse, 200, 0)}, waits(Wait{}), []string{network}},
		"network":  {[]answer{reset}, waits(Wait{}), []string{network}},
		"network, then approved": {append(slices.Repeat([]answer{reset}, maxFailures), approved), waits(Wait{}, Wait{}),
			[]string{network, success}},
		"timeout":                {[]answer{pend}, waits(short), []string{aborted}},
		"timeouts":               {[]answer{pend}, waits(short, short, short), []string{aborted}},
		"timeout, then approved": {[]answer{pend, pend, approved}, waits(short, Wait{}), []string{aborted, success}},
		"timeout, then by itself": {[]answer{pend, pend, approved}, then(waits(short), rest),
			[]string{aborted, success}},
		"timeout, then denied": {[]answer{pend, pend, refusal(problem.CodeDeviceCodeDenied, 403, 0)},
			waits(short, Wait{}), []string{aborted, denied}},
		"timeout, then expired": {[]answer{pend}, then(waits(short), rest), []string{aborted, expired}},
		"timeout, then another program": {[]answer{pend}, then(waits(short), linkedElsewhere),
			[]string{aborted, success}},
		"cancelled by the client": {[]answer{pend, pend, pend, approved}, then(cancelledWait, cancelledWait, rest),
			[]string{aborted, success}},
		"another program":       {[]answer{pend}, waitsFor(linkedElsewhere), []string{success}},
		"another program first": {[]answer{pend}, then(linkedElsewhere, waits(Wait{})), []string{success}},
		"conflict": {[]answer{pend}, then(linkedAtAnother, waits(Wait{}), waits(Wait{})),
			[]string{aborted}},
		"conflict at the approval": {[]answer{pend, approved}, waitsFor(linkedAtAnother), []string{aborted}},
		"daemon stops":             {[]answer{pend}, background(Wait{}), []string{aborted}},
		"timeout, daemon stops":    {[]answer{pend}, waits(short), []string{aborted}},
		"shown, never waited for": {[]answer{pend}, then(func(t *testing.T, m *Manager, _ *fake) { ask(t, m) }, rest),
			[]string{expired}},
		"shown, expired, daemon stops": {[]answer{pend}, func(t *testing.T, m *Manager, _ *fake) {
			ask(t, m)
			time.Sleep(time.Hour)
		}, []string{expired}},
		"login approved": {[]answer{approved}, logsIn(0), []string{success}},
		"login denied": {[]answer{refusal(problem.CodeDeviceCodeDenied, 403, 0)}, logsIn(0),
			[]string{denied}},
		"login expired":                     {[]answer{pend}, logsIn(0), []string{expired}},
		"login unreachable":                 {[]answer{reset}, logsIn(0), []string{network}},
		"login interrupted":                 {[]answer{pend}, logsIn(7 * time.Second), []string{aborted}},
		"login interrupted before it waits": {[]answer{pend}, logsIn(-1), []string{aborted}},
		"login, no code":                    {nil, noCode(reset.err), []string{network}},
		"login, too many":                   {[]answer{pend}, busyLogin, []string{aborted}},
	} {
		t.Run(name, func(t *testing.T) {
			var all *fake
			run(t, test.script, func(t *testing.T, m *Manager, f *fake, _ string) {
				all = f
				test.do(t, m, f)
			})
			var got []string
			for _, e := range all.events {
				switch outcome, completed := strings.CutPrefix(e, "account.login_completed"); {
				case completed:
					got = append(got, outcome)
				case e == "account.linked":
					got = append(got, "linked")
				}
			}
			want := strings.Fields(strings.Join(test.want, " "))
			slices.Sort(got) // account.linked is recorded before or after the outcome
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("recorded %v, want %v", all.events, test.want)
			}
		})
	}
}

type step = func(t *testing.T, m *Manager, f *fake)

func then(steps ...step) step {
	return func(t *testing.T, m *Manager, f *fake) {
		for _, s := range steps {
			s(t, m, f)
		}
	}
}

// waits waits for the live code of the backend, once for each wait.
func waits(all ...Wait) step {
	return func(t *testing.T, m *Manager, _ *fake) {
		code := ask(t, m)
		for _, wait := range all {
			_, _ = complete(t, m, code, wait)
		}
	}
}

// background waits for the code until the test ends.
func background(wait Wait) step {
	return func(t *testing.T, m *Manager, _ *fake) {
		code := ask(t, m)
		go func() { _, _ = m.Complete(context.Background(), caller.Caller{}, code.DeviceCode.DeviceCode, wait) }()
		synctest.Wait()
	}
}

// waitsFor waits for a code while event happens.
func waitsFor(event step) step {
	return func(t *testing.T, m *Manager, f *fake) {
		done := completing(t, m, ask(t, m).DeviceCode.DeviceCode)
		event(t, m, f)
		<-done
	}
}

func cancelledWait(t *testing.T, m *Manager, _ *fake) {
	code := ask(t, m)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, _ = m.Complete(ctx, caller.Caller{}, code.DeviceCode.DeviceCode, Wait{})
}

// rest waits until every code is over and would be removed when another code is issued.
func rest(t *testing.T, m *Manager, _ *fake) {
	time.Sleep(time.Hour)
	m.mu.Lock()
	expired := m.keep(m.newFlow(caller.Caller{}, backend.DeviceCode{DeviceCode: "sdc_later"}, backend.Target{}))
	m.mu.Unlock()
	m.recordExpired(expired)
}

func linkedElsewhere(t *testing.T, m *Manager, _ *fake) {
	if err := m.Accounts.Save(linkAt("svc_other", "embedded:one")); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

func linkedAtAnother(t *testing.T, m *Manager, _ *fake) {
	if err := m.Accounts.Save(linkAt("svc_other", "https://other.example")); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

// logsIn runs a login that is interrupted after the given time. 0 means never; a negative time means before it waits.
func logsIn(after time.Duration) step {
	return func(t *testing.T, m *Manager, _ *fake) {
		attempt, err := m.Start(t.Context(), caller.Caller{}, false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if after < 0 {
			cancel()
		} else if after > 0 {
			time.AfterFunc(after, cancel)
		}
		_, _ = attempt.Wait(ctx, Wait{})
	}
}

func noCode(err error) step {
	return func(t *testing.T, m *Manager, f *fake) {
		f.refused = err
		if _, err := m.Start(t.Context(), caller.Caller{}, false); err == nil {
			t.Error("a login started without a code")
		}
	}
}

func busyLogin(t *testing.T, m *Manager, f *fake) {
	m.mu.Lock()
	m.polling = maxPolling
	m.mu.Unlock()
	logsIn(0)(t, m, f)
	m.mu.Lock()
	m.polling = 0
	m.mu.Unlock()
}

// A code whose wait was aborted is recorded as aborted only once, even across restarts of the daemon.
func TestLoginCompleted_AbortedOnceAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	var code Code
	short := Wait{Max: 7 * time.Second}
	for n, want := range []int{1, 0, 0} {
		runWith(t, dir, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
			if n == 0 {
				code = ask(t, m)
			}
			for range 2 {
				_, err := complete(t, m, code, short)
				wantCode(t, err, problem.CodeAuthTimeout)
			}
			if n == 0 { // a second gated call stores its own data with the code
				ask(t, m)
			}
			if got := f.count("account.login_completedpolling_aborted"); got != want {
				t.Errorf("daemon %d: %d polling_aborted events, want %d", n+1, got, want)
			}
		})
	}
}

// If another link ends a flow with several waiters, one success is recorded.
func TestLinkedElsewhere_RecordsOnce(t *testing.T) {
	run(t, []answer{pending(5 * time.Second)}, func(t *testing.T, m *Manager, f *fake, _ string) {
		code := ask(t, m)
		var waiters sync.WaitGroup
		for range 3 {
			done := completing(t, m, code.DeviceCode.DeviceCode)
			waiters.Go(func() { <-done })
		}
		linkedElsewhere(t, m, f)
		waiters.Wait()
		for _, event := range []string{"account.login_completedsuccess", "account.linked"} {
			if n := f.count(event); n != 1 {
				t.Errorf("%s was recorded %d times, want once: %v", event, n, f.events)
			}
		}
		if l := m.Accounts.For("embedded:one"); l.State != account.Linked {
			t.Errorf("state %s, want linked", l.State)
		}
	})
}
