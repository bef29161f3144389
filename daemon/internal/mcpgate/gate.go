// Package mcpgate is the agent's door: it serves mcp.sock, reads the line that opens a stream, frames MCP messages and
// holds one MCP session for each connection, in both protocol eras. It calls the catalogue for everything that a tool
// does and must not know what that is; words to the agent about the server as a whole stand here.
package mcpgate

import (
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
	contract "github.com/service-dev/service/proto/clientio"
	"github.com/service-dev/service/proto/docs"
	"github.com/service-dev/service/proto/rendezvous"
)

// Catalogue is what the gate serves.
type Catalogue interface {
	List() []tools.Tool
	Call(ctx context.Context, name string, args json.RawMessage, io tools.IO) tools.Result
}

// Options configure a Gate. Zero values mean the defaults.
type Options struct {
	Catalogue Catalogue
	// Pages is the documentation, offered as resources; none is fine.
	Pages []docs.Page
	// Version is the build version that clients see.
	Version string
	// MaxConnections is 256 by default, or what the limit on open files leaves; a client above it is refused with a reason.
	MaxConnections int
	// MaxCalls bounds the calls that run at a time on all streams together; 512 by default.
	MaxCalls int
	// Process tells which process is at the other end, 0 for unknown: one may have half of the streams. Nil tells nothing.
	Process func(net.Conn) int
	// DrainGrace is how long calls may run on after the client closed its end; 2 s by default. Those of tools that wait for
	// a person or an app end at once.
	DrainGrace time.Duration
	// Admit looks at a connection before a byte is read; an error refuses it with that reason. Nil admits everyone.
	Admit func(net.Conn) error
	// ClientIO takes the connections by which clients carry out operations for the daemon (proto/clientio).
	ClientIO *clientio.Registry
	// Notices have something to tell the person beside an answer; nil never has.
	Notices Notices
	Log     *slog.Logger
}

// Gate serves MCP over streams. It is safe for concurrent use.
type Gate struct {
	opts    Options
	server  *mcp.Server
	clients atomic.Int64
	room    *room
	// repeatable and waiting are names of tools, for the handshake and for the end of a stream.
	repeatable []string
	waiting    map[string]bool
	unread     int // bytes of answers that a stream may have unread
	declared   *declared
}

