package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

// A call whose adapter is killed ends with a typed error at once. The adapter is restarted, and its status
// says when and why it crashed.
func TestKilledInMidCall(t *testing.T) {
	h, _ := serve(t, install(t))
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/account" {
			arrived <- struct{}{}
			<-release
			return
		}
		healthy(w, r)
	}))
	defer srv.Close()
	defer close(release)
	target := backend.Target{BaseURL: srv.URL, Bearer: "svc_x"}
	result := make(chan error, 1)
	go func() { _, err := h.Account(context.Background(), target); result <- err }()
	<-arrived
	begin := time.Now()
	proc, _ := os.FindProcess(h.Plugins()[0].PID)
	if err := proc.Kill(); err != nil {
		t.Fatal(err)
	}
	p := code(t, <-result)
	if took := time.Since(begin); took > 20*time.Second || p.Code != problem.CodeAdapterUnavailable || !p.Retryable {
		t.Fatalf("after %v: %+v", took, p)
	}
	// The adapter is restarted without a call, and calls wait for it.
	eventually(t, "the adapter answers again", func() bool {
		_, err := h.Health(t.Context(), target)
		return err == nil
	})
	got := h.Plugins()[0]
	if got.Restarts != 1 || got.State != Running || got.Crashed.Before(begin) || got.Since.Before(got.Crashed) ||
		!got.Resume.IsZero() ||
		!strings.Contains(got.LastError, "killed") {
		t.Fatalf("status: %+v", got)
	}
}

// Five crashes within a minute open the breaker: calls are refused immediately with the time of the next start, the
// adapter is not started before then, and other adapters are unaffected.
func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	for range breakerCrashes {
		eventually(t, "the adapter answers", func() bool {
			_, err := h.Health(t.Context(), target)
			return err == nil
		})
		pid := h.Plugins()[0].PID
		proc, _ := os.FindProcess(pid)
		_ = proc.Kill()
		eventually(t, "the crash is noticed", func() bool { return h.Plugins()[0].PID != pid })
	}
	_, err := h.Health(t.Context(), target)
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable || p.RetryAfter < 30*time.Second {
		t.Fatalf("problem: %+v", p)
	}
	broken := h.Plugins()[0]
	if broken.State != Backoff || broken.PID != 0 || broken.Resume.Sub(broken.Crashed) != breakerPause ||
		!strings.Contains(broken.LastError, "5 crashes within a minute") {
		t.Errorf("status: %+v", broken)
	}
	for _, other := range h.Plugins()[1:] {
		if other.State != Stopped || other.Restarts != 0 || other.LastError != "" {
			t.Errorf("another adapter was affected: %+v", other)
		}
	}
}

// Setting the clock forward neither shortens a pause nor makes calls wait until its end.
func TestMovedClockKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	a := newAdapter(&Host{now: func() time.Time { return time.Now().Add(24 * time.Hour) }, life: t.Context()}, "x")
	a.status.State, a.resume = Backoff, time.Now().Add(breakerPause)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var p *problem.Error
	if _, _, err := a.get(ctx); !errors.As(err, &p) || p.Code != problem.CodeAdapterUnavailable ||
		p.RetryAfter < breakerPause/2 {
		t.Errorf("got %v", err)
	}
}

// A failure that the adapter reports as permanent is passed on as such, with its fix. A later crash is reported as
// retryable again.
func TestLastingCauseIsNotToBeTriedAgain(t *testing.T) {
	t.Parallel()
	a := newAdapter(&Host{now: time.Now, life: t.Context()}, "x")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.backOff(ended, fmt.Errorf("starting: %w", &problem.Error{Code: problem.CodeAdapterUnavailable,
		Message: "the key is lost", FixHint: "bring it back"}))
	if p := a.unavailable(); p.Retryable || p.RetryAfter != 0 || p.FixHint != "bring it back" ||
		!strings.Contains(p.Message, "the key is lost") {
		t.Errorf("%+v", p)
	}
	for _, passing := range []error{errors.New("killed"), &problem.Error{Message: "the disk is full", Retryable: true}} {
		a.backOff(ended, passing)
		if p := a.unavailable(); !p.Retryable || p.FixHint == "bring it back" ||
			!strings.Contains(p.Message, passing.Error()) {
			t.Errorf("%v: %+v", passing, p)
		}
	}
}
