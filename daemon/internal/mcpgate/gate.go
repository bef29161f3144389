// Package mcpgate serves agents on mcp.sock. It reads the handshake of a stream, frames MCP messages and runs one MCP
// session for each connection, in both protocol generations. It contains the instructions to agents about the server as
// a whole. The catalogue implements the tools.
package mcpgate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/descriptors"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/docs"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// Catalogue is the set of tools that the gate serves.
type Catalogue interface {
	List() []tools.Tool
	Call(ctx context.Context, name string, args json.RawMessage, io tools.IO) tools.Result
}

// Options configures a Gate. Zero values select the defaults.
type Options struct {
	Catalogue Catalogue
	// Pages are the documentation pages, which are offered as resources. It may be empty.
	Pages []docs.Page
	// Version is the build version that clients see.
	Version string
	// MaxConnections is the maximum number of connections; 256 by default, or fewer if the limit on open files is low.
	MaxConnections int
	// MaxCalls is the maximum number of calls that run concurrently on all streams; 512 by default.
	MaxCalls int
	// Process returns the PID of a connection's peer, or 0 if unknown. If Process is nil, all PIDs are unknown. One
	// process may use half of the streams.
	Process func(net.Conn) int
	// DrainGrace is how long calls may continue after the client has closed its end; 2 s by default. Calls of tools
	// that wait for the user or an app are cancelled immediately.
	DrainGrace time.Duration
	// Admit checks a connection before any data is read from it. If it returns an error, the gate refuses the
	// connection with that reason. If Admit is nil, the gate admits every connection.
	Admit func(net.Conn) error
	// ClientIO serves the connections on which clients execute the daemon's requests (internal/clientio).
	ClientIO *clientio.Registry
	// Notices adds texts for the user to responses. If it is nil, none are added.
	Notices Notices
	Log     *slog.Logger
}

// Gate serves MCP over streams. It is safe for concurrent use.
type Gate struct {
	opts       Options
	server     *mcp.Server
	clients    atomic.Int64
	limiter    *limiter
	repeatable []string        // tools whose calls a client may repeat, for the handshake
	waiting    map[string]bool // tools that wait for the user or an app
	unread     int             // limit on the unread bytes of responses on one stream
	declared   *declared
}

// New returns a gate. It starts no goroutine.
func New(opts Options) *Gate {
	opts.MaxConnections = cmp.Or(opts.MaxConnections, descriptors.Share(256, 50))
	opts.MaxCalls = cmp.Or(opts.MaxCalls, 512)
	opts.DrainGrace = cmp.Or(opts.DrainGrace, 2*time.Second)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	opts.ClientIO = cmp.Or(opts.ClientIO, clientio.NewRegistry())
	g := &Gate{
		opts: opts, limiter: newLimiter(opts), waiting: map[string]bool{}, unread: maxUnreadBytes,
		declared: newDeclared(opts), server: newServer(opts),
	}
	for _, tool := range opts.Catalogue.List() {
		g.waiting[tool.Name] = tool.Waits
		if tool.Annotations.ReadOnly && tool.Annotations.Idempotent && !tool.Waits {
			g.repeatable = append(g.repeatable, tool.Name)
		}
	}
	return g
}

// Clients returns the number of streams being served.
func (g *Gate) Clients() int { return int(g.clients.Load()) }

// Calls returns the number of running tool calls, and the number of tool calls since the start.
func (g *Gate) Calls() (running int, total int64) { return g.limiter.calls.Counts() }

// Serve accepts streams until ctx ends or l fails, then waits until the open streams have ended. It closes l.
func (g *Gate) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	var served sync.WaitGroup
	defer served.Wait()
	reserve := descriptors.NewReserve()
	defer stop()
	defer cancel()
	failing := ratelog.New(g.opts.Log, 10*time.Second, time.Now)
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept agents: %w", err)
		case err != nil:
			if conn := reserve.Accept(l, err); conn != nil {
				refuseExhausted(conn, g.opts.Version)
				reserve.Fill()
				continue
			}
			failing.Warn("failed to accept an agent's stream", "err", err)
			if !pause(ctx, 50*time.Millisecond) {
				return nil
			}
			continue
		}
		served.Go(func() { g.ServeConn(ctx, conn) })
	}
}

// refuseExhausted refuses a client because no file descriptor is free. Writing the reason never blocks, because a new
// connection has buffer space for a line.
func refuseExhausted(conn net.Conn, version string) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = reply(conn, handshakeReply{
		Code: problem.CodeTooManyClients, Version: version,
		Message: "the daemon has reached its limit of open files (ulimit -n)",
		FixHint: "Close unused agents, or raise the limit on open files and run `servicectl daemon restart`.",
	})
	_ = conn.Close()
}

// pause waits briefly, so that descriptors can be closed in the meantime.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// handshakeTimeout is the maximum time for a client to send its handshake.
const handshakeTimeout = 10 * time.Second

