package websocket

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// largeBuffer and smallBuffer are the sizes of the buffers of a connection that is not idle, in bytes. Heartbeats and
	// pings go to all connections at once, so they must do with small buffers, or none.
	largeBuffer = 32 << 10
	smallBuffer = 512
	// writeTimeout limits one write, because a peer that is gone takes nothing.
	writeTimeout = 10 * time.Second
	// closeTimeout limits the wait for the peer's answer to a close.
	closeTimeout = 5 * time.Second
	// warmTime is how long a connection keeps its reader after a message: the next one often follows soon.
	warmTime = 200 * time.Millisecond
)

var (
	large = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
	small = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
)

// Conn is an accepted connection. One goroutine reads at a time: it calls Await, Wait, More, Next, Read and Size. Any
// goroutine may call the other methods.
type Conn struct {
	raw   net.Conn
	fd    int32 // the descriptor that Await waits for; 0 if there is none
	heard atomic.Uint32

	// What arrives; only the reading goroutine uses this.
	first  [16]byte           // what Wait reads into: enough for the answer to a ping
	in     *[largeBuffer]byte // nil while there is little to read
	ahead  []byte             // the unread part of in, or of first
	frame  header             // of the frame that is read; its size is that of the rest
	offset int                // of the rest in the frame, for its mask
	kind   Kind               // of the message that is read; 0 between messages
	isWarm bool               // the last frame was part of a message
	warmBy time.Time          // the read deadline that More has set; zero if there is none

	deadlines sync.Mutex
	isEnding  bool // the read deadline is the end of the close, or the connection was dropped

	writes sync.Mutex
	corked bool
	sent   bool   // a close frame was sent
	out    []byte // waits for Uncork; in a buffer of one of the sizes, or nil
}

// Heard returns a number that changes whenever something arrives or a frame is read: a part of a message, a message
// that had arrived before, or the answer to a ping.
func (c *Conn) Heard() uint32 { return c.heard.Load() }

// Drop closes the connection without a reason. A blocked Wait, Next, Read or Write returns an error, and Await calls
// its function.
func (c *Conn) Drop() {
	c.deadlines.Lock()
	c.isEnding = true
	c.deadlines.Unlock()
	idlePoller.wake(c) // while the descriptor is that of this connection
	_ = c.raw.Close()
}

// SendClose tells the peer that and why the connection ends: the reading goroutine then gets an error as soon as the
// peer has answered, after five seconds at most, and must call Drop. The reason is cut to 123 bytes.
func (c *Conn) SendClose(status Status, reason string) {
	c.deadlines.Lock()
	c.isEnding = true
	_ = c.raw.SetReadDeadline(time.Now().Add(closeTimeout))
	c.deadlines.Unlock()
	if err := c.writeClose(status, reason); err != nil {
		c.Drop()
		return
	}
	idlePoller.wake(c)
}

// Close is SendClose by the reading goroutine, which waits for the answer and drops the connection.
func (c *Conn) Close(status Status, reason string) {
	c.SendClose(status, reason)
	for {
		if _, err := c.Next(); err != nil {
			c.Drop()
			return
		}
	}
}

// ReadBy sets the time by which what is read must have arrived; zero means any time. After that, reads fail with
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
