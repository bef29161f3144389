package httpbackend

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

func problemOf(t *testing.T, err error) *pluginv1.Problem {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if p, ok := d.(*pluginv1.Problem); ok {
			return p
		}
	}
	t.Fatalf("the error contains no Problem: %v", err)
	return nil
}

// answer starts a server that sends the same response to every request.
func answer(t *testing.T, st int, header map[string]string, body string) *pluginv1.Target {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(st)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return &pluginv1.Target{BaseUrl: srv.URL, Credential: &pluginv1.Target_InstallId{InstallId: "inst_1"}}
}

// call makes a request for the project com.example.hello or the session ses_1.
func call(t *testing.T, target *pluginv1.Target, route string) (*pluginv1.CallResponse, error) {
	t.Helper()
	return New("x").Call(t.Context(), &pluginv1.CallRequest{Target: target, Route: route, Body: []byte(`{}`),
		Path: map[string]string{"project": "com.example.hello", "id": "ses_1"}})
}

func poll1(t *testing.T, target *pluginv1.Target) (*pluginv1.CallResponse, error) {
	t.Helper()
	return New("x").Call(t.Context(), &pluginv1.CallRequest{Target: target, Route: backendapi.RoutePollCode,
		Body: []byte(`{"deviceCode":"sdc_1"}`)})
}

const token = `{"authToken":"svc_1","accountId":"a","tier":"free_account","linkedAt":"2026-01-02T03:04:05Z","expiresAt":null}`

func TestPollRefusals(t *testing.T) {
	cases := []struct {
		name   string
		status int
		header map[string]string
		body   string
		want   string
		retry  bool
		after  uint32
	}{
		{"declined", 403, nil, ``, "device_code_denied", true, 0},
		{"unknown", 404, nil, `<html>`, "unknown_device_code", false, 0},
		{"expired", 410, nil, `{"code":"device_code_expired","detail":"gone"}`, "device_code_expired", true, 0},
		{"throttled", 429, map[string]string{"Retry-After": "7"}, ``, "rate_limited", true, 7},
		{"throttled for ever", 429, map[string]string{"Retry-After": "999999"}, ``, "rate_limited", true, 3600},
		{"bad gateway", 502, nil, `<html>`, "backend_unreachable", true, 0},
		{"server error with a code", 500, nil, `{"code":"internal_error","detail":"x","retryable":false}`,
			"backend_unreachable", true, 0},
		{"too long", 200, nil, `{"pending":true,"x":"` + strings.Repeat("x", maxBody) + `"}`,
			"backend_invalid_response", false, 0},
		{"redirect", 302, map[string]string{"Location": "http://other.invalid/x"}, ``, "backend_unreachable", true, 0},
		{"a refusal without a code", 418, nil, `{"code":"NOT A CODE"}`, "backend_unreachable", true, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := poll1(t, answer(t, c.status, c.header, c.body))
			p := problemOf(t, err)
			if p.Code != c.want || p.Retryable != c.retry || p.RetryAfterSeconds != c.after ||
				p.HttpStatus != uint32(c.status) || p.Message == "" {
				t.Fatalf("got problem %v, want the case's code, retry and status", p)
			}
			if strings.Contains(err.Error()+p.FixHint, "svc_1") || strings.Contains(err.Error(), "sdc_1") {
				t.Fatalf("the error contains a secret: %v", err)
			}
		})
	}
}

// The daemon checks successful responses, so their bodies are returned as they are.
func TestCall_ReturnsTheBody(t *testing.T) {
	for _, body := range []string{token, `{"pending":true,"new":{}}`, `<html>`, ``, "\xff"} {
		if r, err := poll1(t, answer(t, 200, nil, body)); err != nil || string(r.GetBody()) != body || r.GetStatus() != 200 {
			t.Errorf("%q: got %v, %v; want the body", body, r, err)
		}
	}
	if r, err := call(t, answer(t, 201, nil, token), backendapi.RouteMintKey); err != nil || r.GetStatus() != 201 {
		t.Errorf("created: got %v, %v", r, err)
	}
	if _, err := call(t, answer(t, 204, nil, ""), backendapi.RouteAccount); problemOf(t, err).Code !=
		"backend_invalid_response" {
		t.Errorf("no content: got %v", err)
	}
}

