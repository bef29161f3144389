package link

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/internal/problem"
)

// fake is an in-memory backend: poll i receives script[i]; polls after the last entry receive the last entry.
type fake struct {
	mu      sync.Mutex
	script  []answer
	at      []time.Time
	issued  int
	events  []string
	shells  []string      // the switch in each event's caller
	hold    chan struct{} // if set, a poll waits for it and ignores its own context
	window  time.Duration // how long its codes are valid; 0 means 10 minutes
	refused error         // if set, no code is issued
	frozen  bool          // a poll gets no answer before its context ends
	manager *Manager
	polling int
	most    int
	dead    map[string]bool // tokens that the backend rejects
	mute    bool            // do not respond to requests about tokens
	asked   []string        // the tokens that the backend was asked about
	offline bool            // tokens cannot be revoked
	revoked []string
	// cancelled holds the device codes that the client cancelled.
	cancelled []string
}

type answer struct {
	poll backend.Poll
	err  error
}

func (f *fake) IssueDeviceCode(context.Context, backend.Target, string) (backend.DeviceCode, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused != nil {
		return backend.DeviceCode{}, f.refused
	}
	f.issued++
	return backend.DeviceCode{
		DeviceCode: "sdc_" + string(rune('a'+f.issued)), UserCode: "WDJB-MJHT", VerificationURL: page,
		ExpiresIn: cmp.Or(f.window, 10*time.Minute), PollInterval: 5 * time.Second,
	}, nil
}

func (f *fake) PollDeviceToken(ctx context.Context, _ backend.Target, _ string) (backend.Poll, error) {
	f.mu.Lock()
	a := f.script[min(len(f.at), len(f.script)-1)]
	f.at = append(f.at, time.Now())
	f.polling++
	f.most = max(f.most, f.polling)
	hold := f.hold
	if f.frozen {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		a = reset
	}
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polling--
	return a.poll, a.err
}

func (f *fake) CancelDeviceCode(_ context.Context, _ backend.Target, code string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, code)
	return nil
}

func (f *fake) Account(_ context.Context, t backend.Target) (backend.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, t.Bearer)
	if f.mute {
		return backend.Account{}, reset.err
	}
	if f.dead[t.Bearer] {
		return backend.Account{}, &problem.Error{Code: problem.CodeAuthRequired, HTTPStatus: 401}
	}
	return backend.Account{AccountID: "acc"}, nil
}

func (f *fake) RevokeLink(_ context.Context, t backend.Target) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, t.Bearer+" at "+t.BaseURL)
	if f.offline {
		return reset.err
	}
	return nil
}

func (f *fake) Embedded(context.Context) (id, baseURL string, err error) {
	return "embedded:one", "http://localhost:1", nil
}

func (f *fake) Record(ctx context.Context, event string, fields map[string]any) {
	// Deadlocks if the manager records while it holds its lock.
	f.manager.Polling()
	f.mu.Lock()
	defer f.mu.Unlock()
	outcome, _ := fields["outcome"].(string)
	f.events = append(f.events, event+outcome)
	f.shells = append(f.shells, caller.From(ctx).Env["SERVICE_TELEMETRY"])
}

func (f *fake) count(event string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e == event {
			n++
		}
	}
	return n
}

func (f *fake) gaps() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(f.at); i++ {
		gaps = append(gaps, f.at[i].Sub(f.at[i-1]))
	}
	return gaps
}

var (
	approved = answer{poll: backend.Poll{Token: &backend.Token{AuthToken: "svc_t",
		Account: backend.Account{AccountID: "acc", Tier: account.TierFree, LinkedAt: time.Unix(1, 0)}}}}
	reset = refusal(problem.CodeBackendUnreachable, 0, 0)
)

func refusal(code string, status int, after time.Duration) answer {
	return answer{err: &problem.Error{Code: code, Message: code, HTTPStatus: status, RetryAfter: after}}
}

func pending(interval time.Duration) answer {
	return answer{poll: backend.Poll{PollInterval: interval}}
}

