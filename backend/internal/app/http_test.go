package app

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

func TestEmbedded_AnswersOnlyItsOwnHost(t *testing.T) {
	h := ownHostOnly(embeddedHosts(&url.URL{Host: "service-1a2b.localhost:4711"}), http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	for host, want := range map[string]int{
		"localhost:4711": http.StatusNoContent, "127.0.0.1:4711": http.StatusNoContent, "[::1]:4711": http.StatusNoContent,
		"evil.example:4711": http.StatusMisdirectedRequest, "localhost:4712": http.StatusMisdirectedRequest,
		"service-1a2b.localhost:4711":      http.StatusNoContent,
		"service-1a2b.localhost:4712":      http.StatusMisdirectedRequest,
		"service-ffff.localhost:4711":      http.StatusMisdirectedRequest,
		"evil.service-1a2b.localhost:4711": http.StatusMisdirectedRequest,
		"localhost":                        http.StatusMisdirectedRequest,
		"localhost.evil.example:4711":      http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("host %s: got status %d, want %d", host, w.Code, want)
		}
	}
}

func TestServer_OnThisMachineAnswersOnlyItsOwnHosts(t *testing.T) {
	for base, hosts := range map[string]map[string]bool{
		"http://localhost:4711": {"localhost:4711": true, "127.0.0.1:9000": true, "[::1]:4711": true, "LOCALHOST": true,
			"evil.example:4711": false, "localhost.evil.example": false, "evil.localhost:4711": false, "": false,
			"192.0.2.7:4711": true, "backend:8080": true, "host.docker.internal:4711": true, "internal.example": false},
		"https://api.example": {"api.example": true, "anything.example": true}, // a proxy may rewrite the host
	} {
		a := newApp(t, base)
		t.Cleanup(func() { _ = a.Close() })
		for host, accepted := range hosts {
			r := httptest.NewRequest(http.MethodGet, backendapi.PathHealth, http.NoBody)
			r.Host = host
			w := httptest.NewRecorder()
			a.Handler().ServeHTTP(w, r)
			if want := http.StatusMisdirectedRequest; (w.Code != want) != accepted {
				t.Errorf("%s, host %q: got status %d", base, host, w.Code)
			}
		}
	}
}

func TestTextOnly(t *testing.T) {
	h := textOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for path, want := range map[string]int{
		"/account/audit?before=x&project=a.b": http.StatusNoContent, "/connect/caf%C3%A9?x=%C3%A9": http.StatusNoContent,
		"/api/sessions/%00": http.StatusBadRequest, "/api/sessions/%ff": http.StatusBadRequest,
		"/account/audit?before=%00":    http.StatusBadRequest,
		"/account/audit?before=%ff%fe": http.StatusBadRequest, "/account/audit?%00=x": http.StatusBadRequest,
		"/account/audit?before=%zz": http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != want {
			t.Errorf("%s: got status %d, want %d", path, w.Code, want)
		}
	}
}

// Every documented WebSocket route is served: a request without an upgrade gets an error other than 404.
func TestWebSockets_DocumentedOnesAreServed(t *testing.T) {
	a := newApp(t, "http://localhost:4711")
	t.Cleanup(func() { _ = a.Close() })
	want := map[backendapi.Caller]int{
		backendapi.SessionApp: http.StatusUpgradeRequired, backendapi.PageSession: http.StatusUnauthorized,
	}
	for _, r := range backendapi.Routes() {
		if !r.WebSocket {
			continue
		}
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest(r.Method(),
			"http://localhost:4711"+strings.ReplaceAll(r.Path(), "{id}", "ses_x"), http.NoBody))
		if w.Code != want[r.Caller] {
			t.Errorf("%s %s: got status %d, want %d", r.Method(), r.Path(), w.Code, want[r.Caller])
		}
		delete(want, r.Caller)
	}
	if len(want) != 0 {
		t.Errorf("no documented WebSocket route for the callers %v", want)
	}
}