func TestAuthRequiredBringsItsCode(t *testing.T) {
	body := `{"status":401,"code":"auth_required","detail":"link first","retryable":true,"fixHint":"show the code","deviceCode":"sdc_1",
		"userCode":"BCDF-GHJK","verificationUrl":"http://x/activate","expiresInSeconds":600,"pollIntervalSeconds":5}`
	_, err := call(t, answer(t, 401, nil, body), backendapi.RouteOpenSession)
	p := problemOf(t, err)
	var code backendapi.DeviceCode
	if p.Code != "auth_required" || !p.Retryable || p.FixHint != "show the code" ||
		json.Unmarshal(p.GetDeviceCode(), &code) != nil || code.UserCode != "BCDF-GHJK" || code.ExpiresInSeconds != 600 {
		t.Fatalf("got problem %v, want auth_required with the device code", p)
	}
	if strings.Contains(err.Error(), "sdc_1") {
		t.Fatal("the error text contains the device code")
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"pending":`)
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	for _, url := range []string{nobody, cut.URL} {
		_, err := poll1(t, &pluginv1.Target{BaseUrl: url})
		if p := problemOf(t, err); p.Code != "backend_unreachable" || !p.Retryable || p.HttpStatus != 0 {
			t.Errorf("%s: got %v, want a retryable backend_unreachable", url, p)
		}
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	for _, url := range []string{"", "file:///etc/passwd", "http://", "://", "http://user:pw@host",
		"https://user:pw@host", "-x",
		"http://backend.test", "http://192.0.2.1:80", "http://localhost.evil.test", "http://127.0.0.1.evil.test", "http://[2001:db8::1]"} {
		_, err := poll1(t, &pluginv1.Target{BaseUrl: url})
		if p := problemOf(t, err); p.Code != "invalid_request" || strings.Contains(p.Message, "pw") {
			t.Errorf("%q: got %v, want invalid_request without the password", url, p)
		}
	}
}

func TestOneCredentialAndWhoAsks(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = io.WriteString(w, `{"sessions":[]}`)
	}))
	defer srv.Close()
	who := &pluginv1.Requester{Host: "my\nhost", Os: strings.Repeat("x", 500), Client: "claude"}
	list := func(target *pluginv1.Target) {
		if _, err := call(t, target, backendapi.RouteSessions); err != nil {
			t.Fatal(err)
		}
	}
	list(&pluginv1.Target{BaseUrl: srv.URL + "/", Requester: who, Credential: &pluginv1.Target_Bearer{Bearer: "svc_1"}})
	if got.Get("Authorization") != "Bearer svc_1" || got.Get("X-Service-Install-Id") != "" {
		t.Errorf("with a bearer: got headers %v, want no install ID", got)
	}
	if got.Get("X-Service-Host") != "my?host" || len(got.Get("X-Service-Os")) != 100 ||
		got.Get("X-Service-Client") != "claude" {
		t.Errorf("got headers %v, want the requester's in printable ASCII", got)
	}
	list(&pluginv1.Target{BaseUrl: srv.URL, Credential: &pluginv1.Target_InstallId{InstallId: "inst_1"}})
	if got.Get("Authorization") != "" || got.Get("X-Service-Install-Id") != "inst_1" {
		t.Errorf("with an install id: got headers %v, want no bearer", got)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	for _, st := range []int{301, 302, 303, 307, 308} {
		target := answer(t, st, map[string]string{"Location": other.URL}, "")
		target.Credential = &pluginv1.Target_Bearer{Bearer: "svc_1"}
		_, err := call(t, target, backendapi.RouteAccount)
		if p := problemOf(t, err); p.Code != "backend_invalid_response" || reached {
			t.Errorf("status %d: got %v, redirect followed: %v; want backend_invalid_response, false", st, p, reached)
		}
	}
}

func TestCancelled(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-release }))
	defer srv.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := New("x").Call(ctx, &pluginv1.CallRequest{Target: &pluginv1.Target{BaseUrl: srv.URL},
		Route: backendapi.RouteAccount})
	if status.Code(err) != codes.Canceled {
		t.Fatalf("got %v, want Canceled", err)
	}
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]uint32{
		"": 0, "7": 7, "-1": 0, "x": 0, "99999999999999": 0, "1.5": 0,
		now.Add(30 * time.Second).Format(http.TimeFormat): 31,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %d, want %d", value, got, want)
		}
	}
}

// FuzzRefusal makes a Problem of arbitrary error responses, which must have a code and a message.
func FuzzRefusal(f *testing.F) {
	golden, _ := filepath.Glob("../../../proto/backendapi/testdata/*.json")
	for _, path := range golden {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(401, true, data)
			f.Add(409, false, data)
		}
	}
	f.Add(502, false, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, st int, isPoll bool, body []byte) {
		err := refusal(&http.Response{StatusCode: st, Header: http.Header{}}, body, isPoll)
		if problem := problemOf(t, err); problem.Code == "" || problem.Message == "" || !isCode(problem.Code) {
			t.Fatalf("got a problem without a code or message: %v", problem)
		}
	})
}

// A permission_denied from a backend has a body in the contract's format. A 403 from a proxy or another site does not
// mean that a grant is missing.
func TestForeignForbiddenIsNoGrant(t *testing.T) {
	target := answer(t, http.StatusForbidden, map[string]string{"Content-Type": "text/html"}, "<h1>Forbidden</h1>")
	_, err := call(t, target, backendapi.RouteOpenSession)
	if p := problemOf(t, err); p.Code != problem.CodeInvalidResponse || p.FixHint == "" {
		t.Errorf("got %v, want codeInvalidResponse with a fixHint", p)
	}
}
