package relay

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/websocket"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// Reasons for closing a connection that are used in several places.
const (
	restarts    = "the service restarts"
	notStored   = "the frame could not be stored; reconnect and send it again"
	notReadable = "the session could not be read; try again"
)

// Limits on the queue of one peer, in addition to Options.OutboxSize.
const (
	maxQueued       = 16 << 20 // bytes
	maxStreamBytes  = 4 << 20
	maxStreamFrames = 1024
	// maxPressure is the longest time a peer may delay the sender of a stream.
	maxPressure = 50 * time.Millisecond
)

// conn is one attached peer. While it is idle, it has no goroutine.
type conn struct {
	id      broker.PeerID
	ws      *websocket.Conn
	session *liveSession // set when it is attached
	// isSignedIn reports, for a page, whether its user is still signed in.
	isSignedIn func(context.Context) bool
	app        glasses.AppInfo // set for an app
	tokenEnds  time.Time       // when an app's token for the AI gateway expires; zero without one; guarded by peersMu
	// takesTokens reports whether an app accepts new tokens for the AI gateway.
	takesTokens bool
	isBack      bool      // the app attached again with its cursor
	to          audience  // its side of the session
	isPinged    bool      // a ping was sent at lastPing; like the next two fields, used by runMaintenance only
	heard       uint32    // ws.Heard at lastPing
	lastPing    time.Time // time of the last ping, or of attaching

	wg       sync.WaitGroup
	mu       sync.Mutex
	outbox   broker.Outbox[message]
	lag      *lag          // set while the peer is behind
	left     chan struct{} // closed once the peer is gone; created by the first caller that waits for it
	greeting bool          // the welcome and the replay are being written, before the queue
	writing  bool          // drain is running
	gone     bool          // no new goroutine may be started
	ending   bool          // the close code and reason are set
	code     websocket.Status
	reason   string
}

// lag is a period in which a peer does not keep up with a stream.
type lag struct {
	since    time.Time
	relieved chan struct{} // closed when the lag ends
}

func (h *Hub) newConn(ws *websocket.Conn, to audience) *conn {
	return &conn{
		id: broker.PeerID(h.lastPeer.Add(1)), ws: ws, to: to, lastPing: time.Now(),
		outbox: broker.NewOutbox[message](&h.bounds), greeting: true,
	}
}

// sender returns the peer's name in the log.
func (c *conn) sender() string {
	if c.to == toPages {
		return glasses.SenderGlasses
	}
	return glasses.SenderApp
}

// send queues a message and never blocks. A peer that is too far behind is disconnected, or misses the frame if it is a
// stream frame. The sender of a stream may wait for the returned channel, which is nil if the peer keeps up.
func (c *conn) send(m message) (relieved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.ending {
		return nil
	}
	switch c.outbox.Put(m) {
	case broker.Dropped:
		c.session.hub.dropped.Add(1)
		return c.press()
	case broker.Overflow:
		c.endLocked(glasses.CloseSlow, "too slow; reconnect with your cursor")
		return nil
	}
	m.retain()
	c.startWriter()
	if c.outbox.IsPressed() {
		return c.press()
	}
	return nil
}

// sendText queues a text frame from the service.
func (c *conn) sendText(frame []byte) { c.send(text(frame)) }

// press returns the channel to wait for, or nil if the peer has already delayed senders for maxPressure. The caller
// must hold mu.
func (c *conn) press() <-chan struct{} {
	now := time.Now()
	if c.lag == nil {
		c.lag = &lag{now, make(chan struct{})}
	}
	if now.Sub(c.lag.since) > maxPressure {
		return nil
	}
	return c.lag.relieved
}

// relieve releases the senders that wait for this peer. The caller must hold mu.
func (c *conn) relieve() {
	if c.lag != nil {
		close(c.lag.relieved)
		c.lag = nil
	}
}

// startWriter starts drain unless it is running. The caller must hold mu.
func (c *conn) startWriter() {
	if !c.writing && !c.greeting && !c.gone {
		c.writing = true
		c.wg.Go(c.drain)
	}
}

