package appserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

const (
	writeTimeout = 10 * time.Second
	endTimeout   = 2 * time.Second
	// maxPending is the maximum number of open connections that have not sent a hello yet.
	maxPending = 256
)

// message is a frame queued for an app.
type message struct {
	data           []byte
	binary, stream bool
}

// Size returns the frame's length in bytes (broker.Parcel).
func (m message) Size() int { return len(m.data) }

// IsStream reports whether the frame may be dropped (broker.Parcel).
func (m message) IsStream() bool { return m.stream }

// conn is one attached app. It is the session's Peer.
type conn struct {
	ws  *websocket.Conn
	cut context.CancelFunc // ends the connection immediately

	mu     sync.Mutex
	outbox broker.Outbox[message]
	ready  chan struct{} // has an element if the outbox may contain messages

	once   sync.Once
	ending chan struct{}
	code   websocket.StatusCode
	reason string
}

func newConn(ws *websocket.Conn, o Options, cut context.CancelFunc) *conn {
	return &conn{
		ws: ws, cut: cut, ready: make(chan struct{}, 1), ending: make(chan struct{}),
		outbox: broker.NewOutbox[message](&broker.Bounds{
			Frames: o.OutboxSize, Bytes: o.OutboxMax, StreamFrames: o.OutboxSize / 4, StreamBytes: o.OutboxMax / 4,
		}),
	}
}

// Send queues a frame and never blocks. An app whose queue is full is disconnected.
func (c *conn) Send(data []byte, binary, stream bool) {
	c.mu.Lock()
	delivery := c.outbox.Put(message{data, binary, stream})
	c.mu.Unlock()
	if delivery == broker.Overflow {
		c.End(glasses.CloseSlow, "too slow; reconnect with your cursor")
		return
	}
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// End closes the connection with a reason, after sending the queued frames if the app reads them in time. Only the
// first call has an effect.
func (c *conn) End(code int, reason string) {
	c.once.Do(func() {
		c.code, c.reason = websocket.StatusCode(code), reason
		close(c.ending)
		time.AfterFunc(endTimeout, c.cut)
	})
}

// serveApp serves an app's connection from the handshake to its end. Refusals are close codes sent after the upgrade.
// An unknown session and a wrong secret have the same code.
func (s *Server) serveApp(rw http.ResponseWriter, r *http.Request) {
	if !s.beginServing() {
		http.Error(rw, errClosing.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.wg.Done()
	// The origin does not matter here: requireLocal has checked it, and the secret in the hello authenticates the app.
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has sent the response
	}
	defer func() { _ = ws.CloseNow() }()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(s.life, func() { // abort reading a hello when the daemon stops
		time.AfterFunc(writeTimeout, cancel)
	})()
	if s.pending.Add(1) > maxPending {
		s.pending.Add(-1)
		_ = ws.Close(glasses.CloseSlow, "too many pending connections; try again")
		return
	}
	hello, frame, ok := s.readHello(ctx, ws)
	s.pending.Add(-1)
	if !ok {
		return
	}
	c := newConn(ws, s.o, cancel)
	app, err := s.sessions.Attach(r.PathValue("id"), hello, frame.ID, c)
	if err != nil {
		refusal := &session.Refusal{Code: glasses.CloseStore, Reason: "the session could not be read; try again"}
		_ = errors.As(err, &refusal)
		_ = ws.Close(websocket.StatusCode(refusal.Code), refusal.Reason)
		return
	}
	defer app.Leave()
	defer context.AfterFunc(s.life, func() { c.End(glasses.CloseRestart, restarts) })()
	pass := func(data []byte) error { return c.write(ctx, message{data: data}) }
	if pass(app.Welcome) != nil || app.Replay(ctx, pass) != nil {
		return
	}
	s.exchange(ctx, c, app)
}

const restarts = "the service is restarting"

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

// readHello reads the first frame within its size and time limits. On failure it closes the connection with the reason.
func (s *Server) readHello(ctx context.Context, ws *websocket.Conn) (glasses.Hello, glasses.Frame, bool) {
	ws.SetReadLimit(glasses.MaxHello)
	timeout := time.AfterFunc(s.o.HelloWait, func() { _ = ws.Close(glasses.CloseBadHello, "no hello in time") })
	defer context.AfterFunc(s.life, func() { _ = ws.Close(glasses.CloseRestart, restarts) })()
	_, data, err := ws.Read(ctx)
	if !timeout.Stop() || err != nil {
		return glasses.Hello{}, glasses.Frame{}, false
	}
	hello, frame, err := glasses.ParseHello(data)
	if err != nil {
		_ = ws.Close(glasses.CloseBadHello, err.Error())
		return hello, frame, false
	}
	ws.SetReadLimit(glasses.MaxFrame)
	return hello, frame, true
}

// exchange reads frames until the app disconnects or End is called, while another goroutine writes.
func (s *Server) exchange(ctx context.Context, c *conn, app *session.App) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		c.drain(ctx, s.o.PingEvery)
	})
	// Frames of an app that sends too fast are read more slowly; none are lost.
	limiter := rate.NewLimiter(rate.Limit(s.o.FrameRate), s.o.FrameRate)
	for {
		kind, data, err := c.ws.Read(ctx)
		if err != nil || limiter.Wait(ctx) != nil {
			break
		}
		app.Handle(ctx, data, kind == websocket.MessageBinary)
	}
	select {
	case <-c.ending: // drain closes the connection with a reason
	default:
		cancel()
	}
	wg.Wait()
}

// drain writes queued frames and pings the app, until ctx ends or End is called.
func (c *conn) drain(ctx context.Context, pingEvery time.Duration) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	var ping pinger
	defer ping.wg.Wait()
	for {
		select {
		case <-c.ready:
			if c.flush(ctx) != nil {
				return
			}
		case <-ticker.C:
			if ping.failed.Load() {
				return
			}
			ping.start(ctx, c.ws, pingEvery)
		case <-c.ending:
			_ = c.flush(ctx)
			_ = c.ws.Close(c.code, c.reason)
			return
		case <-ctx.Done():
			return
		}
	}
}

// flush writes the queued frames.
func (c *conn) flush(ctx context.Context) error {
	for batch := c.take(); len(batch) > 0; batch = c.take() {
		for _, m := range batch {
			if err := c.write(ctx, m); err != nil {
				return err
			}
			c.mu.Lock()
			c.outbox.Written(m)
			c.mu.Unlock()
		}
	}
	return nil
}

func (c *conn) take() []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outbox.Take()
}

func (c *conn) write(ctx context.Context, m message) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	kind := websocket.MessageText
	if m.binary {
		kind = websocket.MessageBinary
	}
	return c.ws.Write(ctx, kind, m.data)
}

// pinger sends one ping at a time, in a goroutine that ends with the pong.
type pinger struct {
	wg     sync.WaitGroup
	busy   atomic.Bool
	failed atomic.Bool
}

func (p *pinger) start(ctx context.Context, ws *websocket.Conn, timeout time.Duration) {
	if !p.busy.CompareAndSwap(false, true) {
		return
	}
	p.wg.Go(func() {
		defer p.busy.Store(false)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if ws.Ping(ctx) != nil {
			p.failed.Store(true)
			_ = ws.CloseNow() // ends the reader and the writer
		}
	})
}