// ServeConn serves one stream from its handshake to its end, and closes it. It returns after all its goroutines have
// ended.
func (g *Gate) ServeConn(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	n := g.clients.Add(1)
	defer g.clients.Add(-1)

	leave, err := g.admit(conn, n)
	defer leave()
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(handshakeTimeout))
	lines := newLineReader(conn, rendezvous.MaxHandshake)
	line, err := lines.next()
	if err != nil && !errors.Is(err, errLineTooLong) {
		return
	}
	if h, ok := readClientIOHandshake(line); ok {
		g.clients.Add(-1) // the connection belongs to a client that is already counted
		defer g.clients.Add(1)
		g.serveClientIO(conn, lines, h)
		return
	}
	who, offersIO, answer := readHandshake(line, g.opts.Version)
	if answer.OK {
		answer.Repeatable = g.repeatable
	}
	if reply(conn, answer) != nil || !answer.OK {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	lines.max = MaxLine
	w := newStream(nil, lines, conn)
	w.cut, w.flow.unread, w.flow.all = conn.Close, g.unread, &g.limiter.unread
	if offersIO {
		client := g.opts.ClientIO.ForStream(w.askForClientIO)
		defer client.Close()
		who.IO = client
	}
	if err := g.serve(caller.With(ctx, who), w, who); err != nil && ctx.Err() == nil {
		g.opts.Log.Debug("failed to serve an agent's stream", "err", err)
	}
}

// serveClientIO serves a connection on which the daemon sends requests to the client.
func (g *Gate) serveClientIO(conn net.Conn, lines *lineReader, h contract.Handshake) {
	_ = conn.SetReadDeadline(time.Time{})
	g.opts.ClientIO.Serve(h, conn, clientLines{lines}, func(taken bool) error {
		answer := handshakeReply{OK: taken, Version: g.opts.Version}
		if !taken {
			answer.Code = problem.CodeRefused
			answer.Message = "no call is waiting for this connection, its token is in use, or there are too many connections"
		}
		return reply(conn, answer)
	})
}

// clientLines reads the responses of the client's process.
type clientLines struct{ lines *lineReader }

func (c clientLines) Wait() error {
	_, err := c.lines.r.Peek(1)
	return err
}

func (c clientLines) Next(limit int) ([]byte, error) {
	c.lines.max = limit
	return c.lines.next()
}

// askForClientIO asks the client, with a private frame, to open a connection.
func (w *stream) askForClientIO(token string) error {
	return w.write([]byte(rendezvous.ClientIOFrame + token + rendezvous.ClientIOFrameEnd))
}

// admit admits a stream or refuses it with a reason. The caller must call leave in either case.
func (g *Gate) admit(conn net.Conn, n int64) (leave func(), err error) {
	if g.opts.Admit != nil {
		err = g.opts.Admit(conn)
	}
	leave = func() {}
	var refused *handshakeReply
	switch {
	case err != nil:
		refused = &handshakeReply{
			Code: problem.CodeRefused, Message: err.Error(), FixHint: "Run service-mcp as the user who owns the daemon.",
		}
	case n > int64(g.opts.MaxConnections):
		refused = &handshakeReply{
			Code: problem.CodeTooManyClients, Message: fmt.Sprintf("%d agents are already connected", g.opts.MaxConnections),
			FixHint: "Close unused agents.",
		}
	default:
		leave, refused = g.limiter.admitStream(conn)
	}
	if refused == nil {
		return leave, nil
	}
	refused.Version = g.opts.Version
	_ = reply(conn, *refused)
	return leave, errors.New(refused.Message)
}

func reply(w io.Writer, answer handshakeReply) error {
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// ServeStdio serves one client on a pair of streams without a handshake, for the in-process mode. It returns nil when
// in ends, and the context's error when ctx ends. If a read of in cannot be interrupted, the goroutine that reads it is
// left running.
func (g *Gate) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, who caller.Caller) error {
	g.clients.Add(1)
	defer g.clients.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c, ok := in.(io.Closer); ok {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
	}
	done := make(chan error, 1)
	go func() { done <- g.serve(caller.With(ctx, who), newStream(in, nil, out), who) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve runs the sessions of one stream until it ends.
func (g *Gate) serve(ctx context.Context, w *stream, who caller.Caller) error {
	w.withNotices(g.opts.Notices, who)
	w.limiter, w.waiting, w.declared = g.limiter, g.waiting, g.declared
	defer w.leave()
	var sessions []*mcp.ServerSession
	err := w.read(ctx, func(e *protocolConn) error {
		session, err := g.server.Connect(ctx, e, nil)
		if err == nil {
			sessions = append(sessions, session)
		}
		return err
	})
	if err == nil {
		w.drain(ctx, g.opts.DrainGrace)
	}
	for _, e := range w.protocols {
		e.sendEOF()
	}
	if w.cut != nil {
		_ = w.cut() // otherwise writing a response could block forever
	}
	for _, session := range sessions {
		_ = session.Wait() // the reason for the end is already known
	}
	return err
}
