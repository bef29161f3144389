package control

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/service-dev/service/daemon/internal/descriptors"
	"github.com/service-dev/service/daemon/internal/ratelog"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Limits bound the resources that clients can use in the daemon. One process may use half of each, so that a runaway
// process leaves the rest to others. Zero values mean the defaults.
type Limits struct {
	// Connections is the maximum number of open connections; 256 by default, or fewer if the limit on open files is
	// low. A new connection replaces an idle one.
	Connections int
	// Calls is the maximum number of calls in progress on all connections; 192 by default.
	Calls int
}

// reservedCalls is the number of calls reserved for diagnostics, so that they work under load. Above the limit,
// refusalConnections may stay open for refusalTime each, so that their clients receive the reason.
const (
	reservedCalls      = 16
	refusalConnections = 16
	refusalTime        = 5 * time.Second
)

// diagnosticCalls are the calls that may use reservedCalls.
var diagnosticCalls = map[string]bool{"Hello": true, "Status": true, "ListPlugins": true, "Stop": true}

// logInterval is the minimum interval between logged refusals, so that refused clients cannot fill the disk.
const logInterval = 10 * time.Second

// connLimiter counts connections and calls, and refuses those above the limits.
type connLimiter struct {
	limits  Limits
	process func(net.Conn) int
	log     *ratelog.Logger

	mu        sync.Mutex
	open      map[*limitedConn]struct{}
	refused   int // connections over the limit
	calls     int
	processes map[int]*process // processes with connections or calls, by pid
}

type process struct{ connections, calls int }

type limitedConn struct {
	net.Conn
	limiter *connLimiter
	pid     int // 0 if the system does not report it
	once    sync.Once
	refused bool
	calls   int
	idle    time.Time // when its last call ended
	refuse  *controlv1.Error
}

func newConnLimiter(l Limits, log *slog.Logger) *connLimiter {
	l.Connections = cmp.Or(l.Connections, descriptors.Share(256, 25))
	l.Calls = cmp.Or(l.Calls, 192)
	return &connLimiter{
		limits: l, process: PeerProcess, log: ratelog.New(log, logInterval, time.Now), open: map[*limitedConn]struct{}{},
		processes: map[int]*process{},
	}
}

// admit admits a connection, replacing an idle one if there are too many. If none are idle, the calls of the new
// connection are refused with the reason. admit returns nil if there is no capacity even for that.
func (h *connLimiter) admit(conn net.Conn) *limitedConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := &limitedConn{Conn: conn, limiter: h, pid: h.process(conn), idle: time.Now()}
	own, all := h.limits.Connections/2, h.limits.Connections
	switch p := h.processes[g.pid]; {
	case g.pid != 0 && p != nil && p.connections >= own:
		if !h.evict(g.pid) {
			g.refuse = tooManyConnections(fmt.Sprintf("process %d reached its limit of %d connections, all of them busy",
				g.pid, own))
		}
	case len(h.open) >= all+h.refused:
		if !h.evict(0) {
			g.refuse = tooManyConnections(fmt.Sprintf("all %d connections have calls in progress", all))
		}
	}
	if g.refuse != nil {
		return h.addRefused(g)
	}
	h.of(g.pid).connections++
	h.open[g] = struct{}{}
	return g
}

// admitExhausted admits a connection although no file descriptor is left, so that the client receives the reason.
func (h *connLimiter) admitExhausted(conn net.Conn) *limitedConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addRefused(&limitedConn{
		Conn: conn, limiter: h, idle: time.Now(),
		refuse: tooManyConnections("the daemon has reached its limit of open files (ulimit -n)"),
	})
}

// addRefused adds a connection whose calls are refused, and closes it soon. It returns nil if there are too many. The
// caller holds mu.
func (h *connLimiter) addRefused(g *limitedConn) *limitedConn {
	if h.refused >= refusalConnections {
		return nil
	}
	g.refused = true
	h.refused++
	h.open[g] = struct{}{}
	time.AfterFunc(refusalTime, func() { _ = g.Close() })
	return g
}

// evictIdle closes the connection that has been idle longest. It returns false if none are idle.
func (h *connLimiter) evictIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.evict(0)
}

