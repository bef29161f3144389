package control

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Bounds of the door. A message holds at most a tool's arguments; a person has a handful of terminals.
const (
	maxMessage     = 4 << 20
	maxStreams     = 64
	maxConnections = 128
	// drain is how long calls under way may go on after Serve was asked to end.
	drain = 2 * time.Second
)

// Options are the parts a Server stands on. All are required.
type Options struct {
	About    About
	Accounts Accounts
	Logins   Logins
	Consents Consents
	// Telemetry is what is recorded; see telemetry.go.
	Telemetry Telemetry
	Tools     Catalogue
	System    System
	Log       *slog.Logger
	Now       func() time.Time
}

// Server serves the control contract.
type Server struct {
	controlv1.UnimplementedControlServer
	o      Options
	active atomic.Int64
	total  atomic.Int64
}

// New makes a server; nothing is opened.
func New(o Options) *Server { return &Server{o: o} }

// Active is the number of calls under way.
func (s *Server) Active() int { return int(s.active.Load()) }

// Calls is the number of calls ever begun: who watches it sees that somebody was here.
func (s *Server) Calls() int64 { return s.total.Load() }

// Serve answers on l until ctx ends, then lets the calls under way finish for a moment.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(5*time.Second),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
	)
	controlv1.RegisterControlServer(g, s)
	done := make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		force := time.AfterFunc(drain, g.Stop)
		defer force.Stop()
		g.GracefulStop()
	})
	err := g.Serve(&guarded{Listener: l, log: s.o.Log, slots: make(chan struct{}, maxConnections)})
	close(done)
	stopping.Wait()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving control.sock: %w", err)
	}
	return nil
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer s.enter()()
	defer s.fence(info.FullMethod, &err)
	return next(ctx, req)
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer s.enter()()
	defer s.fence(info.FullMethod, &err)
	return next(srv, ss)
}

func (s *Server) enter() (leave func()) {
	s.total.Add(1)
	s.active.Add(1)
	return func() { s.active.Add(-1) }
}

// fence turns a panic into a refusal of the one call. The value may quote what the call carried: only its type is told.
func (s *Server) fence(method string, err *error) {
	if r := recover(); r != nil {
		s.o.Log.Error("a control call panicked", "method", method, "type", fmt.Sprintf("%T", r))
		*err = refuse(codes.Internal, &controlv1.Error{
			Code: "internal", Message: "the daemon had an internal error", FixHint: "Report the log: `servicectl daemon logs`.",
		})
	}
}

// guarded lets in the daemon's own user only, and no more than there are slots.
type guarded struct {
	net.Listener
	log   *slog.Logger
	slots chan struct{}
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := CheckPeer(conn); err != nil {
			g.log.Warn("refusing a connection to control.sock", "err", err)
			conn.Close()
			continue
		}
		select {
		case g.slots <- struct{}{}:
			return &slotted{Conn: conn, release: sync.OnceFunc(func() { <-g.slots })}, nil
		default:
			g.log.Warn("refusing a connection to control.sock", "err", "too many are open")
			conn.Close()
		}
	}
}

type slotted struct {
	net.Conn
	release func()
}

func (c *slotted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
