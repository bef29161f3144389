package httpbackend

import (
	"encoding/json"
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

func TestControlCarriesMediaAndResult(t *testing.T) {
	target, last, sent := recorded(t, 200, `{"result":{"ok":true,"later":1}}`)
	r, err := NewSessions().Control(t.Context(), &pluginv1.ControlRequest{
		Target: target, SessionId: "ses_1", Type: "sim.camera", Payload: []byte(`{"a":1}`), Media: []byte{0, 255}})
	if err != nil || string(r.GetResult()) != `{"ok":true,"later":1}` {
		t.Fatalf("got result %s, error %v; want the page's result", r.GetResult(), err)
	}
	var body backendapi.Control
	if err := json.Unmarshal(*sent, &body); err != nil || body.Type != "sim.camera" ||
		string(body.Payload) != `{"a":1}` || string(body.Media) != "\x00\xff" {
		t.Errorf("got request %s to %s, error %v; want the control frame with its media", *sent, last.URL, err)
	}
	if last.URL.Path != "/api/sessions/ses_1/control" {
		t.Errorf("got path %s, want the session's control route", last.URL.Path)
	}
	if _, err := NewSessions().Control(t.Context(), &pluginv1.ControlRequest{Target: target, SessionId: "ses_1",
		Type: "sim.state", Payload: []byte("{")}); problemOf(t, err).GetCode() != "invalid_request" {
		t.Errorf("a payload that is not JSON: got %v, want an error", err)
	}
	target, _, _ = recorded(t, 200, `{"result":7}`)
	if _, err := NewSessions().Control(t.Context(), &pluginv1.ControlRequest{Target: target,
		SessionId: "ses_1"}); problemOf(t, err).GetCode() != "backend_invalid_response" {
		t.Errorf("an invalid result: got %v, want backend_invalid_response", err)
	}
}

// The backend is not reported as unreachable if a simulator page does not respond.
func TestControlRefusals(t *testing.T) {
	for status, code := range map[int]string{504: "timeout", 409: "not_connected"} {
		target, _, _ := recorded(t, status, `{"code":"`+code+`","detail":"x","retryable":true}`)
		_, err := NewSessions().Control(t.Context(), &pluginv1.ControlRequest{Target: target, SessionId: "ses_1",
			Type: "sim.state"})
		if p := problemOf(t, err); p.GetCode() != code || !p.GetRetryable() {
			t.Errorf("status %d: got %+v, want the page's retryable error", status, p)
		}
	}
	target, _, _ := recorded(t, 504, `<html>`)
	_, err := NewSessions().Control(t.Context(), &pluginv1.ControlRequest{Target: target, SessionId: "ses_1",
		Type: "sim.state"})
	if p := problemOf(t, err); p.GetCode() != "backend_unreachable" {
		t.Errorf("a 504 of a proxy: got %+v, want backend_unreachable", p)
	}
}

func TestListEventsWaits(t *testing.T) {
	for asked, want := range map[int32]string{0: "", -5: "", 700: "700", 99_000: "25000"} {
		target, last, _ := recorded(t, 200, `{"events":[],"next":3,"more":false}`)
		if _, err := NewSessions().ListEvents(t.Context(), &pluginv1.ListEventsRequest{Target: target, SessionId: "ses_1",
			WaitMs: asked}); err != nil {
			t.Fatal(err)
		}
		if got := last.URL.Query().Get("waitMs"); got != want {
			t.Errorf("a wait of %d ms was sent as %q, want it within the limits", asked, got)
		}
	}
}

func TestMintProjectKey(t *testing.T) {
	target, last, sent := recorded(t, 201, `{"projectKey":"spk_x","hint":"k_x","createdAt":"2026-01-02T03:04:05.000Z"}`)
	r, err := New("x").MintProjectKey(t.Context(), &pluginv1.MintProjectKeyRequest{Target: target,
		Project: "com.example/app", Name: "laptop"})
	if err != nil || r.GetProjectKey() != "spk_x" || r.GetHint() != "k_x" || r.GetCreatedAt() != 1767323045000 {
		t.Errorf("got time %d, error %v; want the backend's key and time", r.GetCreatedAt(), err)
	}
	if last.URL.EscapedPath() != "/api/projects/com.example%2Fapp/keys" || string(*sent) != `{"name":"laptop"}` {
		t.Errorf("got request %s to %s, want the name and the escaped project", *sent, last.URL.EscapedPath())
	}
	for _, bad := range []string{`{}`, `{"projectKey":"spk_x","createdAt":"today"}`} {
		target, _, _ := recorded(t, 201, bad)
		_, err := New("x").MintProjectKey(t.Context(), &pluginv1.MintProjectKeyRequest{Target: target,
			Project: "com.example.app", Name: "x"})
		if problemOf(t, err).GetCode() != "backend_invalid_response" {
			t.Errorf("%s: got %v, want backend_invalid_response", bad, err)
		}
	}
}
