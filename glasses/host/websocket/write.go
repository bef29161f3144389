package websocket

import (
	"encoding/binary"
	"net"
	"strings"
	"time"
)

// Write sends a message or a ping in one frame. While the connection is corked, the frame may wait in a buffer. After a
// close, Write discards the frame.
func (c *Conn) Write(k Kind, data []byte) error { return c.write(k, data) }

func (c *Conn) write(k Kind, data []byte) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	if c.sent {
		return nil
	}
	return c.append(k, data)
}

// append adds a frame to the buffer, and sends the buffer when it is full or the connection is not corked.
func (c *Conn) append(k Kind, data []byte) error {
	if !c.reserve(maxHeader + len(data)) {
		// Send the buffer, the header and the data in one system call, without copying the data.
		return c.send(net.Buffers{appendHeader(c.out, k, len(data)), data})
	}
	c.out = append(appendHeader(c.out, k, len(data)), data...)
	if c.corked {
		return nil
	}
	return c.flush()
}

// reserve makes room in the buffer for a frame of size bytes. It returns false if there is room only for a header.
func (c *Conn) reserve(size int) (fits bool) {
	need := len(c.out) + size
	if need <= cap(c.out) {
		return true
	}
	if c.out == nil && need <= smallBuffer {
		c.out = small.Get().(*[smallBuffer]byte)[:0]
		return true
	}
	if cap(c.out) < largeBuffer {
		grown := large.Get().(*[largeBuffer]byte)
		held := copy(grown[:], c.out)
		free(c.out)
		c.out = grown[:held]
	}
	return need <= largeBuffer
}

// send writes parts and returns the buffer to the pool.
func (c *Conn) send(parts net.Buffers) error {
	_ = c.raw.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := parts.WriteTo(c.raw)
	free(c.out)
	c.out = nil
	return err
}

// flush sends the content of the buffer.
func (c *Conn) flush() error {
	if c.out == nil {
		return nil
	}
	_ = c.raw.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := c.raw.Write(c.out)
	free(c.out)
	c.out = nil
	return err
}

func free(buffer []byte) {
	switch cap(buffer) {
	case smallBuffer:
		small.Put((*[smallBuffer]byte)(buffer[:smallBuffer]))
	case largeBuffer:
		large.Put((*[largeBuffer]byte)(buffer[:largeBuffer]))
	}
}

// Cork delays writes until Uncork, so that many frames are sent together.
func (c *Conn) Cork() {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.corked = true
}

// Uncork sends the data written since Cork.
func (c *Conn) Uncork() error {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.corked = false
	return c.flush()
}

// writeClose sends the buffered data and the only close frame.
func (c *Conn) writeClose(status Status, reason string) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	if c.sent {
		return nil
	}
	c.sent = true
	var payload []byte
	if status != statusNone {
		if len(reason) > maxControl-2 {
			reason = strings.ToValidUTF8(reason[:maxControl-2], "")
		}
		payload = append(binary.BigEndian.AppendUint16(nil, uint16(status)), reason...) //nolint:gosec // statuses are small
	}
	if err := c.append(closing, payload); err != nil {
		return err
	}
	return c.flush()
}
