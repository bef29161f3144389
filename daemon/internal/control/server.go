package control

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/descriptors"
	"github.com/service-dev/service/daemon/internal/fontstore"
	"github.com/service-dev/service/daemon/internal/ratelog"
	api "github.com/service-dev/service/proto/control"
)

// maxHeaders is the maximum size of a request's headers in bytes. Most of it is for the caller.
const maxHeaders = api.MaxCaller + 16<<10

// drain is how long calls may continue after ctx has ended.
const drain = 2 * time.Second

// deadlines bounds how long a client may take: to send a request's headers and its body, to send the next request on an
// idle connection, and to read one response or line.
type deadlines struct{ header, body, idle, write time.Duration }

var usualDeadlines = deadlines{header: 10 * time.Second, body: 30 * time.Second, idle: 10 * time.Minute,
	write: time.Minute}

// Options holds the components that a Server calls. All except Limits are required.
type Options struct {
	About  About
	Daemon Daemon
	Tools  Catalogue
	Fonts  *fontstore.Store
	// ClientIO returns the process that executes the operations of the caller with this token, or nil if there is none.
	ClientIO func(token string) caller.IO
	// Limits bounds the clients' use of resources. Zero values select the defaults.
	Limits Limits
	Log    *slog.Logger
	Now    func() time.Time
}

// Server serves the control API.
type Server struct {
	o         Options
	conns     *connLimiter
	endpoints map[string]map[string]endpoint // by path and method
	deadlines deadlines
	stopping  chan struct{} // closed when Serve is asked to stop

	mu       sync.Mutex
	stopped  bool // no further handler may start
	handlers sync.WaitGroup
}

// New returns a server without opening a socket.
func New(o Options) *Server {
	s := &Server{
		o: o, conns: newConnLimiter(o.Limits, o.Log), endpoints: map[string]map[string]endpoint{},
		deadlines: usualDeadlines, stopping: make(chan struct{}),
	}
	for _, e := range s.routes() {
		if s.endpoints[e.Path] == nil {
			s.endpoints[e.Path] = map[string]endpoint{}
		}
		s.endpoints[e.Path][e.Method] = e
	}
	return s
}

// routes returns all routes with their handlers.
func (s *Server) routes() []endpoint {
	return []endpoint{
		unary(api.GetVersion, s.version), unary(api.GetStatus, s.status), unary(api.RunDoctor, s.doctor),
		unary(api.Stop, s.stop), unary(api.Whoami, s.whoami), stream(api.Login, s.login),
		unary(api.Logout, s.logout), unary(api.ListAccounts, s.listAccounts),
		unary(api.ResetPassword, s.resetPassword), unary(api.SetConsent, s.setConsent),
		unary(api.GetTelemetry, s.telemetry), unary(api.PurgeTelemetry, s.purgeTelemetry),
		unary(api.ListTools, s.listTools), stream(api.CallTool, s.callTool),
		stream(api.OpenSession, s.openSession), unary(api.ListPlugins, s.listPlugins),
		unary(api.AddPlugin, s.addPlugin), unary(api.RemovePlugin, s.removePlugin),
		unary(api.ListFonts, s.listFonts), upload(api.AddFont, maxFont, s.addFont),
		unary(api.RemoveFont, s.removeFont), unary(api.ListGlasses, s.listGlasses),
		unary(api.DisconnectGlasses, s.disconnectGlasses), unary(api.ForgetGlasses, s.forgetGlasses),
		unary(api.SetPanel, s.setPanel),
	}
}

// Active returns the number of calls in progress.
func (s *Server) Active() int {
	n, _ := s.conns.calls.Counts()
	return n
}

// Calls returns the number of calls since the start. The daemon uses it to detect activity.
func (s *Server) Calls() int64 {
	_, total := s.conns.calls.Counts()
	return total
}

// Serve serves l until ctx ends, then waits briefly for calls in progress. It closes l. Call it once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // only to refuse the gRPC clients of older versions
	web := &http.Server{
		Handler: http.HandlerFunc(s.serveHTTP), Protocols: protocols, MaxHeaderBytes: maxHeaders,
		ReadHeaderTimeout: s.deadlines.header, IdleTimeout: s.deadlines.idle,
		ConnContext: withConn,
		ErrorLog:    log.New(io.Discard, "", 0), // it would contain errors of clients
	}
	var drained sync.WaitGroup
	drained.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer drained.Done()
		close(s.stopping)
		_ = l.Close()
		for s.conns.evictIdle() { // Shutdown would wait for new connections that have not sent a request
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		_ = web.Shutdown(grace)
	})
	err := web.Serve(&limitedListener{
		Listener: l, log: ratelog.New(s.o.Log, logInterval, time.Now), conns: s.conns, reserve: descriptors.NewReserve(),
	})
	if stop() {
		drained.Done()
	}
	drained.Wait()
	_ = web.Close()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.handlers.Wait()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve control.sock: %w", err)
	}
	return nil
}

// enter counts a running handler. It returns false once the server has stopped.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.handlers.Add(1)
	}
	return !s.stopped
}
