package pluginhost

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Calls on sessions and projects pass through the real adapter without losing data in either direction.
func TestSessionCallsOverRealAdapter(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	picture := bytes.Repeat([]byte{0xff}, 1<<20)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/sessions/ses_1/control", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Type    string
			Payload json.RawMessage
			Media   []byte
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Type != "sim.camera" ||
			string(in.Payload) != `{"a":1}` || !bytes.Equal(in.Media, picture) {
			t.Errorf(`the backend received %s %s with %d bytes (error %v), want sim.camera {"a":1} with %d bytes`, in.Type,
				in.Payload, len(in.Media), err, len(picture))
		}
		_, _ = io.WriteString(w, `{"result":{"ok":true,"later":1}}`)
	})
	mux.HandleFunc("POST /api/sessions/ses_2/control", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"not_connected","detail":"no page","retryable":true,"fixHint":"open it"}`)
	})
	mux.HandleFunc("GET /api/sessions/ses_1/events", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"events":[{"wait":"`+r.URL.Query().Get("waitMs")+`"}],"next":4,"more":true}`)
	})
	mux.HandleFunc("POST /api/projects/com.example.app/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"projectKey":"spk_x","hint":"pk_x","createdAt":"2026-01-02T03:04:05.000Z"}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"sessionId":"ses_1","state":"\u001b[2J","result":7}`)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	to := backend.Target{BaseURL: srv.URL, Bearer: "svc_1"}

	result, err := h.Control(t.Context(), to, "ses_1", "sim.camera", json.RawMessage(`{"a":1}`), picture)
	if err != nil || string(result) != `{"ok":true,"later":1}` {
		t.Errorf("control: %s, %v; want the result unchanged", result, err)
	}
	_, err = h.Control(t.Context(), to, "ses_2", "sim.state", nil, nil)
	if p := code(t, err); p.Code != "not_connected" || !p.Retryable || p.FixHint != "open it" {
		t.Errorf("control without a page: %+v, want not_connected unchanged", p)
	}
	for wait, want := range map[time.Duration]string{0: "", 1500 * time.Millisecond: "1500", time.Hour: "25000"} {
		page, err := h.WaitEvents(t.Context(), to, "ses_1", 3, 10, wait)
		if err != nil || page.Next != 4 || !page.More || len(page.Events) != 1 ||
			string(page.Events[0]) != `{"wait":"`+want+`"}` {
			t.Errorf("events after waiting %v: %+v, %v", wait, page, err)
		}
	}
	key, err := h.MintProjectKey(t.Context(), to, "com.example.app", "laptop")
	if err != nil || key != (backend.ProjectKey{Key: "spk_x", Hint: "pk_x",
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}) {
		t.Errorf("key: %v, %v", key.CreatedAt, err)
	}
	_, unusable := h.GetSession(t.Context(), to, "ses_1")
	_, empty := h.Account(t.Context(), to)
	_, noObject := h.Control(t.Context(), to, "ses_3", "sim.state", nil, nil)
	for _, err := range []error{unusable, empty, noObject} {
		if p := code(t, err); p.Code != problem.CodeInvalidResponse || p.HTTPStatus != http.StatusOK || p.Retryable ||
			p.FixHint != backendapi.FixHintMismatch || strings.Contains(p.Message, "\x1b") {
			t.Errorf("a response of another program: %+v", p)
		}
	}
	if !h.Contact(srv.URL).OK {
		t.Error("a backend that responded counts as unreachable")
	}
	_, err = h.Control(t.Context(), to, "ses_1", "sim.state", json.RawMessage(`{`), nil)
	_, pathless := h.GetSession(t.Context(), to, "..")
	_, upload := h.UploadTelemetry(t.Context(), to, []byte(`{`))
	revoke := h.RevokeLink(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "inst_1"})
	for _, err := range []error{err, pathless, upload, revoke} {
		if p := code(t, err); p.Code != problem.CodeInvalidRequest || p.FixHint == "" {
			t.Errorf("a request that must not be sent: %+v", p)
		}
	}
}
