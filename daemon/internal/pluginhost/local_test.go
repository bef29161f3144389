package pluginhost

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

// isActivation reports whether a page is the activation page of the embedded backend at url, under the pages' own host.
func isActivation(page, url string) bool {
	port := strings.TrimPrefix(url, "http://localhost:")
	return strings.HasPrefix(page, "http://service-") && strings.Contains(page, ".localhost:"+port+"/activate?code=")
}

// TestEmbeddedBackend runs the compiled backendlocal. It issues a code, keeps its id and port across a crash, and its
// token is never sent to another instance.
func TestEmbeddedBackend(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))

	if c, p := h.Activity(t.Context()); c+p != 0 {
		t.Fatal("an adapter is running before it is needed")
	}
	code1, err := h.IssueDeviceCode(t.Context(), backend.Target{BaseURL: backend.EmbeddedURL, InstallID: "inst_abcd"},
		"account_full")
	if err != nil {
		t.Fatal(err)
	}
	id, url, err := h.Embedded(t.Context())
	if err != nil || !strings.HasPrefix(id, "embedded:") ||
		!isActivation(code1.VerificationURL, url) {
		t.Fatalf("%q %q %+v %v", id, url, code1.VerificationURL, err)
	}
	if poll, err := h.PollDeviceToken(t.Context(), backend.Target{BaseURL: id, InstallID: "inst_abcd"},
		code1.DeviceCode); err != nil || poll.Token != nil || poll.PollInterval <= 0 {
		t.Fatalf("%+v, %v", poll, err)
	}
	if _, pending := h.Activity(t.Context()); pending != 1 {
		t.Errorf("%d codes are pending, want 1", pending)
	}
	_, err = h.Account(t.Context(), backend.Target{BaseURL: "embedded:other", Bearer: "svc_x"})
	if p := code(t, err); p.Code != problem.CodeAuthRequired || p.HTTPStatus != 0 {
		t.Fatalf("a token was sent to another instance: %+v", p)
	}
	_, err = h.Account(t.Context(), backend.Target{BaseURL: id, InstallID: "inst_abcd"})
	if p := code(t, err); p.Code != problem.CodeAuthRequired || !errors.As(err, new(*backend.AuthRequired)) ||
		p.HTTPStatus != 401 {
		t.Fatalf("unlinked: %+v", p)
	}
	old := h.Plugins()[1].PID
	proc, _ := os.FindProcess(old)
	_ = proc.Kill()
	for h.Plugins()[1].PID == old { // the host notices the crash without a call
		runtime.Gosched()
	}
	id2, url2, err := h.Embedded(t.Context())
	if err != nil || id2 != id || url2 != url {
		t.Fatalf("after the crash: %q %q %v; want the same id and port", id2, url2, err)
	}
}
