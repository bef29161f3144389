package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/proto/glasses"
)

// Close codes (PROTOCOL.md lists them for clients).
const (
	closeRestart     = websocket.StatusServiceRestart // 1012
	closeSlow        = websocket.StatusTryAgainLater  // 1013
	closeStore       = websocket.StatusInternalError  // 1011
	closeBadHello    = websocket.StatusCode(4400)
	closeBadSecret   = websocket.StatusCode(4401)
	closeSignedOut   = closeBadSecret // to a page, whose secret is the cookie
	closeSessionOver = websocket.StatusCode(4410)
)

const writeWait = 10 * time.Second

// conn is one attached peer.
type conn struct {
	ws  *websocket.Conn
	app glasses.AppInfo // of an app
	out chan []byte
	// signedIn, of a page, tells whether its person still is.
	signedIn func(context.Context) bool
	// lives, of a page, says every beatEvery that the service is there.
	lives     func()
	beatEvery time.Duration

	once   sync.Once
	ending chan struct{}
	code   websocket.StatusCode
	reason string
}

func (h *Hub) newConn(ws *websocket.Conn) *conn {
	return &conn{ws: ws, out: make(chan []byte, h.OutboxSize), ending: make(chan struct{})}
}

// send queues a frame for the peer and never blocks: a peer that lets its queue run full is cut off.
func (c *conn) send(frame []byte) {
	select {
	case c.out <- frame:
	default:
		c.end(closeSlow, "too slow; reconnect with your cursor")
	}
}

// end closes the connection with a reason, after what is queued was sent. Only the first call counts.
func (c *conn) end(code websocket.StatusCode, reason string) {
	c.once.Do(func() {
		c.code, c.reason = code, reason
		close(c.ending)
	})
}

// run reads until the peer is gone or end is called; take gets every text frame. It owns the writing goroutine.
func (c *conn) run(ctx context.Context, every time.Duration, take func([]byte), tick func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		c.drain(ctx, every, tick)
	})
	for {
		kind, data, err := c.ws.Read(ctx)
		if err != nil {
			break
		}
		if kind != websocket.MessageText {
			data = nil // not a frame of this version; take refuses it
		}
		take(data)
	}
	select {
	case <-c.ending: // the writing goroutine is closing with a reason; let it
	default:
		cancel()
	}
	wg.Wait()
	_ = c.ws.CloseNow()
}

// drain writes what is queued and pings the peer, until ctx ends or end is called.
func (c *conn) drain(ctx context.Context, every time.Duration, tick func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var beats <-chan time.Time
	if c.lives != nil {
		beat := time.NewTicker(c.beatEvery)
		defer beat.Stop()
		beats = beat.C
	}
	var ping pinger
	defer ping.wg.Wait()
	for {
		select {
		case frame := <-c.out:
			if c.write(ctx, frame) != nil {
				return
			}
		case <-beats:
			c.lives()
		case <-ticker.C:
			tick()
			if ping.failed.Load() {
				return
			}
			ping.start(ctx, c.ws, every)
		case <-c.ending:
			c.flush(ctx)
			_ = c.ws.Close(c.code, c.reason)
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *conn) flush(ctx context.Context) {
	for {
		select {
		case frame := <-c.out:
			if c.write(ctx, frame) != nil {
				return
			}
		default:
			return
		}
	}
}

var errEmptyFrame = errors.New("empty frame")

func (c *conn) write(ctx context.Context, frame []byte) error {
	if len(frame) == 0 {
		return errEmptyFrame
	}
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, frame)
}
