package httpbackend

import (
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/proto/telemetry"
)

const usage = `{"events":[{"id":"01939d3a-6a53-7c4e-8f00-0123456789ab","at":"2026-01-02T03:04:05.678Z","name":"account.linked"}]}`

// of returns a target in the form that the daemon creates for usage events.
func of(target *pluginv1.Target) *pluginv1.Target {
	target.Credential = &pluginv1.Target_InstallId{InstallId: "inst_1"}
	target.Requester = &pluginv1.Requester{Host: "adas-laptop", Os: "linux", Client: "claude"}
	return target
}

func TestUploadTelemetry(t *testing.T) {
	target, last, sent := recorded(t, http.StatusAccepted, `{"accepted":3,"duplicates":2,"rejected":1}`)
	r, err := New("x").UploadTelemetry(t.Context(), &pluginv1.UploadTelemetryRequest{Target: of(target),
		Batch: []byte(usage)})
	if err != nil || r.GetAccepted() != 3 || r.GetDuplicates() != 2 || r.GetRejected() != 1 {
		t.Fatalf("got %v, %v, want counts 3, 2 and 1", r, err)
	}
	if last.Method != http.MethodPost || last.URL.Path != backendapi.PathTelemetry || string(*sent) != usage {
		t.Errorf("got request %s, %s %s; want the batch posted", *sent, last.Method, last.URL)
	}
	onlyInstall(t, last.Header)
}

func TestPurgeTelemetry(t *testing.T) {
	target, last, sent := recorded(t, http.StatusOK, `{"deleted":1234}`)
	r, err := New("x").PurgeTelemetry(t.Context(), &pluginv1.PurgeTelemetryRequest{Target: of(target)})
	if err != nil || r.GetDeleted() != 1234 {
		t.Fatalf("got %v, %v, want 1234 deleted", r, err)
	}
	if last.Method != http.MethodDelete || last.URL.Path != backendapi.PathTelemetry || len(*sent) != 0 {
		t.Errorf("got request %q, %s %s; want a DELETE without a body", *sent, last.Method, last.URL)
	}
	onlyInstall(t, last.Header)
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
		_, err := New("x").UploadTelemetry(t.Context(), &pluginv1.UploadTelemetryRequest{Target: target,
			Batch: []byte(usage)})
		if p := problemOf(t, err); p.GetCode() != "invalid_request" || p.GetRetryable() {
			t.Errorf("upload with a token: got %v, want invalid_request", p)
		}
		_, err = New("x").PurgeTelemetry(t.Context(), &pluginv1.PurgeTelemetryRequest{Target: target})
		if p := problemOf(t, err); p.GetCode() != "invalid_request" {
			t.Errorf("purge with a token: got %v, want invalid_request", p)
		}
	}
	if last.Method != "" {
		t.Error("a request was sent, want none")
	}
	for _, batch := range []string{"", "{", `{"events":["` + strings.Repeat("x", telemetry.MaxBody) + `"]}`} {
		_, err := New("x").UploadTelemetry(t.Context(), &pluginv1.UploadTelemetryRequest{Target: of(target),
			Batch: []byte(batch)})
		if p := problemOf(t, err); p.GetCode() != "invalid_request" || last.Method != "" {
			t.Errorf("batch %.20q: got %v, want invalid_request", batch, p)
		}
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
		{202, "", `{}`, "backend_invalid_response", false, 0},
		{202, "", `{"accepted":-1,"duplicates":0,"rejected":0}`, "backend_invalid_response", false, 0},
		{202, "", `<html>`, "backend_invalid_response", false, 0},
	} {
		header := map[string]string{}
		if c.after != "" {
			header["Retry-After"] = c.after
		}
		_, err := New("x").UploadTelemetry(t.Context(),
			&pluginv1.UploadTelemetryRequest{Target: of(answer(t, c.status, header, c.body)), Batch: []byte(usage)})
		p := problemOf(t, err)
		if p.GetCode() != c.code || p.GetRetryable() != c.retry || p.GetRetryAfterSeconds() != c.wait ||
			p.GetHttpStatus() != uint32(c.status) {
			t.Errorf("%d %s: got problem %v, want the case's code and pause", c.status, c.body, p)
		}
	}
}
