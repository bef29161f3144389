package websocket

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// largeBuffer and smallBuffer are the buffer sizes of a connection that is not idle, in bytes. Heartbeats and pings
	// are sent to all connections at once, so they must use small buffers or none.
	largeBuffer = 32 << 10
	smallBuffer = 512
	// writeTimeout is the time limit of one write, because a peer that is gone does not read.
	writeTimeout = 10 * time.Second
	// closeTimeout is the maximum wait for the peer's response to a close.
	closeTimeout = 5 * time.Second
	// warmTime is how long a connection keeps its reader after a message, because the next message often follows soon.
	warmTime = 200 * time.Millisecond
)

var (
	large = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
	small = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
)

// Conn is an accepted connection. Only one goroutine at a time may read: it calls Await, Wait, More, Next, Read and
// Size. Any goroutine may call the other methods.
type Conn struct {
	raw   net.Conn
	fd    int32 // the descriptor that Await waits for; 0 if there is none
	heard atomic.Uint32

	// State of reading, used only by the reading goroutine.
	first  [16]byte           // buffer of Wait, large enough for a pong
	in     *[largeBuffer]byte // nil while there is little to read
	ahead  []byte             // the unread part of in, or of first
	frame  header             // of the current frame; its size is the number of remaining bytes
	offset int                // position of the next byte within the 4-byte mask
	kind   Kind               // kind of the current message; 0 between messages
	isWarm bool               // the last frame was part of a message
	warmBy time.Time          // the read deadline set by More; zero if there is none

	deadlines sync.Mutex
	isEnding  bool // the read deadline is the end of the close, or the connection was dropped

	writes sync.Mutex
	corked bool
	sent   bool   // a close frame was sent
	out    []byte // data waiting for Uncork, in a buffer of one of the sizes; nil if there is none
}

// Heard returns a number that changes whenever data arrives or a frame is read. The data may be a part of a message or
// a pong.
func (c *Conn) Heard() uint32 { return c.heard.Load() }

// Drop closes the connection without a reason. A blocked Wait, Next, Read or Write returns an error, and Await calls
// its function.
func (c *Conn) Drop() {
	c.deadlines.Lock()
	c.isEnding = true
	c.deadlines.Unlock()
	idlePoller.wake(c) // while the descriptor still belongs to this connection
	_ = c.raw.Close()
}

// SendClose sends a close frame with the status and reason, truncated to 123 bytes. The reading goroutine then gets an
// error as soon as the peer has responded, after at most five seconds, and must call Drop.
func (c *Conn) SendClose(status Status, reason string) {
	c.deadlines.Lock()
	if !c.isEnding { // a second close must not extend the deadline
		c.isEnding = true
		_ = c.raw.SetReadDeadline(time.Now().Add(closeTimeout))
	}
	c.deadlines.Unlock()
	if err := c.writeClose(status, reason); err != nil {
		c.Drop()
		return
	}
	idlePoller.wake(c)
}

// Close is like SendClose, but also waits for the response and drops the connection. Only the reading goroutine may
// call it.
func (c *Conn) Close(status Status, reason string) {
	c.SendClose(status, reason)
	for {
		if _, err := c.Next(); err != nil {
			c.Drop()
			return
		}
	}
}

// ReadBy sets the deadline for reads. The zero time means none. After the deadline, reads fail with
// os.ErrDeadlineExceeded.
func (c *Conn) ReadBy(t time.Time) {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	if !c.isEnding {
		_ = c.raw.SetReadDeadline(t)
	}
}

// ends reports whether Drop or SendClose was called.
func (c *Conn) ends() bool {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	return c.isEnding
}