// run starts a manager against the script, in a bubble of virtual time.
func run(t *testing.T, script []answer, test func(t *testing.T, m *Manager, f *fake, dir string)) {
	t.Helper()
	runWith(t, t.TempDir(), script, test)
}

// runWith is like run, but with a state directory that may have contents.
func runWith(t *testing.T, dir string, script []answer, test func(t *testing.T, m *Manager, f *fake, dir string)) {
	t.Helper()
	if err := os.MkdirAll(runDir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{script: script}
		accounts := account.Open(account.Options{Dir: dir})
		issued := codes.New(runDir(dir), time.Now, slog.New(slog.DiscardHandler))
		m := New(Options{Backend: f, Accounts: accounts, Codes: issued,
			Config: config.Default, Record: f, InstallID: "inst_1", Log: slog.New(slog.DiscardHandler)})
		f.manager = m
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() { _ = m.Serve(ctx) })
		test(t, m, f, dir)
		cancel()
		serving.Wait()
	})
}

// runDir returns a directory next to the state directory, so that tests can distinguish auth.json from codes.json.
func runDir(dir string) string { return dir + ".run" }

func ask(t *testing.T, m *Manager) Code {
	t.Helper()
	target, _, err := m.Target(t.Context(), caller.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := m.Ask(t.Context(), target, GatedCall{Tool: "createSimulatorSession"}, func(context.Context) error {
		return &problem.Error{Code: problem.CodeAuthRequired}
	})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func complete(t *testing.T, m *Manager, code Code, wait Wait) (Outcome, error) {
	t.Helper()
	return m.Complete(t.Context(), caller.Caller{}, code.DeviceCode.DeviceCode, wait)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestEveryGapIsHonoured(t *testing.T) {
	script := []answer{reset, refusal("bad_gateway", 502, 0), refusal(problem.CodeRateLimited, 429, 7*time.Second),
		pending(12 * time.Second), approved}
	run(t, script, func(t *testing.T, m *Manager, f *fake, dir string) {
		out, err := complete(t, m, ask(t, m), Wait{})
		if err != nil || !out.File.Written || out.AccountID != "acc" || out.PollCount != 5 ||
			out.BackendURL != "embedded:one" {
			t.Fatalf("%+v, %v", out, err)
		}
		least := []time.Duration{5 * time.Second, 5 * time.Second, 7 * time.Second, 12 * time.Second}
		for i, gap := range f.gaps() {
			if gap < least[i] {
				t.Errorf("gap %d is %v, want at least %v", i, gap, least[i])
			}
		}
		if _, err := os.Stat(filepath.Join(dir, account.FileName)); err != nil {
			t.Error(err)
		}
		for _, event := range []string{"account.login_initiated", "account.login_completedsuccess", "account.linked"} {
			if f.count(event) != 1 {
				t.Errorf("%s was recorded %d times, want once", event, f.count(event))
			}
		}
	})
}

func TestSixFailuresThenANewStart(t *testing.T) {
	script := []answer{reset, reset, reset, reset, reset, reset, approved}
	run(t, script, func(t *testing.T, m *Manager, f *fake, _ string) {
		code, start := ask(t, m), time.Now()
		_, err := complete(t, m, code, Wait{})
		wantCode(t, err, problem.CodeBackendUnreachable)
		if took := time.Since(start); took >= 45*time.Second || len(f.at) != 6 {
			t.Errorf("%d polls in %v, want 6 in less than 45 s", len(f.at), took)
		}
		if f.count("account.login_completednetwork_error") != 1 {
			t.Error("events:", f.events)
		}
		if out, err := complete(t, m, code, Wait{}); err != nil || out.AccountID != "acc" {
			t.Errorf("after the network recovered: %+v, %v; want a link", out, err)
		}
		if m.Polling() != 0 {
			t.Error("a finished code still counts as polled")
		}
	})
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		script  []answer
		code    string
		outcome string
	}{
		"denied": {[]answer{refusal(problem.CodeDeviceCodeDenied, 403, 0)}, problem.CodeDeviceCodeDenied,
			"user_denied"},
		"expired": {[]answer{refusal(problem.CodeDeviceCodeExpired, 410, 0)}, problem.CodeDeviceCodeExpired,
			"code_expired"},
		"unknown": {[]answer{refusal(problem.CodeUnknownDeviceCode, 404, 0)}, problem.CodeUnknownDeviceCode,
			"code_expired"},
		"answer lost": {[]answer{reset, refusal(problem.CodeUnknownDeviceCode, 404, 0)}, problem.CodeUnknownDeviceCode,
			"network_error"},
		"invalid": {[]answer{refusal(problem.CodeInvalidResponse, 200, 0)}, problem.CodeInvalidResponse,
			"network_error"},
		"window is over": {[]answer{pending(5 * time.Second)}, problem.CodeDeviceCodeExpired, "code_expired"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, c.script, func(t *testing.T, m *Manager, f *fake, dir string) {
				code := ask(t, m)
				_, err := complete(t, m, code, Wait{})
				if name == "window is over" {
					wantCode(t, err, problem.CodeAuthTimeout) // the call's own limit of 600 s is reached before the grace period ends
					_, err = complete(t, m, code, Wait{})
				}
				wantCode(t, err, c.code)
				if f.count("account.login_completed"+c.outcome) != 1 || f.count("account.linked") != 0 {
					t.Error("events:", f.events)
				}
				if entries, _ := os.ReadDir(dir); len(entries) != 0 {
					t.Error("files:", entries)
				}
			})
		})
	}
}

