//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	fakeUserCode = "BCDF-GHJK"
	fakeToken    = "svc_fake_token_of_a_scripted_backend"
)

// fake is a backend that issues one code and answers polls according to a script. The last step of the script
// repeats.
type fake struct {
	url    string
	script []http.HandlerFunc

	mu      sync.Mutex
	polls   []time.Time
	revoked []string // the revoked tokens
}

func newFake(t *testing.T, verificationURL string, script []http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{script: script}
	mux := http.NewServeMux()
	code := map[string]any{
		"deviceCode": "sdc_fake", "userCode": fakeUserCode, "verificationUrl": verificationURL, "expiresInSeconds": 600, "pollIntervalSeconds": 1,
	}
	mux.HandleFunc("POST "+codePath, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, code) })
	mux.HandleFunc("POST /api/sessions", func(rw http.ResponseWriter, _ *http.Request) {
		refusal := map[string]any{"code": "auth_required", "status": http.StatusUnauthorized,
			"detail": "link an account", "retryable": true}
		maps.Copy(refusal, code)
		rw.Header().Set("Content-Type", "application/problem+json")
		rw.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(rw).Encode(refusal)
	})
	mux.HandleFunc("POST "+tokenPath, f.poll)
	mux.HandleFunc("GET /api/account", func(rw http.ResponseWriter, _ *http.Request) { reply(rw, fakeAccount()) })
	mux.HandleFunc("DELETE /api/account/link", func(rw http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.revoked = append(f.revoked, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		rw.WriteHeader(http.StatusNoContent)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fake) poll(rw http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	n := len(f.polls)
	f.polls = append(f.polls, time.Now())
	f.mu.Unlock()
	if len(f.script) == 0 {
		pending(1)(rw, r)
		return
	}
	f.script[min(n, len(f.script)-1)](rw, r)
}

// ended returns the revoked tokens.
func (f *fake) ended() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.revoked)
}

func (f *fake) gaps() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(f.polls); i++ {
		gaps = append(gaps, f.polls[i].Sub(f.polls[i-1]))
	}
	return gaps
}

func reply(rw http.ResponseWriter, body any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(body)
}

func fakeAccount() map[string]any {
	return map[string]any{"accountId": "3f2c1c1e-6f0e-4a53-9a3e-0b3f6f1d2c4b", "tier": "free_account",
		"linkedAt": "2026-01-02T03:04:05Z", "expiresAt": nil}
}

// Steps of a script.
func pending(seconds int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		reply(rw, map[string]any{"pending": true, "pollIntervalSeconds": seconds})
	}
}

func approved(rw http.ResponseWriter, _ *http.Request) {
	body := fakeAccount()
	body["authToken"] = fakeToken
	reply(rw, body)
}

func status(code int, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(code)
	}
}

func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Waiting for approval survives every kind of error, respects every interval and ends with success.
func TestPolling_SurvivesErrors(t *testing.T) {
	t.Parallel()
	f := newFake(t, "https://example.org/activate?code="+fakeUserCode, []http.HandlerFunc{
		reset, status(http.StatusBadGateway), status(http.StatusTooManyRequests, "Retry-After",
			"3"), pending(4), approved,
	})
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+f.url, "SERVICE_NO_AUTO_OPEN=1")
	l := startLogin(w)
	l.until("linked")
	if code := l.exit(); code != 0 {
		t.Errorf("login: exit %d, want 0", code)
	}
	gaps := f.gaps()
	least := []time.Duration{time.Second, time.Second, 3 * time.Second, 4 * time.Second}
	if len(gaps) != len(least) {
		t.Fatalf("got gaps %v between polls, want another number of polls", gaps)
	}
	for i, want := range least {
		if gaps[i] < want {
			t.Errorf("gap %d is %s, want at least %s", i+1, gaps[i], want)
		}
	}
	if out, _, exit := w.ctl("whoami", "--json"); exit != 0 {
		t.Errorf("whoami: exit %d, want 0: %s", exit, out)
	}
}
