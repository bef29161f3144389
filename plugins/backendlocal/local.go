package backendlocal

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/backend/server"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/plugins/internal/httpbackend"
	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// dataDir is the directory of the embedded backend in the state directory.
const dataDir = "backend"

// local runs the embedded backend: the first Describe starts it, Close stops it.
type local struct {
	*httpbackend.Server
	log *slog.Logger

	mu      sync.Mutex
	server  *server.Server
	stop    context.CancelFunc
	stopped chan struct{}
}

func newLocal(log *slog.Logger) *local {
	l := &local{log: log}
	l.Server = httpbackend.NewAt("backendlocal", l.locate)
	return l
}

// Describe starts the embedded backend if it is not running, and returns its ID and URL.
func (l *local) Describe(_ context.Context, r *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		if err := l.start(string(r.GetConfigDir()), r.GetNetwork()); err != nil {
			return nil, notStarted(err)
		}
	}
	return &pluginv1.DescribeResponse{
		Name: "backendlocal", Version: buildinfo.Version, EmbeddedId: "embedded:" + l.server.ID(), BaseUrl: l.server.URL(),
		SignInWord: l.server.SignInWord(),
	}, nil
}

// notStarted returns the error for an embedded backend that failed to start, which may be permanent.
func notStarted(err error) error {
	p := &pluginv1.Problem{
		Code: problem.CodeAdapterUnavailable, Message: "start the embedded backend: " + err.Error(), Retryable: true,
		FixHint: "Read the cause, then try again; `servicectl daemon logs` shows more.",
	}
	if errors.Is(err, server.ErrOtherKey) {
		p.Retryable, p.FixHint = false, "Do what the message suggests; the embedded backend then starts."
		return serve.Refuse(codes.FailedPrecondition, p)
	}
	return serve.Refuse(codes.Unavailable, p)
}

// start starts the backend, which outlives the call. The caller must hold mu.
func (l *local) start(configDir string, network *pluginv1.Network) error {
	if !filepath.IsAbs(configDir) {
		return errors.New("the state directory is not an absolute path")
	}
	requests := http.DefaultTransport.(*http.Transport).Clone()
	if err := httpbackend.SettingsOf(network).Apply(requests); err != nil {
		l.log.Warn("failed to read the certificates of ca_file", "err", err)
	}
	listeners, err := inherited()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := server.New(ctx, server.Options{
		DataDir: filepath.Join(configDir, dataDir), StateDir: stateDir(configDir), Listeners: listeners, Log: l.log,
		HTTP: &http.Client{Transport: requests},
	})
	if err != nil {
		cancel()
		return err
	}
	l.server, l.stop, l.stopped = s, cancel, make(chan struct{})
	go func() {
		defer close(l.stopped)
		if err := s.Serve(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("embedded backend ended", "err", err)
			os.Exit(1) // exit, so that the host restarts the adapter
		}
	}()
	return nil
}

// stateDir returns the state directory if tools can find it only with SERVICE_CONFIG_DIR, or "" otherwise.
func stateDir(configDir string) string {
	if usual, err := rendezvous.DefaultDir(); err == nil && usual == filepath.Clean(configDir) {
		return ""
	}
	return configDir
}

// locate returns the embedded backend's URL for every target.
func (l *local) locate(context.Context, *pluginv1.Target) (string, error) {
	s, err := l.started()
	if err != nil {
		return "", err
	}
	return s.LoopbackURL(), nil
}

// Activity reports the current activity of the embedded backend.
func (l *local) Activity(ctx context.Context, _ *pluginv1.ActivityRequest) (*pluginv1.ActivityResponse, error) {
	l.mu.Lock()
	s := l.server
	l.mu.Unlock()
	if s == nil {
		return &pluginv1.ActivityResponse{}, nil
	}
	connections, pending, err := s.Activity(ctx)
	if err != nil {
		return nil, err
	}
	return &pluginv1.ActivityResponse{Connections: uint32(max(0, connections)), PendingCodes: uint32(max(0, pending))}, nil
}

// Call makes one request to the embedded backend. Usage events are refused: they stay in the daemon's log on this
// machine.
func (l *local) Call(ctx context.Context, r *pluginv1.CallRequest) (*pluginv1.CallResponse, error) {
	if r.GetRoute() == backendapi.RouteUploadTelemetry || r.GetRoute() == backendapi.RoutePurgeTelemetry {
		return nil, nowhere()
	}
	return l.Server.Call(ctx, r)
}

func nowhere() error {
	return serve.Refuse(codes.Unimplemented, &pluginv1.Problem{
		Code: problem.CodeNotConfigured, Message: "the embedded backend stores no usage events: they stay on this machine",
		FixHint: "No action is needed; `servicectl telemetry purge` erases the local log.",
	})
}

// Close drains and stops the embedded backend, for as long as ctx allows.
func (l *local) Close(ctx context.Context) error {
	l.mu.Lock()
	stop, stopped := l.stop, l.stopped
	l.mu.Unlock()
	if stop == nil {
		return l.Server.Close(ctx)
	}
	stop()
	select {
	case <-stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.Server.Close(ctx)
}
