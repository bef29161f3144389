package relay

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/service-dev/service/proto/glasses"
)

// message is one encoded frame on its way to peers. Its bytes are shared and must not change.
type message struct {
	data []byte
	kind websocket.MessageType
	// stream frames may be dropped for a peer that is behind.
	stream bool
	// lent is where data lies when that is to be used again; nil otherwise.
	lent *buffer
}

func text(frame []byte) message { return message{data: frame, kind: websocket.MessageText} }

// keep says that one more will call done.
func (m message) keep() {
	if m.lent != nil {
		m.lent.users.Add(1)
	}
}

// done gives the bytes back once every user has called it.
func (m message) done() {
	if m.lent != nil && m.lent.users.Add(-1) == 0 {
		m.lent.free()
	}
}

// buffer is memory for one frame that was read, shared by all who write it.
type buffer struct {
	data  []byte
	users atomic.Int32
}

// Sizes of buffers are powers of two from 1<<minBits to the first that takes every frame.
const minBits, maxBits = 9, 22

var buffers [maxBits - minBits + 1]sync.Pool

const _ = uint(1<<maxBits - glasses.MaxBinary - 1) // the last size takes every frame

// lend gives an empty buffer with room for size bytes at least, and one user.
func lend(size int) *buffer {
	class := max(bits.Len(uint(max(size, 1)-1))-minBits, 0)
	b, _ := buffers[class].Get().(*buffer)
	if b == nil {
		b = &buffer{data: make([]byte, 0, 1<<(class+minBits))}
	}
	b.users.Store(1)
	return b
}

func (b *buffer) free() {
	b.data = b.data[:0]
	buffers[bits.Len(uint(cap(b.data)-1))-minBits].Put(b)
}

// grown is a buffer of twice the size with the same bytes; b is free then.
func (b *buffer) grown() *buffer {
	g := lend(2 * cap(b.data))
	g.data = append(g.data, b.data...)
	b.free()
	return g
}