// startQueue starts writing the queue, after the greeting.
func (c *conn) startQueue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greeting = false
	if c.outbox.Len() > 0 || c.ending {
		c.startWriter()
	}
}

// end sends the queued frames and then closes the connection with a reason. Only the first call has an effect.
func (c *conn) end(code websocket.Status, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(code, reason)
}

func (c *conn) endLocked(code websocket.Status, reason string) {
	if c.ending || c.gone {
		return
	}
	c.ending, c.code, c.reason = true, code, reason
	c.startWriter()
}

// drain writes until the queue is empty.
func (c *conn) drain() {
	for {
		c.mu.Lock()
		batch := c.outbox.Take()
		isDone, ending := len(batch) == 0 || c.gone, c.ending && !c.gone
		if len(batch) == 0 && !c.ending {
			c.writing = false
		}
		c.mu.Unlock()
		if isDone {
			releaseAll(batch)
			if ending {
				c.ws.SendClose(c.code, c.reason)
			}
			return
		}
		if !c.writeAll(batch) {
			c.ws.Drop() // the reader sees the error
			return
		}
	}
}

func releaseAll(batch []message) {
	for _, m := range batch {
		m.release()
	}
}

// writeAll writes a batch and combines frames into larger writes where they fit.
func (c *conn) writeAll(batch []message) bool {
	c.ws.Cork()
	for i, m := range batch {
		err := c.ws.Write(m.kind, m.data)
		c.written(m)
		if err != nil {
			releaseAll(batch[i+1:])
			return false
		}
	}
	return c.ws.Uncork() == nil
}

func (c *conn) written(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outbox.Written(m)
	m.release()
	if c.outbox.IsRelieved() {
		c.relieve()
	}
}

// greet writes a frame immediately, before anything in the queue.
func (c *conn) greet(frame []byte) error {
	return c.ws.Write(websocket.Text, frame)
}

// next reads one frame, within the size limit for its kind. The kind is 0 if a ping or pong arrived instead. It returns
// false when the peer is gone or has been closed with a reason. The caller must release the frame.
func (c *conn) next(textLimit, binaryLimit int) (message, bool) {
	kind, err := c.ws.Next()
	if err != nil || kind == 0 {
		return message{}, err == nil
	}
	limit := binaryLimit
	if kind == websocket.Text {
		limit = textLimit
	}
	size := c.ws.Size()
	if size > uint64(limit) { //nolint:gosec // limits are positive
		c.ws.Close(glasses.CloseTooBig, "the frame is too big")
		return message{}, false
	}
	b := newBuffer(int(size) + 1) //nolint:gosec // at most the limit; one extra byte, to detect the end without growing
	for {
		if len(b.data) == cap(b.data) {
			b = b.grow()
		}
		n, err := c.ws.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case len(b.data) > limit:
			b.free()
			c.ws.Close(glasses.CloseTooBig, "the frame is too big")
			return message{}, false
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			b.free()
			return message{}, false
		}
		return message{data: b.data, kind: kind, pooled: b}, true
	}
}

// finish stops the goroutines of a peer that is gone. If a writer is closing the connection with a reason, finish lets
// it complete first.
func (c *conn) finish() {
	c.mu.Lock()
	c.greeting = false
	isClosing := c.ending && c.writing
	if !isClosing {
		c.gone = true
	}
	c.mu.Unlock()
	if !isClosing {
		c.ws.Drop()
	}
	c.wg.Wait()
	c.ws.Drop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.left != nil {
		close(c.left)
		c.left = nil
	}
	releaseAll(c.outbox.Take())
	c.relieve()
}

// leaves returns a channel that is closed once the peer is gone.
func (c *conn) leaves() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone:
		left := make(chan struct{})
		close(left)
		return left
	case c.left == nil:
		c.left = make(chan struct{})
	}
	return c.left
}

// ping sends a ping to the peer. It does nothing while frames wait to be written: the pong would wait behind them, and
// a write to a peer that is gone fails in time.
func (c *conn) ping() (sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.greeting || c.ending || c.outbox.Len() > 0 {
		return false
	}
	c.outbox.Put(message{kind: websocket.Ping})
	c.startWriter()
	return true
}
