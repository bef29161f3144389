package session

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// deafGlasses have disconnected, but their stream has not ended yet.
type deafGlasses struct{}

func (deafGlasses) Send([]byte, bool) error { return errors.New("the pipe is closed") }

func (deafGlasses) Receive(ctx context.Context) ([]byte, bool, error) { return nil, false, ctx.Err() }

func (deafGlasses) SetPanel(backend.PairPanel) error { return errors.New("the pipe is closed") }

func (deafGlasses) Close() error { return nil }

func TestAsk_FailsIfFrameCannotBeSent(t *testing.T) {
	s := &localSession{transport: newTransport(), state: &stateFile{clock: time.Now}}
	s.transport.attach(deafGlasses{}, func() {})
	var p *problem.Error
	if _, err := s.ask(t.Context(), glasses.SimState, nil, nil); !errors.As(err, &p) || p.Code != problem.CodeNotConnected {
		t.Errorf("ask: %v, want not_connected", err)
	}
}

// refusing attaches one pair of glasses, and then refuses each attempt with a reason that the test sends.
type refusing struct {
	*fakeTransports
	reasons chan error
}

func (r refusing) Attach(ctx context.Context, name string, open backend.TransportOpen) (backend.Glasses, error) {
	if open.Snapshot == nil {
		return r.fakeTransports.Attach(ctx, name, open)
	}
	select {
	case err := <-r.reasons:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAttach_LogsAReasonOnce(t *testing.T) {
	f, r := &fakeBackend{}, refusing{&fakeTransports{}, make(chan error)}
	var logged bytes.Buffer
	m := New(Options{StateDir: t.TempDir(), Backend: f, Transports: r,
		Endpoints: fakeEndpoints{}, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	stop := serve(t, m)
	start(t, m, LocalRequest{Project: "a.b"})
	_ = r.last().Close()
	// The last reason repeats, so that no message is logged after it was received.
	for _, reason := range []string{"removed", "removed", "refused", "refused"} {
		r.reasons <- errors.New(reason)
	}
	stop()
	if text := logged.String(); strings.Count(text, "failed to attach glasses") != 2 ||
		!strings.Contains(text, "err=removed") || !strings.Contains(text, "err=refused") {
		t.Errorf("want each reason once, got:\n%s", text)
	}
}
