//go:build unix

package client

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/rendezvous"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// otherDaemon is a daemon of another build; each test sets its response to Hello.
type otherDaemon struct {
	controlv1.UnimplementedControlServer
	hello func(*controlv1.HelloRequest) (*controlv1.HelloResponse, error)
}

func (d *otherDaemon) Hello(_ context.Context, r *controlv1.HelloRequest) (*controlv1.HelloResponse, error) {
	return d.hello(r)
}

// serve makes d the daemon of the test's state directory.
func serve(t *testing.T, d controlv1.ControlServer) {
	t.Helper()
	serveOn(t, d, func(l net.Listener) net.Listener { return l })
}

// serveOn is like serve, with connections from a wrapped listener.
func serveOn(t *testing.T, d controlv1.ControlServer, listener func(net.Listener) net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("SERVICE_CONFIG_DIR", dir)
	run := filepath.Join(dir, rendezvous.RunDir)
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(run, rendezvous.ControlName))
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	controlv1.RegisterControlServer(g, d)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener(l)) }()
	t.Cleanup(func() { g.Stop(); <-done })
}

// A daemon with another protocol range, newer or older, causes a readable error with the next step, no matter whether
// the daemon or the client detects the mismatch.
func TestOpen_RefusesOtherProtocols(t *testing.T) {
	old := &controlv1.HelloResponse{Version: "0.0.1"}
	next := &controlv1.HelloResponse{Version: "9.0.0", ProtocolMin: rendezvous.ProtocolMax + 1,
		ProtocolMax: rendezvous.ProtocolMax + 3}
	refused, err := status.New(codes.FailedPrecondition, "x").WithDetails(&controlv1.Error{
		Code: "protocol_mismatch", Message: "the client is too old: ...", FixHint: "Upgrade the client: ...",
	})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		daemon        controlv1.ControlServer
		message, next string
	}{
		"an older one":        {answering(old, nil), "daemon (0.0.1) is too old", "servicectl daemon restart"},
		"a newer one":         {answering(next, nil), "too old for the running daemon (9.0.0)", "Upgrade this program"},
		"a newer one refuses": {answering(nil, refused.Err()), "the client is too old", "Upgrade the client"},
		"one of before the hello": {controlv1.UnimplementedControlServer{}, "older than this program",
			"servicectl daemon restart"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			serve(t, c.daemon)
			_, err := Open(t.Context(), Options{Program: "servicectl", Running: true})
			var e *Error
			if !errors.As(err, &e) || e.Code != "protocol_mismatch" || e.Retryable || !strings.Contains(e.Message, c.message) ||
				!strings.Contains(e.FixHint, c.next) {
				t.Fatalf("got error %#v", err)
			}
		})
	}
}

func answering(r *controlv1.HelloResponse, err error) controlv1.ControlServer {
	return &otherDaemon{hello: func(*controlv1.HelloRequest) (*controlv1.HelloResponse, error) { return r, err }}
}

// A daemon that supports additional protocol versions is accepted.
func TestOpen_OverlappingProtocols(t *testing.T) {
	var asked *controlv1.HelloRequest
	serve(t, &otherDaemon{hello: func(r *controlv1.HelloRequest) (*controlv1.HelloResponse, error) {
		asked = r
		return &controlv1.HelloResponse{ProtocolMin: 0, ProtocolMax: rendezvous.ProtocolMax + 5}, nil
	}})
	c, err := Open(t.Context(), Options{Program: "servicectl", Running: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if asked.GetProtocolMin() != rendezvous.ProtocolMin || asked.GetProtocolMax() != rendezvous.ProtocolMax ||
		asked.GetCaller().GetClient() != "servicectl" {
		t.Errorf("unexpected Hello request: %v", asked)
	}
}

// If a daemon accepts the connection and never responds, the error explains that instead of showing a gRPC code.
func TestOpen_SilentDaemon(t *testing.T) {
	serve(t, &otherDaemon{hello: func(*controlv1.HelloRequest) (*controlv1.HelloResponse, error) {
		return nil, status.FromContextError(context.DeadlineExceeded).Err()
	}})
	_, err := Open(t.Context(), Options{Running: true})
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeNoAnswer || !e.Retryable || e.FixHint == "" {
		t.Fatalf("got error %#v, want a retryable CodeNoAnswer", err)
	}
}

func TestOpen_NotRunning(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SERVICE_CONFIG_DIR", dir)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := Open(ctx, Options{Running: true}); !errors.Is(err, dialer.ErrNotRunning) {
		t.Fatalf("got error %v, want ErrNotRunning", err)
	}
}

// endingDaemons simulates daemons that exit right after greeting a client: every other connection reaches such a
// daemon.
type endingDaemons struct {
	net.Listener
	connections int
	held        []net.Conn // keeps the connections from being closed by the garbage collector
}

func (l *endingDaemons) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if l.connections++; err == nil && l.connections%2 == 1 {
		settings, goAway := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		_, _ = conn.Write(append(settings, goAway...))
		l.held = append(l.held, conn)
		return l.Accept() // the client closes the connection
	}
	return conn, err
}

// If a daemon exits just after a connection was made, the client connects to the next one instead of reporting that
// the daemon does not respond.
func TestOpen_DaemonEndsAfterFirstFrame(t *testing.T) {
	hello := &controlv1.HelloResponse{ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax}
	serveOn(t, answering(hello, nil),
		func(l net.Listener) net.Listener { return &endingDaemons{Listener: l} })
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		c, err := Open(ctx, Options{Program: "servicectl", Running: true})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}
