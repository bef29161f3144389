package appserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

const (
	// endTimeout is how long an app may take to read its queued frames after End.
	endTimeout = 2 * time.Second
	// maxPending is the maximum number of open connections that have not sent a hello yet.
	maxPending = 256
)

// conn is one app's connection.
type conn struct {
	peer   host.Peer
	server *Server
	app    *session.App

	ctx    context.Context // for handling one frame; ends with the connection
	cancel context.CancelFunc
	unhook func() bool // undoes the cancellation by the server's context
}

// Ending limits the time that the app has to read its queued frames (host.Handler).
func (c *conn) Ending() { time.AfterFunc(endTimeout, c.cut) }

func (c *conn) cut() {
	c.cancel()
	c.peer.Drop()
}

// Handle passes a frame to the session (host.Handler).
func (c *conn) Handle(m host.Message) {
	c.app.Handle(c.ctx, bytes.Clone(m.Data), m.Kind == websocket.Binary) // the session keeps commands, so copy them
}

// Gone detaches the app (host.Handler).
func (c *conn) Gone() {
	defer c.server.wg.Done()
	c.unhook()
	c.cancel()
	c.peer.Finish()
	c.app.Leave()
}

// ping pings the app regularly, and disconnects it if no pong arrives before the next ping.
func (c *conn) ping() {
	c.peer.PingIfDue(time.Now(), c.server.o.PingEvery, c.server.o.PingEvery)
	if c.ctx.Err() == nil {
		time.AfterFunc(c.server.o.PingEvery, c.ping)
	}
}

// serveApp accepts an app's connection. It reports a refusal by a close code after the upgrade. An unknown session and
// a wrong secret have the same code.
func (s *Server) serveApp(rw http.ResponseWriter, r *http.Request) {
	if !s.beginServing() {
		http.Error(rw, errClosing.Error(), http.StatusServiceUnavailable)
		return
	}
	// Any origin is allowed here: requireLocal has checked it, and the secret in the hello authenticates the app.
	ws, err := websocket.Accept(rw, r, websocket.AnyOrigin)
	if err != nil {
		s.wg.Done()
		return // Accept has sent the response
	}
	c := &conn{server: s}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	s.group.Init(&c.peer, ws, c, glasses.MaxFrame)
	id := r.PathValue("id")
	go c.serve(id) // net/http frees the memory of the request
}

// serve attaches the app to its session, and handles its frames from then on.
func (c *conn) serve(id string) {
	defer c.server.wg.Done()
	defer c.peer.Recover()
	if !c.attach(id) {
		c.cancel()
		c.peer.Drop()
		return
	}
	c.server.wg.Add(1) // until Gone
	isServed := false
	defer func() {
		if !isServed {
			c.Gone()
		}
	}()
	c.unhook = context.AfterFunc(c.server.life, func() { c.peer.End(glasses.CloseRestart, host.Restarts) })
	time.AfterFunc(c.server.o.PingEvery, c.ping)
	if c.peer.Greet(c.app.Welcome) != nil || c.app.Replay(c.ctx, c.peer.Greet) != nil {
		return
	}
	isServed = true
	c.peer.Start()
	c.peer.Await()
}

// attach reads the hello and attaches the app. It returns false after it has closed the connection with a reason.
func (c *conn) attach(id string) bool {
	s := c.server
	if s.pending.Add(1) > maxPending {
		s.pending.Add(-1)
		c.peer.Refuse(glasses.CloseSlow, "too many pending connections; try again")
		return false
	}
	hello, frame, ok := c.peer.ReadHello(s.life, s.o.HelloWait)
	s.pending.Add(-1)
	if !ok {
		return false
	}
	app, err := s.sessions.Attach(id, hello, frame.ID, &c.peer)
	if err != nil {
		refusal := &session.Refusal{Code: glasses.CloseStore, Reason: host.NotReadable}
		_ = errors.As(err, &refusal)
		c.peer.Refuse(websocket.Status(refusal.Code), refusal.Reason)
		return false
	}
	c.app = app
	return true
}

// beginServing counts a connection. It fails once the server is closing.
func (s *Server) beginServing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing {
		return false
	}
	s.wg.Add(1)
	return true
}
