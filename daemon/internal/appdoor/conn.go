package appdoor

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
)

const (
	writeWait = 10 * time.Second
	endWait   = 2 * time.Second
	// maxStrangers is how many may be connected at once without having said hello.
	maxStrangers = 256
)

// message is one frame on its way to an app.
type message struct {
	data   []byte
	binary bool
}

// outbox is what waits for one app. It takes memory only while something does.
type outbox struct {
	frames, bytes int // the most that may wait

	mu      sync.Mutex
	list    []message
	size    int
	waiting int           // frames, with those that are being written
	ready   chan struct{} // has one entry when list may not be empty
}

// put tells false when the app is too far behind. A frame of a stream is dropped long before that, so that there is room
// for what must not be.
func (o *outbox) put(m message, stream bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stream && (o.waiting >= o.frames/4 || o.size+len(m.data) > o.bytes/4) {
		return true
	}
	if o.waiting >= o.frames || o.size+len(m.data) > o.bytes {
		return false
	}
	o.list = append(o.list, m)
	o.waiting++
	o.size += len(m.data)
	select {
	case o.ready <- struct{}{}:
	default:
	}
	return true
}

// take gives all that waits; each must be reported as written.
func (o *outbox) take() []message {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	return list
}

func (o *outbox) written(m message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	o.size -= len(m.data)
}

// conn is one attached app. It is the session's Peer.
type conn struct {
	ws  *websocket.Conn
	out *outbox
	cut context.CancelFunc // ends the connection at once

	once   sync.Once
	ending chan struct{}
	code   websocket.StatusCode
	reason string
}

// Send queues a frame and never blocks: an app that lets its queue run full is cut off.
func (c *conn) Send(data []byte, binary, stream bool) {
	if !c.out.put(message{data, binary}, stream) {
		c.End(session.CloseSlow, "too slow; reconnect with your cursor")
	}
}

// End closes the connection with a reason, after what is queued was sent, if the app takes it in time. Only the first
// call counts.
func (c *conn) End(code int, reason string) {
	c.once.Do(func() {
		c.code, c.reason = websocket.StatusCode(code), reason
		close(c.ending)
		time.AfterFunc(endWait, c.cut)
	})
}

// serveApp is an app's whole visit. Everything is refused by a close code after the upgrade, alike for a session that
// does not exist and for a wrong secret.
func (d *Door) serveApp(rw http.ResponseWriter, r *http.Request) {
	if !d.enter() {
		http.Error(rw, "the daemon is stopping", http.StatusServiceUnavailable)
		return
	}
	defer d.wg.Done()
	// guard has looked at the origin; the secret in hello decides.
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(d.life, func() { // a hello that is on its way ends with the daemon
		time.AfterFunc(writeWait, cancel)
	})()
	if d.strangers.Add(1) > maxStrangers {
		d.strangers.Add(-1)
		_ = ws.Close(session.CloseSlow, "too many are at the door; try again")
		return
	}
	hello, frame, ok := d.readHello(ctx, ws)
	d.strangers.Add(-1)
	if !ok {
		return
	}
	out := &outbox{frames: d.o.OutboxSize, bytes: d.o.OutboxMax, ready: make(chan struct{}, 1)}
	c := &conn{ws: ws, out: out, cut: cancel, ending: make(chan struct{})}
	app, err := d.rooms.Attach(r.PathValue("id"), hello, frame.ID, c)
	if err != nil {
		refusal := &session.Refusal{Code: session.CloseStore, Reason: "the session could not be read; try again"}
		_ = errors.As(err, &refusal)
		_ = ws.Close(websocket.StatusCode(refusal.Code), refusal.Reason)
		return
	}
	defer app.Leave()
	defer context.AfterFunc(d.life, func() { c.End(session.CloseRestart, "the service restarts") })()
	give := func(data []byte) error { return c.write(ctx, message{data: data}) }
	if give(app.Welcome) != nil || app.Replay(ctx, give) != nil {
		return
	}
	d.run(ctx, c, app)
}

func (d *Door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.wg.Add(1)
	return true
}

// readHello reads the first frame within its limits; otherwise it closes with the reason.
func (d *Door) readHello(ctx context.Context, ws *websocket.Conn) (glasses.Hello, glasses.Frame, bool) {
	ws.SetReadLimit(glasses.MaxHello)
	late := time.AfterFunc(d.o.HelloWait, func() { _ = ws.Close(session.CloseBadHello, "no hello in time") })
	gone := context.AfterFunc(d.life, func() { _ = ws.Close(session.CloseRestart, "the service restarts") })
	defer gone()
	_, data, err := ws.Read(ctx)
	if !late.Stop() || err != nil {
		return glasses.Hello{}, glasses.Frame{}, false
	}
	hello, frame, err := glasses.ParseHello(data)
	if err != nil {
		_ = ws.Close(session.CloseBadHello, err.Error())
		return hello, frame, false
	}
	ws.SetReadLimit(glasses.MaxFrame)
	return hello, frame, true
}

// run reads until the app is gone or End is called. It owns the writing goroutine.
func (d *Door) run(ctx context.Context, c *conn, app *session.App) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		c.drain(ctx, d.o.PingEvery)
	})
	share := d.limiter()
	for {
		kind, data, err := c.ws.Read(ctx)
		if err != nil || share.Wait(ctx) != nil {
			break
		}
		app.Take(ctx, data, kind == websocket.MessageBinary)
	}
	select {
	case <-c.ending: // the writing goroutine is closing with a reason; let it
	default:
		cancel()
	}
	wg.Wait()
}

// drain writes what is queued and pings the app, until ctx ends or End is called.
func (c *conn) drain(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var ping pinger
	defer ping.wg.Wait()
	for {
		select {
		case <-c.out.ready:
			if c.flush(ctx) != nil {
				return
			}
		case <-ticker.C:
			if ping.failed.Load() {
				return
			}
			ping.start(ctx, c.ws, every)
		case <-c.ending:
			_ = c.flush(ctx)
			_ = c.ws.Close(c.code, c.reason)
			return
		case <-ctx.Done():
			return
		}
	}
}

// flush writes what waits.
func (c *conn) flush(ctx context.Context) error {
	for list := c.out.take(); len(list) > 0; list = c.out.take() {
		for _, m := range list {
			if err := c.write(ctx, m); err != nil {
				return err
			}
			c.out.written(m)
		}
	}
	return nil
}

func (c *conn) write(ctx context.Context, m message) error {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	kind := websocket.MessageText
	if m.binary {
		kind = websocket.MessageBinary
	}
	return c.ws.Write(ctx, kind, m.data)
}

// pinger asks an app whether it lives, one ping at a time, in a goroutine that exists only while a pong is due.
type pinger struct {
	wg     sync.WaitGroup
	busy   atomic.Bool
	failed atomic.Bool
}

func (p *pinger) start(ctx context.Context, ws *websocket.Conn, wait time.Duration) {
	if !p.busy.CompareAndSwap(false, true) {
		return
	}
	p.wg.Go(func() {
		defer p.busy.Store(false)
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if ws.Ping(ctx) != nil {
			p.failed.Store(true)
			_ = ws.CloseNow() // the reader and the writer see it at once
		}
	})
}
