package websocket

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"
)

// Await calls f in a new goroutine when data arrives or the connection ends. Until then, the connection needs neither a
// goroutine nor a buffer. f becomes the reading goroutine and must call Wait first.
func (c *Conn) Await(f func()) {
	if len(c.ahead) > 0 {
		go f()
		return
	}
	c.release()
	if idlePoller.add(c, f) {
		return
	}
	go func() {
		_ = c.Wait() // f gets the error again
		go f()       // in a new goroutine, because this one's stack must stay small
	}()
}

// Wait blocks until data arrives. It returns an error if the connection has ended.
func (c *Conn) Wait() error {
	if len(c.ahead) > 0 {
		return nil
	}
	c.release()
	n, err := c.raw.Read(c.first[:])
	c.ahead = c.first[:n]
	c.heard.Add(1)
	return err
}

// More reports whether more data can be read now or soon. If it returns false, continue with Await or Wait. After a
// message it waits for up to 400 ms, because on a busy connection that is cheaper than Await.
func (c *Conn) More() bool {
	if len(c.ahead) > 0 {
		return true
	}
	if !c.isWarm { // a control frame came last, and Wait must not use the deadline
		c.cool()
		return false
	}
	if now := time.Now(); c.warmBy.Sub(now) < warmTime { // not before each read, because setting a timer is slow
		c.warmBy = now.Add(2 * warmTime)
		c.ReadBy(c.warmBy)
	}
	c.take()
	n, _ := c.raw.Read(c.in[:])
	if c.ahead = c.in[:n]; n > 0 {
		c.heard.Add(1)
		return true
	}
	c.isWarm = false
	c.cool()
	return false // Wait reports the error of a connection that has ended
}

// cool undoes the deadline set by More.
func (c *Conn) cool() {
	if c.warmBy.IsZero() {
		return
	}
	c.warmBy = time.Time{}
	c.ReadBy(time.Time{})
}

// take moves data that was read ahead to the beginning of a large buffer, unless it is already there.
func (c *Conn) take() {
	if c.in == nil {
		c.in = large.Get().(*[largeBuffer]byte)
	}
	c.ahead = c.in[:copy(c.in[:], c.ahead)]
}

// release returns the buffer to the pool. The buffer must not contain unread data.
func (c *Conn) release() {
	if c.in != nil {
		large.Put(c.in)
	}
	c.in, c.ahead = nil, nil
}

// fill reads at least one more byte ahead. The unread data must be at most part of a header or of a control frame.
func (c *Conn) fill() error {
	c.take()
	n, err := c.receive(c.in[len(c.ahead):])
	c.ahead = c.in[:len(c.ahead)+n]
	if n > 0 {
		return nil
	}
	return err
}

// receive reads from the network. Within a message, it ignores the deadline of More. If the connection ends without a
// close frame, it does not report the end of a message.
func (c *Conn) receive(p []byte) (int, error) {
	n, err := c.raw.Read(p)
	if n == 0 && !c.warmBy.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) {
		c.cool()
		n, err = c.raw.Read(p)
	}
	c.heard.Add(1)
	if err == io.EOF { //nolint:errorlint // a connection returns it unwrapped
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Next waits for the next message and returns its kind. It returns 0 if a ping, pong or close arrived instead, which it
// has then handled. It skips the rest of the previous message. After an error the connection is unusable and must be
// dropped.
func (c *Conn) Next() (Kind, error) {
	for c.kind != 0 {
		if err := c.skip(); err != nil {
			return 0, err
		}
	}
	isControl, err := c.nextFrame()
	if err != nil || isControl {
		return 0, err
	}
	c.kind = c.frame.kind
	return c.kind, nil
}

// Size returns the number of unread bytes of the message that are known to follow. These are all of them, unless the
// client has fragmented the message.
func (c *Conn) Size() uint64 { return c.frame.size }

// Read reads from the message. It returns io.EOF at its end (io.Reader).
func (c *Conn) Read(p []byte) (int, error) {
	for c.frame.size == 0 {
		if c.kind == 0 || c.frame.fin {
			c.kind = 0
			return 0, io.EOF
		}
		if _, err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	if uint64(len(p)) > c.frame.size {
		p = p[:c.frame.size]
	}
	n, err := c.readAhead(p)
	unmask(p[:n], c.frame.mask, c.offset)
	c.offset = (c.offset + n) % 4
	c.frame.size -= uint64(n) //nolint:gosec // at most the size
	return n, err
}

// readAhead reads at least one byte. A large read needs no buffer if no data was read ahead.
func (c *Conn) readAhead(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		if len(p) >= largeBuffer {
			return c.receive(p)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// skip discards part of an unwanted message.
func (c *Conn) skip() error {
	scrap := large.Get().(*[largeBuffer]byte)
	defer large.Put(scrap)
	_, err := c.Read(scrap[:])
	if err == io.EOF { //nolint:errorlint // Read returns it unwrapped
		return nil
	}
	return err
}

// nextFrame reads the header of the next frame of a message, or handles a control frame.
func (c *Conn) nextFrame() (isControl bool, err error) {
	h, err := c.readHeader()
	if err != nil {
		return false, err
	}
	if h.kind.isControl() {
		return true, c.control(h)
	}
	if isFirst := c.kind == 0; isFirst == (h.kind == continuation) {
		return false, c.fail(statusProtocol, violation("a fragment without a beginning, or a message within another"))
	}
	c.frame, c.offset, c.isWarm = h, 0, true
	return false, nil
}

func (c *Conn) readHeader() (header, error) {
	for {
		h, n, err := parseHeader(c.ahead)
		if err != nil {
			return h, c.fail(statusProtocol, err)
		}
		if n > 0 {
			c.ahead = c.ahead[n:]
			c.heard.Add(1)
			return h, nil
		}
		if err := c.fill(); err != nil {
			return h, err
		}
	}
}

// control handles a control frame. It returns an error if the connection ends.
func (c *Conn) control(h header) error {
	c.isWarm = false
	size := int(h.size) //nolint:gosec // at most maxControl
	for len(c.ahead) < size {
		if err := c.fill(); err != nil {
			return err
		}
	}
	payload := c.ahead[:size]
	c.ahead = c.ahead[size:]
	unmask(payload, h.mask, 0)
	switch h.kind {
	case Ping:
		return c.write(pong, payload)
	case closing:
		return c.closed(payload)
	}
	return nil
}

// errClosed is the error of reads after the peer's close frame.
var errClosed = errors.New("the peer closed the connection")

// closed answers the peer's close frame, unless it is itself an answer, and returns errClosed.
func (c *Conn) closed(payload []byte) error {
	status := statusNone
	switch {
	case len(payload) == 1:
		return c.fail(statusProtocol, violation("a status has two bytes"))
	case len(payload) >= 2:
		if status = Status(binary.BigEndian.Uint16(payload)); !status.canBeSent() {
			return c.fail(statusProtocol, violation("a status must not be sent"))
		}
		if !utf8.Valid(payload[2:]) {
			return c.fail(statusInvalid, violation("a reason is not UTF-8"))
		}
	}
	_ = c.writeClose(status, "")
	return errClosed
}

// fail ends the connection with a status and returns the reason.
func (c *Conn) fail(status Status, why error) error {
	_ = c.writeClose(status, why.Error())
	return why
}
