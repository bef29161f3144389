//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	codePath  = "/api/auth/device/code"
	tokenPath = "/api/auth/device/token"
)

// spy is a proxy between a daemon and its backend that records requests.
type spy struct {
	url string
	// hold, if set, is called with each request before the spy forwards it.
	hold func(passed)

	mu   sync.Mutex
	seen []passed
}

// passed is one forwarded request.
type passed struct {
	path, deviceCode, authorization string
	at                              time.Time
}

func newSpy(t *testing.T, backend string) *spy {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var poll struct{ DeviceCode string }
		_ = json.Unmarshal(body, &poll)
		p := passed{r.URL.Path, poll.DeviceCode, r.Header.Get("Authorization"), time.Now()}
		s.mu.Lock()
		s.seen = append(s.seen, p)
		s.mu.Unlock()
		if s.hold != nil {
			s.hold(p)
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// all returns the recorded requests.
func (s *spy) all() []passed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]passed(nil), s.seen...)
}

// polls returns the times of the polls of a code; an empty code means any code.
func (s *spy) polls(deviceCode string) []time.Time {
	var at []time.Time
	for _, p := range s.all() {
		if p.path == tokenPath && (deviceCode == "" || p.deviceCode == deviceCode) {
			at = append(at, p.at)
		}
	}
	return at
}

// askByHand calls a tool that needs an account with `servicectl tool call`, and returns the device code.
func askByHand(w *world) (deviceCode, verificationURL string) {
	w.t.Helper()
	out, errs, _ := w.ctl("tool", "call", "createSimulatorSession",
		`{"project":"com.example.byhand","openBrowser":false}`)
	var answer struct{ Status, DeviceCode, VerificationURL string }
	if json.Unmarshal([]byte(out), &answer) != nil || answer.Status != "auth_required" {
		w.t.Fatalf("call a tool without a link: %s%s", out, errs)
	}
	return answer.DeviceCode, answer.VerificationURL
}

// recorded counts the lines in the local telemetry log that contain text.
func recorded(w *world, text string) int { return strings.Count(events(w), text) }
