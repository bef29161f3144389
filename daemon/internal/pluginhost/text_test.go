package pluginhost

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// A state directory and a folder of fixtures work even if their names are not UTF-8.
func TestPathsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "caf\xe9")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skip("this file system accepts only UTF-8:", err)
	}
	sockets, err := os.MkdirTemp("/tmp", "a\xff")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	h, err := New(Options{Dir: install(t), ConfigDir: dir, SocketDir: sockets,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(ctx) }()
	defer func() { cancel(); <-done }()
	g, err := h.Attach(t.Context(), LocalSim, backend.TransportOpen{SessionID: "loc_a", DeviceModel: "rayban_display",
		Virtual: true, FixturesDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if r := ask(t, g, "display.show", "a", `{"tree":{"type":"text","text":"hello"}}`, nil); !r.OK {
		t.Errorf("%+v", r)
	}
}

// Other texts that are not UTF-8 cause no transport error either.
func TestTextsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	_, _, err := h.CreateSession(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1/\xff", InstallID: "inst_1",
		Requester: backend.Requester{Host: "h\xff"}},
		backendapi.SessionRequest{Project: "p\xff"})
	if p := code(t, err); p.Code != problem.CodeBackendUnreachable || !p.Retryable {
		t.Errorf("%+v", p)
	}
}
