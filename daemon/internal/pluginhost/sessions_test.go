package pluginhost

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// statusOf returns the status of a shipped adapter.
func statusOf(h *Host, name string) PluginStatus { return h.adapters[name].snapshot() }

// Calls about sessions of the embedded backend need its own adapter only. A token of another embedded backend is not
// sent to it.
func TestHostedSessions_OfTheEmbeddedBackend(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	id, url, err := h.Embedded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.ListSessions(t.Context(), backend.Target{BaseURL: "embedded:other", Bearer: "svc_x"})
	if p := code(t, err); p.Code != problem.CodeAuthRequired || p.HTTPStatus != 0 {
		t.Errorf("a token of another instance: %+v", p)
	}
	for _, at := range []string{id, backend.EmbeddedURL} {
		_, _, err = h.CreateSession(t.Context(), backend.Target{BaseURL: at, InstallID: "inst_abcd"},
			backendapi.SessionRequest{Project: "com.example.app"})
		p, refused := code(t, err), (*backend.AuthRequired)(nil)
		if p.Code != problem.CodeAuthRequired || p.HTTPStatus != http.StatusUnauthorized || !errors.As(err, &refused) ||
			!isActivation(refused.DeviceCode.VerificationURL, url) {
			t.Errorf("without a link at %s: %+v", at, p)
		}
	}
	if got := statusOf(h, BrowserSim); got.State != Stopped {
		t.Errorf("afterwards: %+v, want it stopped", got)
	}
}

// A token is sent only to the program listed in the manifest.
func TestHostedSessions_TokenNeedsTheShippedFile(t *testing.T) {
	t.Parallel()
	dir := install(t)
	data, err := os.ReadFile(filepath.Join(dir, program))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, program), append(data, "more"...), 0o755) // still runs
	h, _ := serve(t, dir)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the backend was called")
	}))
	defer srv.Close()
	_, err = h.ListSessions(t.Context(), backend.Target{BaseURL: srv.URL, Bearer: "svc_1"})
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable || p.Retryable ||
		!strings.Contains(p.Message, "checksum") {
		t.Errorf("%+v, want the file refused for its checksum", p)
	}
}

// An adapter that does not serve the sessions, e.g. one of another version, is reported as such.
func TestHostedSessions_NotServed(t *testing.T) {
	t.Parallel()
	dir := install(t)
	const file, another = "service-plugin-" + BrowserSim, "$TMPDIR/service-plugin-" + LocalSim
	write(t, filepath.Join(dir, file),
		fmt.Appendf(nil, "#!/bin/sh\nln -s '%s/%s' %s && exec %s\n", dir, program, another, another), 0o755)
	list(t, dir, file)
	h, _ := serve(t, dir)
	_, err := h.GetSession(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", Bearer: "svc_1"}, "ses_1")
	if p := code(t, err); p.Code != problem.CodeAdapterUnavailable || p.Retryable ||
		!strings.Contains(p.Message, "different versions") || !strings.Contains(p.FixHint, "servicectl daemon restart") {
		t.Errorf("%+v, want the adapter blamed, and the command to run", p)
	}
}
