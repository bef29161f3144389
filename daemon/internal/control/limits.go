package control

import (
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

// Limits bound what clients can make the daemon hold. A process may take half of what there is, so that one that runs
// wild leaves the other half to everybody else. Zero values mean the defaults.
type Limits struct {
	// Connections is how many may be open; 256 by default, or what the limit on open files leaves. An idle one makes room
	// for a new one.
	Connections int
	// Calls is how many may be under way, on all connections together; 192 by default.
	Calls int
}

// spare calls are kept for the questions of a person who looks what is wrong; spareConnections are let in above the
// limit to be told of it, for turnedAway.
const (
	spareCalls       = 16
	spareConnections = 16
	turnedAway       = 5 * time.Second
)

// spared are the quick calls that may use the spare.
var spared = map[string]bool{"Hello": true, "Status": true, "ListPlugins": true, "Stop": true}

// quietFor is how long the log rests after a line about a refusal: whoever is refused must not fill the disk with them.
const quietFor = 10 * time.Second

// guests counts connections and calls. A guest is one connection.
type guests struct {
	limits  Limits
	process func(net.Conn) int
	log     *ratelog.Logger

	mu        sync.Mutex
	open      map[*guest]struct{}
	spare     int // connections above the limit
	calls     int
	processes map[int]*process // by pid; those that hold something
}

type process struct{ connections, calls int }

type guest struct {
	net.Conn
	house  *guests
	pid    int // 0 where the system does not tell
	once   sync.Once
	spare  bool
	calls  int
	idle   time.Time // since when it has no call
	refuse *controlv1.Error
}

func newGuests(l Limits, log *slog.Logger) *guests {
	if l.Connections <= 0 {
		l.Connections = descriptors.Share(256, 25)
	}
	if l.Calls <= 0 {
		l.Calls = 192
	}
	return &guests{limits: l, process: PeerProcess, log: ratelog.New(log, quietFor, time.Now), open: map[*guest]struct{}{}, processes: map[int]*process{}}
}

// admit takes a connection in, in place of an idle one if there are too many. When none is idle the connection hears
// why it may not call; nil means that there is no room even for that.
func (h *guests) admit(conn net.Conn) *guest {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := &guest{Conn: conn, house: h, pid: h.process(conn), idle: time.Now()}
	own, all := h.limits.Connections/2, h.limits.Connections
	switch p := h.processes[g.pid]; {
	case g.pid != 0 && p != nil && p.connections >= own:
		if !h.evict(g.pid) {
			g.refuse = tooManyConnections(fmt.Sprintf("process %d has %d connections with calls under way, which is the most one may have", g.pid, own))
		}
	case len(h.open) >= all+h.spare:
		if !h.evict(0) {
			g.refuse = tooManyConnections(fmt.Sprintf("%d connections have calls under way, which is the most there may be", all))
		}
	}
	if g.refuse != nil {
		if h.spare >= spareConnections {
			return nil
		}
		g.spare = true
		h.spare++
		time.AfterFunc(turnedAway, func() { _ = g.Close() })
	} else {
		h.of(g.pid).connections++
	}
	h.open[g] = struct{}{}
	return g
}

// turnAway lets a connection in for which there is no descriptor, to be told so.
func (h *guests) turnAway(conn net.Conn) *guest {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := &guest{Conn: conn, house: h, spare: true, idle: time.Now()}
	g.refuse = tooManyConnections("the daemon has as many files open as it may (ulimit -n)")
	h.spare++
	h.open[g] = struct{}{}
	time.AfterFunc(turnedAway, func() { _ = g.Close() })
	return g
}

// evictIdle closes the connection that has been idle longest; false when none is.
func (h *guests) evictIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.evict(0)
}

// evict closes the connection that has been idle longest, of one process or (0) of any. mu is held.
func (h *guests) evict(pid int) bool {
	var oldest *guest
	for g := range h.open {
		if g.calls == 0 && !g.spare && (pid == 0 || g.pid == pid) && (oldest == nil || g.idle.Before(oldest.idle)) {
			oldest = g
		}
	}
	if oldest == nil {
		return false
	}
	h.forget(oldest)
	_ = oldest.Conn.Close()
	return true
}

func (h *guests) of(pid int) *process {
	p := h.processes[pid]
	if p == nil {
		p = &process{}
		h.processes[pid] = p
	}
	return p
}

// forget takes a connection off the list, once. mu is held.
func (h *guests) forget(g *guest) {
	g.once.Do(func() {
		delete(h.open, g)
		if g.spare {
			h.spare--
			return
		}
		h.release(g.pid, 1, 0)
	})
}

// release is called with mu held.
func (h *guests) release(pid, connections, calls int) {
	p := h.of(pid)
	p.connections -= connections
	p.calls -= calls
	if p.connections <= 0 && p.calls <= 0 {
		delete(h.processes, pid)
	}
}

// Close ends the connection and gives its place back.
func (g *guest) Close() error {
	g.house.mu.Lock()
	g.house.forget(g)
	g.house.mu.Unlock()
	return g.Conn.Close()
}

// tap looks at each call before anything is kept for it.
func (h *guests) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	g := guestOf(ctx)
	if g == nil {
		return ctx, nil // a listener of a test
	}
	if e := h.begin(g, spared[path.Base(info.FullMethodName)]); e != nil {
		h.log.Warn("refusing a control call", "code", e.GetCode(), "process", g.pid)
		return ctx, refuse(codes.ResourceExhausted, e)
	}
	context.AfterFunc(ctx, func() { h.end(g) })
	return ctx, nil
}

func (h *guests) begin(g *guest, spared bool) *controlv1.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.refuse != nil {
		return g.refuse
	}
	own, all := h.limits.Calls/2, h.limits.Calls
	if spared {
		own, all = own+spareCalls, all+spareCalls
	}
	p := h.of(g.pid)
	switch {
	case g.pid != 0 && p.calls >= own:
		return tooManyCalls(fmt.Sprintf("process %d has %d calls under way, which is the most one may have", g.pid, p.calls))
	case h.calls >= all:
		return tooManyCalls(fmt.Sprintf("%d calls are under way, which is the most there may be", h.calls))
	}
	h.calls++
	p.calls++
	g.calls++
	return nil
}

func (h *guests) end(g *guest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls--
	g.calls--
	g.idle = time.Now()
	h.release(g.pid, 0, 1)
}

func tooManyConnections(message string) *controlv1.Error {
	return &controlv1.Error{Code: "too_many_connections", Message: message, Retryable: true, FixHint: "End programs that hold connections to the daemon, then try again."}
}

func tooManyCalls(message string) *controlv1.Error {
	return &controlv1.Error{Code: "too_many_calls", Message: message, Retryable: true, FixHint: "Wait until calls have ended, or end the program that makes them, then try again."}
}

// known are the transport credentials of the door: none, but each call can tell on whose connection it came.
type known struct {
	credentials.TransportCredentials
}

type guestInfo struct {
	credentials.CommonAuthInfo
	guest *guest
}

// AuthType names what gRPC calls an authentication; there is none beyond the socket's own.
func (guestInfo) AuthType() string { return "socket" }

// ServerHandshake exchanges nothing.
func (known) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	g, _ := conn.(*guest)
	return conn, guestInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, guest: g}, nil
}

func (k known) Clone() credentials.TransportCredentials { return k }

func guestOf(ctx context.Context) *guest {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, _ := p.AuthInfo.(guestInfo)
	return info.guest
}