// Polling belongs to the daemon: two waiters share one series of polls, a cancelled waiter returns immediately, a
// second call with the same code gets the outcome, and progress is sent at least every 20 s.
func TestPollingBelongsToTheDaemon(t *testing.T) {
	run(t, []answer{pending(60 * time.Second), pending(60 * time.Second), pending(60 * time.Second), approved},
		func(t *testing.T, m *Manager, f *fake, _ string) {
			code := ask(t, m)
			if second := ask(t, m); second.DeviceCode.DeviceCode != code.DeviceCode.DeviceCode || f.issued != 1 {
				t.Errorf("a second gated call got %+v, want the same code", second)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var waiters sync.WaitGroup
			waiters.Go(func() {
				if _, err := m.Complete(ctx, caller.Caller{}, code.DeviceCode.DeviceCode, Wait{}); !errors.Is(err,
					context.Canceled) {
					t.Errorf("the cancelled call: %v, want context.Canceled", err)
				}
			})
			last := time.Now()
			waiters.Go(func() {
				_, err := complete(t, m, code, Wait{Max: 100 * time.Second, OnPoll: func(PollEvent) {
					if rest := time.Since(last); rest > 20*time.Second {
						t.Errorf("no progress for %v, want it every 20 s", rest)
					}
					last = time.Now()
				}})
				wantCode(t, err, problem.CodeAuthTimeout)
			})
			time.Sleep(time.Second)
			cancel()
			waiters.Wait()
			if m.Polling() != 1 {
				t.Error("the polling ended together with its waiters")
			}
			time.Sleep(100 * time.Second)
			if out, err := complete(t, m, code, Wait{}); err != nil || out.PollCount != 4 || f.most != 1 {
				t.Errorf("got %+v, %v with %d concurrent pollers; want 4 polls by one poller", out, err, f.most)
			}
			if gated, ok := m.TakeGated(code.DeviceCode.DeviceCode); !ok || gated.Tool != "createSimulatorSession" {
				t.Error("the gated call was lost")
			}
		})
}

// No link is created after a login was cancelled, even if the response with its approval is already on its way.
func TestCancelledLogin(t *testing.T) {
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, dir string) {
		f.hold = make(chan struct{})
		attempt, err := m.Start(t.Context(), caller.Caller{}, false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := attempt.Wait(ctx, Wait{}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(f.hold) // the token arrives after the cancellation
		waiting.Wait()
		if entries, _ := os.ReadDir(dir); len(entries) != 0 || m.Polling() != 0 {
			t.Errorf("files %v, %d codes polled; want none", entries, m.Polling())
		}
		if f.count("account.login_completedpolling_aborted") != 1 || f.count("account.linked") != 0 {
			t.Error("events:", f.events)
		}
	})
}
