package relay

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/proto/glasses"
)

// Close codes (PROTOCOL.md lists them for clients).
const (
	closeRestart     = websocket.StatusServiceRestart // 1012
	closeSlow        = websocket.StatusTryAgainLater  // 1013
	closeStore       = websocket.StatusInternalError  // 1011
	closeTooBig      = websocket.StatusMessageTooBig  // 1009
	closeBadHello    = websocket.StatusCode(4400)
	closeBadSecret   = websocket.StatusCode(4401)
	closeSignedOut   = closeBadSecret // to a page, whose secret is the cookie
	closeSessionOver = websocket.StatusCode(4410)
)

// Bounds of what waits for one peer, besides Options.OutboxSize frames that must not be lost.
const (
	maxQueued     = 16 << 20 // bytes of all that waits; a peer so far behind is cut off
	streamHigh    = 4 << 20  // bytes of stream frames; a further one is dropped, unless it is the only one
	streamFrames  = 1024
	streamPressed = streamHigh / 4 // from here on senders wait for the peer, at most pressedWait
	framesPressed = streamFrames / 4
	pressedWait   = 50 * time.Millisecond
)

// conn is one attached peer. While it is idle nothing runs for it but its reader.
type conn struct {
	ws   *websocket.Conn
	wire *wire
	app  glasses.AppInfo // of an app
	// signedIn, of a page, tells whether its person still is.
	signedIn func(context.Context) bool
	// limit is how many frames may wait that must not be lost; dropped counts the others that were.
	limit   int
	dropped *atomic.Int64
	hint    int // size of the last frame that was read

	// The hub's housekeeping alone uses these.
	lastBeat, lastPing time.Time
	heard              atomic.Int64 // frames that were read

	pinging atomic.Bool
	left    chan struct{} // closed when the peer is gone
	wg      sync.WaitGroup

	mu       sync.Mutex
	queue    []message
	frames   int  // queued or being written, without streams
	streams  int  // stream frames, the same
	bytes    int  // of all
	flowing  int  // bytes of streams
	holding  bool // the greeting is written first
	writing  bool // a goroutine is at it
	gone     bool // nothing may be started any more
	ending   bool // code and reason are set
	code     websocket.StatusCode
	reason   string
	eased    chan struct{} // of a pressed peer
	pressure time.Time     // since when
}

func (h *Hub) newConn(ws *websocket.Conn, w *wire) *conn {
	now := time.Now()
	return &conn{ws: ws, wire: w, limit: h.OutboxSize, dropped: &h.dropped, left: make(chan struct{}), holding: true, lastBeat: now, lastPing: now}
}

// send queues a message and never blocks. A stream frame is dropped for a peer that is behind; one that lets anything
// else run full is cut off.
func (c *conn) send(m message) (eased <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := len(m.data)
	switch {
	case c.gone || c.ending:
		return nil
	case m.stream && c.streams > 0 && (c.flowing+size > streamHigh || c.streams >= streamFrames):
		c.dropped.Add(1)
		return c.pressed()
	case !m.stream && c.frames >= c.limit, c.bytes+size > maxQueued && c.bytes > 0:
		c.endLocked(closeSlow, "too slow; reconnect with your cursor")
		return nil
	}
	m.keep()
	c.queue = append(c.queue, m)
	c.bytes += size
	if m.stream {
		c.streams++
		c.flowing += size
	} else {
		c.frames++
	}
	c.startWriter()
	if c.flowing > streamPressed || c.streams > framesPressed {
		return c.pressed()
	}
	return nil
}

// tell is send for a frame of the service.
func (c *conn) tell(frame []byte) { c.send(text(frame)) }

// pressed gives what to wait for, unless the peer has kept others waiting for long enough. mu is held.
func (c *conn) pressed() <-chan struct{} {
	now := time.Now()
	if c.eased == nil {
		c.eased, c.pressure = make(chan struct{}), now
	}
	if now.Sub(c.pressure) > pressedWait {
		return nil
	}
	return c.eased
}

// startWriter sees to it that the queue is written. mu is held.
func (c *conn) startWriter() {
	if !c.writing && !c.holding && !c.gone {
		c.writing = true
		c.wg.Go(c.drain)
	}
}

// release lets the queue flow once the greeting is written.
func (c *conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = false
	if len(c.queue) > 0 || c.ending {
		c.startWriter()
	}
}

