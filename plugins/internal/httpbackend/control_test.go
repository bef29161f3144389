package httpbackend

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// recorded starts a server that sends one fixed response and records the last request.
func recorded(t *testing.T, status int, body string) (target *pluginv1.Target, last *http.Request, sent *[]byte) {
	t.Helper()
	last, sent = &http.Request{}, new([]byte)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*sent, _ = io.ReadAll(r.Body)
		*last = *r //nolint:govet // read only after the exchange
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return &pluginv1.Target{BaseUrl: srv.URL, Credential: &pluginv1.Target_Bearer{Bearer: "svc_1"}}, last, sent
}

// The backend is not reported as unreachable if a simulator page does not respond.
func TestControlRefusals(t *testing.T) {
	for status, code := range map[int]string{504: "timeout", 409: "not_connected"} {
		target, _, _ := recorded(t, status, `{"code":"`+code+`","detail":"x","retryable":true}`)
		_, err := call(t, target, backendapi.RouteControl)
		if p := problemOf(t, err); p.GetCode() != code || !p.GetRetryable() {
			t.Errorf("status %d: got %+v, want the page's retryable error", status, p)
		}
	}
	// A code that the HTTP API does not have says nothing about whether to retry.
	other, _, _ := recorded(t, 403, `{"code":"busy","detail":"x"}`)
	if _, err := call(t, other, backendapi.RouteControl); problemOf(t, err).GetCode() != "busy" || problemOf(t, err).GetRetryable() {
		t.Errorf("a code of another program: got %+v, want no retry", problemOf(t, err))
	}
	target, _, _ := recorded(t, 504, `<html>`)
	_, err := call(t, target, backendapi.RouteControl)
	if p := problemOf(t, err); p.GetCode() != "backend_unreachable" {
		t.Errorf("a 504 of a proxy: got %+v, want backend_unreachable", p)
	}
}