// evict closes the connection of process pid, or of any process if pid is 0, that has been idle longest. The caller
// holds mu.
func (h *connLimiter) evict(pid int) bool {
	var oldest *limitedConn
	for g := range h.open {
		if g.calls == 0 && !g.refused && (pid == 0 || g.pid == pid) && (oldest == nil || g.idle.Before(oldest.idle)) {
			oldest = g
		}
	}
	if oldest == nil {
		return false
	}
	h.remove(oldest)
	_ = oldest.Conn.Close()
	return true
}

func (h *connLimiter) of(pid int) *process {
	p := h.processes[pid]
	if p == nil {
		p = &process{}
		h.processes[pid] = p
	}
	return p
}

// remove stops tracking a connection; repeated calls do nothing. The caller holds mu.
func (h *connLimiter) remove(g *limitedConn) {
	g.once.Do(func() {
		delete(h.open, g)
		if g.refused {
			h.refused--
			return
		}
		h.release(g.pid, 1, 0)
	})
}

// release subtracts connections and calls from a process's counts. The caller holds mu.
func (h *connLimiter) release(pid, connections, calls int) {
	p := h.of(pid)
	p.connections -= connections
	p.calls -= calls
	if p.connections <= 0 && p.calls <= 0 {
		delete(h.processes, pid)
	}
}

// Close closes the connection and stops counting it.
func (g *limitedConn) Close() error {
	g.limiter.mu.Lock()
	g.limiter.remove(g)
	g.limiter.mu.Unlock()
	return g.Conn.Close()
}

// tap checks each call before memory is allocated for it.
func (h *connLimiter) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	g := connOf(ctx)
	if g == nil {
		return ctx, nil // the listener of a test
	}
	if e := h.begin(g, diagnosticCalls[path.Base(info.FullMethodName)]); e != nil {
		h.log.Warn("refused a control call", "code", e.GetCode(), "pid", g.pid)
		return ctx, refuse(codes.ResourceExhausted, e)
	}
	context.AfterFunc(ctx, func() { h.end(g) })
	return ctx, nil
}

func (h *connLimiter) begin(g *limitedConn, isDiagnostic bool) *controlv1.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.refuse != nil {
		return g.refuse
	}
	own, all := h.limits.Calls/2, h.limits.Calls
	if isDiagnostic {
		own, all = own+reservedCalls, all+reservedCalls
	}
	p := h.of(g.pid)
	switch {
	case g.pid != 0 && p.calls >= own:
		return tooManyCalls(fmt.Sprintf("process %d reached its limit of %d calls", g.pid, p.calls))
	case h.calls >= all:
		return tooManyCalls(fmt.Sprintf("%d calls are in progress, which is the limit", h.calls))
	}
	h.calls++
	p.calls++
	g.calls++
	return nil
}

func (h *connLimiter) end(g *limitedConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls--
	g.calls--
	g.idle = time.Now()
	h.release(g.pid, 0, 1)
}

func tooManyConnections(message string) *controlv1.Error {
	return &controlv1.Error{Code: "too_many_connections", Message: message, Retryable: true,
		FixHint: "Stop programs that hold connections to the daemon, then try again."}
}

func tooManyCalls(message string) *controlv1.Error {
	return &controlv1.Error{Code: "too_many_calls", Message: message, Retryable: true,
		FixHint: "Wait until calls have ended, or stop the program that makes them, then try again."}
}

// connCredentials are the socket's transport credentials. They do not authenticate; they attach each call's connection
// to its context.
type connCredentials struct {
	credentials.TransportCredentials
}

type connInfo struct {
	credentials.CommonAuthInfo
	limitedConn *limitedConn
}

// AuthType implements credentials.AuthInfo; the socket itself is the only authentication.
func (connInfo) AuthType() string { return "socket" }

// ServerHandshake attaches the connection to its calls. It exchanges no data.
func (connCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	g, _ := conn.(*limitedConn)
	return conn, connInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity},
		limitedConn: g}, nil
}

func (k connCredentials) Clone() credentials.TransportCredentials { return k }

func connOf(ctx context.Context) *limitedConn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, _ := p.AuthInfo.(connInfo)
	return info.limitedConn
}
