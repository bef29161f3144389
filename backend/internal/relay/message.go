package relay

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/service-dev/service/proto/glasses"
)

// message is one encoded frame for peers. Its bytes are shared and must not change.
type message struct {
	data []byte
	kind websocket.MessageType
	// stream frames may be dropped for a peer that is behind.
	stream bool
	// pooled holds data if it is to be reused; nil otherwise.
	pooled *buffer
}

func text(frame []byte) message { return message{data: frame, kind: websocket.MessageText} }

// Size returns the frame's length in bytes (broker.Parcel).
func (m message) Size() int { return len(m.data) }

// IsStream reports whether the frame may be dropped (broker.Parcel).
func (m message) IsStream() bool { return m.stream }

// retain adds a user of the bytes, who must call release.
func (m message) retain() {
	if m.pooled != nil {
		m.pooled.users.Add(1)
	}
}

// release returns the bytes to the pool after the last user's call.
func (m message) release() {
	if m.pooled != nil && m.pooled.users.Add(-1) == 0 {
		m.pooled.free()
	}
}

// buffer is memory for one received frame, shared by all who write it.
type buffer struct {
	data  []byte
	users atomic.Int32
}

// Sizes of buffers are powers of two from 1<<minBits to the first that holds every frame.
const minBits, maxBits = 9, 22

var buffers [maxBits - minBits + 1]sync.Pool

const _ = uint(1<<maxBits - glasses.MaxBinary - 1) // the last size holds every frame

// newBuffer returns an empty buffer for at least size bytes, with one user.
func newBuffer(size int) *buffer {
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

// grow returns a buffer of twice the size with the same bytes, and frees b.
func (b *buffer) grow() *buffer {
	g := newBuffer(2 * cap(b.data))
	g.data = append(g.data, b.data...)
	b.free()
	return g
}
