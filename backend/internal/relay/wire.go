package relay

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// readBuffer and writeBuffer are the buffer sizes of an idle connection, in bytes.
	readBuffer  = 512
	writeBuffer = 64
	// burstBuffer is the size of the buffer that a busy connection takes from a pool.
	burstBuffer = 32 << 10
	// writeTimeout limits one write to a peer.
	writeTimeout = 10 * time.Second
)

var bursts = sync.Pool{New: func() any { b := make([]byte, burstBuffer); return &b }}

// wire is the connection below a WebSocket. net/http would keep 4 KB for each direction until the socket is closed. A
// wire uses almost no memory while idle, and reads and writes large chunks while busy.
type wire struct {
	net.Conn

	// Only the reading goroutine uses these.
	early []byte  // arrived with the handshake
	burst *[]byte // nil unless it has unread data
	ahead []byte  // the unread part of burst
	eager bool    // the last read was full, so more data is likely

	mu     sync.Mutex
	corked bool
	out    *[]byte // waits for uncork; may be nil
	held   int     // used bytes of out
}

// hijack takes the connection over from net/http without its buffers.
type hijack struct {
	http.ResponseWriter
	wire *wire
}

// Hijack returns the connection with its own small buffers (http.Hijacker).
func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := rw.Peek(rw.Reader.Buffered())
	h.wire = &wire{Conn: c, early: bytes.Clone(early)}
	r, w := bufio.NewReaderSize(h.wire, readBuffer), bufio.NewWriterSize(h.wire, writeBuffer)
	return h.wire, bufio.NewReadWriter(r, w), nil
}

// Read reads small chunks until one is full, and then as much as is available.
func (w *wire) Read(p []byte) (int, error) {
	switch {
	case len(w.early) > 0:
		n := copy(p, w.early)
		w.early = w.early[n:]
		return n, nil
	case len(w.ahead) > 0:
		n := copy(p, w.ahead)
		w.ahead = w.ahead[n:]
		w.freeBurst()
		return n, nil
	case !w.eager || len(p) >= burstBuffer:
		n, err := w.Conn.Read(p)
		w.eager = n == len(p)
		return n, err
	}
	w.burst = bursts.Get().(*[]byte)
	got, err := w.Conn.Read(*w.burst)
	w.eager = got == burstBuffer
	n := copy(p, (*w.burst)[:got])
	w.ahead = (*w.burst)[n:got]
	w.freeBurst()
	return n, err
}

func (w *wire) freeBurst() {
	if len(w.ahead) == 0 && w.burst != nil {
		bursts.Put(w.burst)
		w.burst, w.ahead = nil, nil
	}
}

// While w is corked, Write buffers as much of p as fits.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.corked {
		return w.writeNow(p)
	}
	if w.out == nil {
		w.out = bursts.Get().(*[]byte)
	}
	if w.held+len(p) <= burstBuffer {
		w.held += copy((*w.out)[w.held:], p)
		return len(p), nil
	}
	both := net.Buffers{(*w.out)[:w.held], p}
	w.held = 0
	_ = w.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := both.WriteTo(w.Conn); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *wire) writeNow(p []byte) (int, error) {
	_ = w.SetWriteDeadline(time.Now().Add(writeTimeout)) // a write to a dead connection then fails
	return w.Conn.Write(p)
}

// cork delays writes until uncork, so that many frames are sent together.
func (w *wire) cork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked = true
}

// uncork writes the buffered data and returns the buffer to the pool.
func (w *wire) uncork() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked = false
	if w.out == nil {
		return nil
	}
	var err error
	if w.held > 0 {
		_, err = w.writeNow((*w.out)[:w.held])
	}
	bursts.Put(w.out)
	w.out, w.held = nil, 0
	return err
}
