package control

import (
	"context"
	"errors"
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
	"github.com/service-dev/service/internal/wiretext"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Limits of the socket. A message contains at most the arguments of one tool call, and a user has only a few terminals.
const (
	maxMessage = 4 << 20
	maxHeaders = 64 << 10
	// maxStreams is the maximum number of calls in progress on one connection; an HTTP/2 client queues further ones.
	maxStreams = 64
	// maxIdle is how long a connection may be idle before it is closed.
	maxIdle = 10 * time.Minute
	// drain is how long calls may continue after ctx has ended.
	drain = 2 * time.Second
)

// Options are the components that a Server calls. All except Limits are required.
type Options struct {
	About    About
	Accounts Accounts
	Logins   Logins
	Consents Consents
	// Telemetry is declared in telemetry.go.
	Telemetry Telemetry
	Tools     Catalogue
	// Fonts is declared in fonts.go.
	Fonts Fonts
	// Glasses is declared in glasses.go.
	Glasses  Glasses
	Adapters Adapters
	System   System
	// LocalAccounts is declared in local_accounts.go.
	LocalAccounts LocalAccounts
	// ClientIO returns the process that executes a caller's operations, identified by its token; nil if there is none.
	ClientIO func(token string) caller.IO
	// Limits limits the clients' use of resources; zero values mean the defaults.
	Limits Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// Server serves the control contract.
type Server struct {
	controlv1.UnimplementedControlServer
	o        Options
	conns    *connLimiter
	stopping chan struct{} // closed when Serve is asked to stop
	active   atomic.Int64
	total    atomic.Int64
}

// New returns a server without opening a socket.
func New(o Options) *Server {
	return &Server{o: o, conns: newConnLimiter(o.Limits, o.Log), stopping: make(chan struct{})}
}

// Active returns the number of calls in progress.
func (s *Server) Active() int { return int(s.active.Load()) }

// Calls returns the number of calls since the start. The daemon uses it to detect activity.
func (s *Server) Calls() int64 { return s.total.Load() }

// Serve serves l until ctx ends, then briefly lets open calls finish. Call it once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := grpc.NewServer(
		grpc.ForceServerCodecV2(wiretext.Codec()), grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(5*time.Second), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle}),
		grpc.Creds(connCredentials{insecure.NewCredentials()}), grpc.InTapHandle(s.conns.tap),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
	)
	controlv1.RegisterControlServer(g, s)
	var drained sync.WaitGroup
	drained.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer drained.Done()
		close(s.stopping)
		force := time.AfterFunc(drain, g.Stop)
		defer force.Stop()
		g.GracefulStop()
	})
	err := g.Serve(&limitedListener{
		Listener: l, log: ratelog.New(s.o.Log, logInterval, time.Now), conns: s.conns, reserve: descriptors.NewReserve(),
	})
	if stop() {
		drained.Done()
	}
	drained.Wait()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve control.sock: %w", err)
	}
	return nil
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any,
	err error) {
	defer s.enter()()
	defer s.recoverPanic(info.FullMethod, &err)
	return next(ctx, req)
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo,
	next grpc.StreamHandler) (err error) {
	defer s.enter()()
	defer s.recoverPanic(info.FullMethod, &err)
	return next(srv, ss)
}

func (s *Server) enter() (leave func()) {
	s.total.Add(1)
	s.active.Add(1)
	return func() { s.active.Add(-1) }
}

// recoverPanic turns a panic into an error of the call that caused it. The panic value may contain data of the call, so
// only its type is logged.
func (s *Server) recoverPanic(method string, err *error) {
	if r := recover(); r != nil {
		s.o.Log.Error("control call panicked", "method", method, "type", fmt.Sprintf("%T", r))
		*err = refuse(codes.Internal, &controlv1.Error{
			Code: "internal", Message: "the daemon had an internal error", FixHint: "Report the log: `servicectl daemon logs`.",
		})
	}
}

var errTooManyConnections = errors.New("too many connections")

// limitedListener admits only connections of the daemon's own user, within the limits.
type limitedListener struct {
	net.Listener
	log     *ratelog.Logger
	conns   *connLimiter
	reserve *descriptors.Reserve
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		l.reserve.Fill()
		conn, err := l.Listener.Accept()
		exhausted := descriptors.Exhausted(err)
		if exhausted && l.conns.evictIdle() {
			continue
		}
		if exhausted {
			conn = l.reserve.Accept(l.Listener, err)
		}
		if conn == nil {
			return nil, err // gRPC retries after a short delay
		}
		refused := CheckPeer(conn)
		if refused == nil {
			admit := l.conns.admit
			if exhausted {
				admit = l.conns.admitExhausted
			}
			if admitted := admit(conn); admitted != nil {
				return admitted, nil
			}
			refused = errTooManyConnections
		}
		l.log.Warn("refused a connection to control.sock", "err", refused)
		conn.Close()
	}
}