// end closes the connection with a reason, after what is queued was sent. Only the first call counts.
func (c *conn) end(code websocket.StatusCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(code, reason)
}

func (c *conn) endLocked(code websocket.StatusCode, reason string) {
	if c.ending || c.gone {
		return
	}
	c.ending, c.code, c.reason = true, code, reason
	c.startWriter()
}

// drain writes until nothing waits; then it ends, and the peer costs nothing.
func (c *conn) drain() {
	for {
		c.mu.Lock()
		batch := c.queue
		c.queue = nil
		over := len(batch) == 0
		ending := c.ending
		if over && !ending {
			c.writing = false
		}
		if c.gone {
			over, ending = true, false
		}
		c.mu.Unlock()
		if over {
			dropAll(batch)
			if ending {
				_ = c.ws.Close(c.code, c.reason)
			}
			return
		}
		if !c.writeAll(batch) {
			_ = c.ws.CloseNow() // the reader sees it at once
			return
		}
	}
}

func dropAll(batch []message) {
	for _, m := range batch {
		m.done()
	}
}

// writeAll writes a batch; its frames leave together where they fit.
func (c *conn) writeAll(batch []message) bool {
	c.wire.cork()
	for i, m := range batch {
		err := c.ws.Write(context.Background(), m.kind, m.data)
		c.written(m)
		if err != nil {
			dropAll(batch[i+1:])
			return false
		}
	}
	return c.wire.uncork() == nil
}

func (c *conn) written(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := len(m.data)
	m.done()
	c.bytes -= size
	if !m.stream {
		c.frames--
		return
	}
	c.streams--
	c.flowing -= size
	if c.eased != nil && c.flowing <= streamPressed/2 && c.streams <= framesPressed/2 {
		close(c.eased)
		c.eased = nil
	}
}

var errEmptyFrame = errors.New("empty frame")

// greet writes a frame at once, before anything that is queued.
func (c *conn) greet(frame []byte) error {
	if len(frame) == 0 {
		return errEmptyFrame
	}
	return c.ws.Write(context.Background(), websocket.MessageText, frame)
}

// read gives every frame to take until the peer is gone, in memory that is only lent: whoever keeps the message calls
// its keep. max bounds a binary frame, in bytes.
func (c *conn) read(limit int, take func(message)) {
	c.ws.SetReadLimit(int64(max(limit, glasses.MaxFrame)))
	for {
		m, ok := c.next(limit)
		if !ok {
			return
		}
		c.heard.Add(1)
		take(m)
		m.done()
	}
}

func (c *conn) next(limit int) (message, bool) {
	kind, from, err := c.ws.Reader(context.Background())
	if err != nil {
		return message{}, false
	}
	if kind == websocket.MessageText {
		limit = glasses.MaxFrame
	}
	b := lend(c.hint + 1) // one more, to see the end without growing
	for {
		if len(b.data) == cap(b.data) {
			b = b.grown()
		}
		n, err := from.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case errors.Is(err, io.EOF) && len(b.data) <= limit:
			c.hint = len(b.data)
			return message{data: b.data, kind: kind, lent: b}, true
		case len(b.data) > limit:
			b.free()
			_ = c.ws.Close(closeTooBig, "the frame is too big")
			return message{}, false
		case err != nil:
			b.free()
			return message{}, false
		}
	}
}

// finish ends what runs for a peer that is gone, or lets it be told why.
func (c *conn) finish() {
	c.mu.Lock()
	c.holding = false
	telling := c.ending && c.writing
	if !telling {
		c.gone = true
	}
	c.mu.Unlock()
	if !telling {
		_ = c.ws.CloseNow()
	}
	c.wg.Wait()
	_ = c.ws.CloseNow()
	close(c.left)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	dropAll(c.queue)
	c.queue = nil
	if c.eased != nil {
		close(c.eased)
		c.eased = nil
	}
}

// ping asks whether the peer lives; without an answer or a frame in time it is gone: the answer of one that is held up comes
// behind its frames. One ping is on its way at most. A peer that is
// told to go is not asked: finish may wait for the last goroutine of it already.
func (c *conn) ping(wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.holding || c.ending || !c.pinging.CompareAndSwap(false, true) {
		return
	}
	c.wg.Go(func() {
		defer c.pinging.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		before := c.heard.Load()
		if c.ws.Ping(ctx) != nil && c.heard.Load() == before {
			_ = c.ws.CloseNow() // the reader sees it at once
		}
	})
}
