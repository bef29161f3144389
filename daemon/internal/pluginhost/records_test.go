package pluginhost

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func golden(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "proto", "backendapi", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Calls on records pass through the real adapter without losing data in either direction.
func TestRecordCallsOverRealAdapter(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	const home = "/api/projects/com.example.hello/"
	mux := http.NewServeMux()
	serveGolden := func(route, name string, check func(r *http.Request, body string) bool) {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if check != nil && !check(r, string(body)) {
				t.Errorf("%s arrived as %s %s", route, r.URL, body)
			}
			_, _ = w.Write(golden(t, name))
		})
	}
	serveGolden("GET /api/projects", "project_list", nil)
	serveGolden("GET "+home+"assistant", "assistant_config_hidden", nil)
	serveGolden("PATCH "+home+"assistant", "assistant_config",
		func(_ *http.Request, body string) bool { return body == `{"version":3,"voice":"ember","sounds":false}` })
	serveGolden("GET "+home+"credentials", "credential_list", nil)
	serveGolden("POST "+home+"credentials/openai/link", "credential_link",
		func(_ *http.Request, body string) bool { return body == `{}` })
	serveGolden("GET "+home+"analytics", "analytics_report",
		func(r *http.Request, _ string) bool { return r.URL.RawQuery == "interval=hour&range=24h" })
	serveGolden("GET "+home+"connection-page", "connection_page", nil)
	serveGolden("PATCH "+home+"connection-page", "connection_page",
		func(_ *http.Request, body string) bool { return body == `{"version":2,"toggles":[]}` })
	mux.HandleFunc("GET /api/projects/com.example.denied/assistant", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(golden(t, "permission_denied"))
	})
	mux.HandleFunc("PATCH /api/projects/com.example.changed/assistant", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(golden(t, "version_conflict"))
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	to, ctx, voice, sounds := backend.Target{BaseURL: srv.URL, Bearer: "svc_1"}, t.Context(), "ember", false

	if list, err := h.Projects(ctx, to); err != nil || len(list) != 1 || list[0].Project != "com.example.hello" {
		t.Errorf("projects: %+v, %v; want com.example.hello", list, err)
	}
	if c, err := h.Assistant(ctx, to, "com.example.hello"); err != nil || c.Voice != nil ||
		c.Access["voice"] != backendapi.LevelOff {
		t.Errorf("assistant: %+v, %v; want it without a voice", c, err)
	}
	if c, err := h.ChangeAssistant(ctx, to, "com.example.hello",
		backendapi.AssistantChange{Version: 3, Voice: &voice, Sounds: &sounds}); err != nil || c.Version != 4 {
		t.Errorf("changed assistant: %+v, %v", c, err)
	}
	if c, err := h.Credentials(ctx, to, "com.example.hello"); err != nil || len(c.Credentials) != 2 {
		t.Errorf("credentials: %+v, %v; want 2", c, err)
	}
	if l, err := h.CredentialLink(ctx, to, "com.example.hello", "openai"); err != nil || l.URL == "" {
		t.Errorf("link: %v", err)
	}
	if r, err := h.Analytics(ctx, to, "com.example.hello",
		backend.AnalyticsQuery{Range: "24h", Interval: "hour"}); err != nil || r.Totals.Sessions != 9007199254740993 {
		t.Errorf("analytics: %+v, %v", r, err)
	}
	if p, err := h.ConnectionPage(ctx, to, "com.example.hello"); err != nil || p.Version != 2 {
		t.Errorf("page: %+v, %v", p, err)
	}
	change := backendapi.ConnectionPageChange{Version: 2, Toggles: &[]backendapi.ConnectionPageToggle{}}
	if p, err := h.ChangeConnectionPage(ctx, to, "com.example.hello", change); err != nil || p.Title != "Hello" {
		t.Errorf("changed page: %+v, %v; want the title Hello", p, err)
	}
	_, err := h.Assistant(ctx, to, "com.example.denied")
	if p := code(t, err); p.Code != problem.CodePermissionDenied || p.Capability != backendapi.CapabilityAssistant ||
		p.Field != "voice" ||
		p.Needed != backendapi.LevelReadWrite || p.Granted != backendapi.LevelRead {
		t.Errorf("denied: %+v", p)
	}
	_, err = h.ChangeAssistant(ctx, to, "com.example.changed", backendapi.AssistantChange{})
	if p := code(t, err); p.Code != problem.CodeVersionConflict || p.CurrentVersion == nil ||
		*p.CurrentVersion != 9007199254740993 {
		t.Errorf("conflict: %+v", p)
	}
}
