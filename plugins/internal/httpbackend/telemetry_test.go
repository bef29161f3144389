package httpbackend

import (
	"net/http"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// of returns a target in the form that the daemon creates for usage events, and a requester besides.
func of(target *pluginv1.Target) *pluginv1.Target {
	target.Credential = &pluginv1.Target_InstallId{InstallId: "inst_1"}
	target.Requester = &pluginv1.Requester{Host: "adas-laptop", Os: "linux", Client: "claude"}
	return target
}

func TestTelemetryIsAnonymous(t *testing.T) {
	for _, route := range []string{backendapi.RouteUploadTelemetry, backendapi.RoutePurgeTelemetry} {
		target, last, sent := recorded(t, http.StatusAccepted, `{"accepted":3,"duplicates":2,"rejected":1}`)
		r, err := call(t, of(target), route)
		if err != nil || string(r.GetBody()) != `{"accepted":3,"duplicates":2,"rejected":1}` {
			t.Fatalf("got %v, %v, want the counts", r, err)
		}
		if last.Method+" "+last.URL.Path != route || string(*sent) != "{}" {
			t.Errorf("got request %s, %s %s", *sent, last.Method, last.URL)
		}
		onlyInstall(t, last.Header)
	}
}

// onlyInstall fails the test if a request identifies its sender by anything besides the install id.
func onlyInstall(t *testing.T, h http.Header) {
	t.Helper()
	if h.Get(backendapi.HeaderInstallID) != "inst_1" {
		t.Errorf("the install id is missing: %v", h)
	}
	for _, name := range []string{"Authorization", "Cookie", backendapi.HeaderHost, backendapi.HeaderOS,
		backendapi.HeaderClient} {
		if h.Get(name) != "" {
			t.Errorf("header %s was sent, want only the install id", name)
		}
	}
}

// Usage events are never sent with a token, even if the daemon passes one.
func TestTelemetryNeverCarriesAToken(t *testing.T) {
	target, last, _ := recorded(t, http.StatusAccepted, `{"accepted":1,"duplicates":0,"rejected":0}`)
	for _, target := range []*pluginv1.Target{target, {BaseUrl: target.GetBaseUrl()}} {
		for _, route := range []string{backendapi.RouteUploadTelemetry, backendapi.RoutePurgeTelemetry} {
			_, err := call(t, target, route)
			if p := problemOf(t, err); p.GetCode() != "invalid_request" || p.GetRetryable() {
				t.Errorf("%s with a token or without an install id: got %v, want invalid_request", route, p)
			}
		}
	}
	if last.Method != "" {
		t.Error("a request was sent, want none")
	}
}

// Retryable errors are distinguished from permanent ones, and the pause requested by the backend is passed on.
func TestTelemetryRefusals(t *testing.T) {
	for _, c := range []struct {
		status     int
		after      string
		body, code string
		retry      bool
		wait       uint32
	}{
		{429, "7", ``, "rate_limited", true, 7},
		{429, "30", `{"code":"rate_limited","detail":"too many","retryable":true}`, "rate_limited", true, 30},
		{503, "120", `<html>`, "backend_unreachable", true, 120},
		{500, "", `{"code":"internal_error","detail":"x","retryable":true}`, "backend_unreachable", true, 0},
		{400, "", `{"code":"invalid_request","detail":"x","retryable":false}`, "invalid_request", false, 0},
		{413, "", `{"code":"request_too_large","detail":"x"}`, "request_too_large", false, 0},
		{404, "", `<html>`, "backend_invalid_response", false, 0},
	} {
		header := map[string]string{}
		if c.after != "" {
			header["Retry-After"] = c.after
		}
		_, err := call(t, of(answer(t, c.status, header, c.body)), backendapi.RouteUploadTelemetry)
		p := problemOf(t, err)
		if p.GetCode() != c.code || p.GetRetryable() != c.retry || p.GetRetryAfterSeconds() != c.wait ||
			p.GetHttpStatus() != uint32(c.status) {
			t.Errorf("%d %s: got problem %v, want the case's code and pause", c.status, c.body, p)
		}
	}
}
