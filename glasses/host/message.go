package host

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host/websocket"
)

// Message is one encoded frame. Its bytes are shared and must not be modified.
type Message struct {
	Data []byte
	Kind websocket.Kind
	// Stream marks a frame that may be dropped for a peer that is behind.
	Stream bool
	// pooled is the buffer of Data if it can be reused, and nil otherwise.
	pooled *buffer
}

// Text returns the message of a text frame.
func Text(frame []byte) Message { return Message{Data: frame, Kind: websocket.Text} }

// Binary returns the message of a binary frame.
func Binary(frame []byte) Message { return Message{Data: frame, Kind: websocket.Binary} }

// Size returns the frame's length in bytes (broker.Parcel).
func (m Message) Size() int { return len(m.Data) }

// IsStream reports whether the frame may be dropped (broker.Parcel).
func (m Message) IsStream() bool { return m.Stream }

// retain adds a user of the bytes. Each user must call release.
func (m Message) retain() {
	if m.pooled != nil {
		m.pooled.users.Add(1)
	}
}

// release removes a user of the bytes. The last release returns them to the pool.
func (m Message) release() {
	if m.pooled != nil && m.pooled.users.Add(-1) == 0 {
		m.pooled.free()
	}
}

// buffer is memory for one received frame, shared by all goroutines that write the frame.
type buffer struct {
	data  []byte
	users atomic.Int32
}

// Buffer sizes are powers of two from 1<<minBits up to the first size that fits every frame.
const minBits, maxBits = 9, 22

var buffers [maxBits - minBits + 1]sync.Pool

const _ = uint(1<<maxBits - glasses.MaxBinary - 1) // does not compile if the largest size cannot hold every frame

// newBuffer returns an empty buffer with one user and capacity for at least size bytes.
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

// grow returns a buffer of twice the size with the same content and frees b.
func (b *buffer) grow() *buffer {
	g := newBuffer(2 * cap(b.data))
	g.data = append(g.data, b.data...)
	b.free()
	return g
}
