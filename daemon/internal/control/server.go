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
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/descriptors"
	"github.com/service-dev/service/daemon/internal/ratelog"
	controlv1 "github.com/service-dev/service/proto/control/v1"
	"github.com/service-dev/service/proto/wiretext"
)

// Bounds of the door. A message holds at most a tool's arguments; a person has a handful of terminals.
const (
	maxMessage = 4 << 20
	maxHeaders = 64 << 10
	// maxStreams is how many calls one connection may have under way; a client that knows HTTP/2 queues the others.
	maxStreams = 64
	// maxIdle is how long a connection may be without a call.
	maxIdle = 10 * time.Minute
	// drain is how long calls under way may go on after Serve was asked to end.
	drain = 2 * time.Second
)

// Options are the parts a Server stands on. All but Limits are required.
type Options struct {
	About    About
	Accounts Accounts
	Logins   Logins
	Consents Consents
	// Telemetry is what is recorded; see telemetry.go.
	Telemetry Telemetry
	Tools     Catalogue
	System    System
	// ClientIO finds the process that carries out a caller's operations by its token; nil when there is none.
	ClientIO func(token string) caller.IO
	// Limits may be left out.
	Limits Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// Server serves the control contract.
type Server struct {
	controlv1.UnimplementedControlServer
	o        Options
	visitors *guests
	ending   chan struct{} // closed when Serve was asked to end
	active   atomic.Int64
	total    atomic.Int64
}

// New makes a server; nothing is opened.
func New(o Options) *Server {
	return &Server{o: o, visitors: newGuests(o.Limits, o.Log), ending: make(chan struct{})}
}

// Active is the number of calls under way.
func (s *Server) Active() int { return int(s.active.Load()) }

// Calls is the number of calls ever begun: who watches it sees that somebody was here.
func (s *Server) Calls() int64 { return s.total.Load() }

// Serve answers on l until ctx ends, then lets the calls under way finish for a moment. It is called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := grpc.NewServer(
		grpc.ForceServerCodecV2(wiretext.Codec()), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(5*time.Second), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle}),
		grpc.Creds(known{insecure.NewCredentials()}), grpc.InTapHandle(s.visitors.tap),
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
		close(s.ending)
		force := time.AfterFunc(drain, g.Stop)
		defer force.Stop()
		g.GracefulStop()
	})
	err := g.Serve(&guarded{Listener: l, log: ratelog.New(s.o.Log, quietFor, time.Now), visitors: s.visitors, reserve: descriptors.NewReserve()})
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

// guarded lets in the daemon's own user only, and no more than there is room for.
type guarded struct {
	net.Listener
	log      *ratelog.Logger
	visitors *guests
	reserve  *descriptors.Reserve
}

func (l *guarded) Accept() (net.Conn, error) {
	for {
		l.reserve.Fill()
		conn, err := l.Listener.Accept()
		short := descriptors.Exhausted(err)
		if short && l.visitors.evictIdle() {
			continue
		}
		if short {
			if conn = l.reserve.Accept(l.Listener, err); conn == nil {
				return nil, err // after which gRPC pauses
			}
		} else if err != nil {
			return nil, err
		}
		if err := CheckPeer(conn); err != nil {
			l.log.Warn("refusing a connection to control.sock", "err", err)
			conn.Close()
			continue
		}
		if short {
			l.log.Warn("refusing a connection to control.sock", "err", "no descriptor is free")
			return l.visitors.turnAway(conn), nil
		}
		if g := l.visitors.admit(conn); g != nil {
			return g, nil
		}
		l.log.Warn("refusing a connection to control.sock", "err", "too many are open")
		conn.Close()
	}
}