// New prepares a gate; it starts nothing.
func New(opts Options) *Gate {
	if opts.MaxConnections <= 0 {
		opts.MaxConnections = descriptors.Share(256, 50)
	}
	if opts.MaxCalls <= 0 {
		opts.MaxCalls = 512
	}
	if opts.DrainGrace <= 0 {
		opts.DrainGrace = 2 * time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.ClientIO == nil {
		opts.ClientIO = clientio.NewRegistry()
	}
	g := &Gate{opts: opts, room: newRoom(opts), waiting: map[string]bool{}, unread: maxUnreadBytes, declared: declare(opts)}
	for _, tool := range opts.Catalogue.List() {
		g.waiting[tool.Name] = tool.Waits
		if tool.Annotations.ReadOnly && tool.Annotations.Idempotent && !tool.Waits {
			g.repeatable = append(g.repeatable, tool.Name)
		}
	}
	g.server = newServer(opts)
	return g
}

// Clients is the number of streams that are being served.
func (g *Gate) Clients() int { return int(g.clients.Load()) }

// Serve accepts streams until ctx ends or l fails, then waits for those it serves. It closes l.
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
			return fmt.Errorf("accepting agents: %w", err)
		case err != nil:
			if conn := reserve.Accept(l, err); conn != nil {
				turnAway(conn, g.opts.Version)
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

// turnAway tells a client that the daemon cannot hold its connection. It never waits: a fresh connection has room for a
// line.
func turnAway(conn net.Conn, version string) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = reply(conn, prefaceAnswer{
		Code: codeTooManyClients, Version: version, Message: "the daemon has as many files open as it may (" + fileLimit + ")",
		FixHint: "close agents that are not used any more, or raise the limit on open files and run `servicectl daemon restart`",
	})
	_ = conn.Close()
}

// fileLimit is what people call the limit on open files.
const fileLimit = "ulimit -n"

// pause lets descriptors come free when accepting fails for want of them.
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

// prefaceWait bounds how long a client may take to send its preface.
const prefaceWait = 10 * time.Second

// ServeConn serves one stream from its preface to its end, and closes it. It returns when everything it started has
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
	_ = conn.SetReadDeadline(time.Now().Add(prefaceWait))
	lines := newLineReader(conn, rendezvous.MaxPreface)
	line, err := lines.next()
	if err != nil && !errors.Is(err, errLineTooLong) {
		return
	}
	if h, ok := clientIOHandshake(line); ok {
		g.clients.Add(-1) // it belongs to a client that is counted already
		defer g.clients.Add(1)
		g.serveClientIO(conn, lines, h)
		return
	}
	who, offersIO, answer := readPreface(line, g.opts.Version)
	if answer.OK {
		answer.Repeatable = g.repeatable
	}
	if reply(conn, answer) != nil || !answer.OK {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	lines.max = MaxLine
	w := newWire(nil, lines, conn)
	w.cut, w.flow.unread, w.flow.all = conn.Close, g.unread, &g.room.unread
	if offersIO {
		client := g.opts.ClientIO.ForStream(w.askForClientIO)
		defer client.Close()
		who.IO = client
	}
	if err := g.serve(caller.With(ctx, who), w, who); err != nil && ctx.Err() == nil {
		g.opts.Log.Debug("an agent's stream broke", "error", err)
	}
}

// serveClientIO serves a connection on which the daemon asks and the client answers.
func (g *Gate) serveClientIO(conn net.Conn, lines *lineReader, h contract.Handshake) {
	_ = conn.SetReadDeadline(time.Time{})
	g.opts.ClientIO.Serve(h, conn, clientLines{lines}, func(taken bool) error {
		answer := prefaceAnswer{OK: taken, Version: g.opts.Version}
		if !taken {
			answer.Code = codeRefused
			answer.Message = "no call waits for this connection, its token is in use, or there are too many connections"
		}
		return reply(conn, answer)
	})
}

// clientLines are the answers of a client's own process.
type clientLines struct{ lines *lineReader }

func (c clientLines) Wait() error {
	_, err := c.lines.r.Peek(1)
	return err
}

func (c clientLines) Next(limit int) ([]byte, error) {
	c.lines.max = limit
	return c.lines.next()
}

// askForClientIO sends the private frame that asks the client for a connection.
func (w *wire) askForClientIO(token string) error {
	return w.write([]byte(rendezvous.ClientIOFrame + token + rendezvous.ClientIOFrameEnd))
}

// admit lets a stream in, or tells it why not. leave must be called in either case.
func (g *Gate) admit(conn net.Conn, n int64) (leave func(), err error) {
	leave = func() {}
	var answer prefaceAnswer
	if g.opts.Admit != nil {
		if err := g.opts.Admit(conn); err != nil {
			answer = prefaceAnswer{Code: codeRefused, Message: err.Error(), FixHint: "run service-mcp as the user who owns the daemon"}
		}
	}
	if answer.Code == "" && n > int64(g.opts.MaxConnections) {
		answer = prefaceAnswer{
			Code: codeTooManyClients, Message: fmt.Sprintf("%d agents are connected already", g.opts.MaxConnections),
			FixHint: "close agents that are not used any more",
		}
	}
	if answer.Code == "" {
		var refused *prefaceAnswer
		if leave, refused = g.room.enter(conn); refused == nil {
			return leave, nil
		}
		answer = *refused
	}
	answer.Version = g.opts.Version
	_ = reply(conn, answer)
	return leave, errors.New(answer.Message)
}

func reply(w io.Writer, answer prefaceAnswer) error {
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// ServeStdio serves one client on a pair of streams without a preface, for the in-process mode. It returns
// nil when in ends, and the context's error when ctx ends; a read of in that cannot be interrupted is left behind then.
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
	go func() { done <- g.serve(caller.With(ctx, who), newWire(in, nil, out), who) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve runs the sessions of one wire until its stream ends.
func (g *Gate) serve(ctx context.Context, w *wire, who caller.Caller) error {
	w.withNotices(g.opts.Notices, who)
	w.room, w.waiting, w.declared = g.room, g.waiting, g.declared
	defer w.leave()
	var sessions []*mcp.ServerSession
	err := w.read(ctx, func(e *era) error {
		session, err := g.server.Connect(ctx, e, nil)
		if err == nil {
			sessions = append(sessions, session)
		}
		return err
	})
	if err == nil {
		w.drain(ctx, g.opts.DrainGrace)
	}
	for _, e := range w.eras {
		e.hangUp()
	}
	if w.cut != nil {
		_ = w.cut() // or a call could wait for ever to be read
	}
	for _, session := range sessions {
		_ = session.Wait() // what ended the stream is known already
	}
	return err
}
