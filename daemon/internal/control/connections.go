package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/descriptors"
	"github.com/service-dev/service/daemon/internal/limits"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/internal/problem"
)

// Limits bounds the resources of the daemon that clients can use. One process may use half of each, so that a runaway
// process leaves the rest to others. Zero values select the defaults.
type Limits struct {
	// Connections is the maximum number of open connections; 256 by default, or fewer if the limit on open files is
	// low. A new connection replaces an idle one.
	Connections int
	// Calls is the maximum number of calls in progress on all connections; 192 by default.
	Calls int
}

// reservedCalls is the number of calls reserved for diagnostics, so that they work under load. Above the limit on
// connections, refusalConnections may stay open for refusalTime each, so that their clients receive the reason.
const (
	reservedCalls      = 16
	refusalConnections = 16
	refusalTime        = 5 * time.Second
)

// logInterval is the minimum interval between logged refusals, so that refused clients cannot fill the disk.
const logInterval = 10 * time.Second

// connLimiter counts connections and calls, and refuses any above the limits.
type connLimiter struct {
	process     func(net.Conn) int
	log         *ratelog.Logger
	limits      Limits
	connections *limits.Usage // does not count refused connections
	calls       *limits.Usage

	mu      sync.Mutex
	open    map[*limitedConn]struct{}
	refused int // connections above the limit
}

type limitedConn struct {
	net.Conn
	limiter *connLimiter
	pid     int // 0 if unknown
	once    sync.Once
	calls   int
	idle    time.Time      // when its last call ended
	refuse  *problem.Error // why its calls are refused, except diagnostics; nil if they are served
}

func newConnLimiter(l Limits, log *slog.Logger) *connLimiter {
	l.Connections = cmp.Or(l.Connections, descriptors.Share(256, 25))
	l.Calls = cmp.Or(l.Calls, 192)
	return &connLimiter{
		limits: l, process: PeerProcess, log: ratelog.New(log, logInterval, time.Now), open: map[*limitedConn]struct{}{},
		connections: limits.New(l.Connections, l.Connections/2), calls: limits.New(l.Calls, l.Calls/2),
	}
}

// admit admits a connection, replacing an idle one if there are too many. If no connection is idle, admit keeps the new
// one open for a short time to refuse its calls with the reason. It returns nil if there is no capacity for that
// either.
func (l *connLimiter) admit(conn net.Conn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &limitedConn{Conn: conn, limiter: l, pid: l.process(conn), idle: time.Now()}
	excess := l.connections.Acquire(c.pid, 0)
	if excess != nil && l.evict(excess.PID) {
		excess = l.connections.Acquire(c.pid, 0)
	}
	switch {
	case excess == nil:
		l.open[c] = struct{}{}
		return c
	case excess.PID != 0:
		c.refuse = tooManyConnections(excess.OfProcess("connections") + ", all of them busy")
	default:
		c.refuse = tooManyConnections(fmt.Sprintf("all %d connections have calls in progress", excess.Limit))
	}
	return l.addRefused(c)
}

// admitExhausted admits a connection after the descriptors ran out, so that the client receives the reason.
func (l *connLimiter) admitExhausted(conn net.Conn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addRefused(&limitedConn{
		Conn: conn, limiter: l, idle: time.Now(),
		refuse: tooManyConnections("the daemon has reached its limit of open files (ulimit -n)"),
	})
}

// addRefused adds a connection whose calls are refused, and closes it soon. It returns nil if there are too many. The
// caller holds mu.
func (l *connLimiter) addRefused(c *limitedConn) *limitedConn {
	if l.refused >= refusalConnections {
		return nil
	}
	l.refused++
	l.open[c] = struct{}{}
	time.AfterFunc(refusalTime, func() { _ = c.Close() })
	return c
}

// evictIdle closes the connection that has been idle longest. It returns false if none are idle.
func (l *connLimiter) evictIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evict(0)
}

// evict closes the connection of process pid, or of any process if pid is 0, that has been idle longest. The caller
// holds mu.
func (l *connLimiter) evict(pid int) bool {
	var oldest *limitedConn
	for c := range l.open {
		if c.calls == 0 && c.refuse == nil && (pid == 0 || c.pid == pid) && (oldest == nil || c.idle.Before(oldest.idle)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	l.remove(oldest)
	_ = oldest.Conn.Close()
	return true
}

// remove stops tracking a connection. It may be called more than once. The caller holds mu.
func (l *connLimiter) remove(c *limitedConn) {
	c.once.Do(func() {
		delete(l.open, c)
		if c.refuse != nil {
			l.refused--
			return
		}
		l.connections.Release(c.pid, 1)
	})
}

// Close closes the connection and stops counting it.
func (c *limitedConn) Close() error {
	c.limiter.mu.Lock()
	c.limiter.remove(c)
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

// begin counts a call of a connection, or returns the reason why the call is refused. If it returns nil, the caller
// must call end.
func (l *connLimiter) begin(conn *limitedConn, isDiagnostic bool) error {
	refused := l.beginCall(conn, isDiagnostic)
	if refused == nil {
		return nil
	}
	l.log.Warn("refused a control call", "code", refused.Code, "pid", conn.pid)
	return refused
}

func (l *connLimiter) beginCall(conn *limitedConn, isDiagnostic bool) *problem.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn.refuse != nil && !isDiagnostic {
		return conn.refuse
	}
	extra := 0
	if isDiagnostic {
		extra = reservedCalls
	}
	switch excess := l.calls.Acquire(conn.pid, extra); {
	case excess == nil:
		conn.calls++
		return nil
	case excess.PID != 0:
		return tooManyCalls(excess.OfProcess("calls"))
	default:
		return tooManyCalls(fmt.Sprintf("%d calls are in progress, which is the limit", excess.Limit))
	}
}

func (l *connLimiter) end(conn *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.Release(conn.pid, 1)
	conn.calls--
	conn.idle = time.Now()
}

func tooManyConnections(message string) *problem.Error {
	return &problem.Error{Code: "too_many_connections", Message: message, Retryable: true,
		FixHint: "Stop programs that hold connections to the daemon, then try again."}
}

func tooManyCalls(message string) *problem.Error {
	return &problem.Error{Code: "too_many_calls", Message: message, Retryable: true,
		FixHint: "Wait until calls have ended, or stop the program that makes them, then try again."}
}

type connKey struct{}

// withConn attaches a connection to the context of its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func connOf(ctx context.Context) *limitedConn {
	conn, _ := ctx.Value(connKey{}).(*limitedConn)
	return conn
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
			return nil, err // http.Server retries after a short delay
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
