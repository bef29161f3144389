package websocket

import "encoding/binary"

// Kind is the type of a message: its opcode (RFC 6455, section 5.2).
type Kind byte

// Kinds of messages. Pings can only be sent, because the connection itself answers received pings.
const (
	Text   Kind = 0x1
	Binary Kind = 0x2
	Ping   Kind = 0x9

	continuation Kind = 0x0
	closing      Kind = 0x8
	pong         Kind = 0xA
)

// isControl reports whether frames of the kind may appear between the fragments of a message.
func (k Kind) isControl() bool { return k&0x8 != 0 }

// Status is the reason for a close (RFC 6455, section 7.4).
type Status int

// Statuses that this package sends. Callers of Close may use others.
const (
	statusProtocol Status = 1002
	statusNone     Status = 1005 // reported if a close frame contains no status; never sent
	statusInvalid  Status = 1007 // the reason of a close is not UTF-8
)

// canBeSent reports whether a peer may send the status in a close frame.
func (s Status) canBeSent() bool {
	switch s {
	case 1004, statusNone, 1006, 1015:
		return false
	}
	return s >= 1000 && s <= 1014 || s >= 3000 && s <= 4999
}

const (
	maxHeader  = 14  // bytes of the longest header that a client sends
	maxControl = 125 // bytes of the payload of a control frame
	final      = 0x80
	masked     = 0x80
)

// appendHeader appends the header of an unfragmented frame from the server.
func appendHeader(b []byte, k Kind, size int) []byte {
	b = append(b, final|byte(k))
	switch {
	case size <= maxControl:
		return append(b, byte(size))
	case size <= 0xFFFF:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(size)) //nolint:gosec // the case bounds it
	default:
		return binary.BigEndian.AppendUint64(append(b, 127), uint64(size))
	}
}

// header is the header of a frame from a client.
type header struct {
	size uint64
	mask [4]byte
	kind Kind
	fin  bool
}

// parseHeader returns the header at the start of data and its length. The length is 0 if data ends before the header
// does. On failure it returns the reason for ending the connection.
func parseHeader(data []byte) (h header, n int, err error) {
	if len(data) < 2 {
		return h, 0, nil
	}
	h.kind, h.fin, h.size = Kind(data[0]&0xF), data[0]&final != 0, uint64(data[1]&0x7F)
	switch {
	case data[0]&0x70 != 0:
		return h, 0, violation("a reserved bit is set, although no extension was agreed on")
	case data[1]&masked == 0:
		return h, 0, violation("a frame is not masked")
	case h.kind.isControl() && (!h.fin || h.size > maxControl):
		return h, 0, violation("a control frame is fragmented or longer than 125 bytes")
	}
	switch h.kind {
	case continuation, Text, Binary, closing, Ping, pong:
	default:
		return h, 0, violation("an opcode is reserved")
	}
	n = 2
	switch h.size {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if len(data) < n+4 {
		return h, 0, nil
	}
	switch h.size {
	case 126:
		h.size = uint64(binary.BigEndian.Uint16(data[2:]))
	case 127:
		if h.size = binary.BigEndian.Uint64(data[2:]); h.size > 1<<62 {
			return h, 0, violation("a frame is too long for any computer")
		}
	}
	copy(h.mask[:], data[n:])
	return h, n + 4, nil
}

// unmask applies the mask (RFC 6455, section 5.3) to data, which begins at offset in the payload.
func unmask(data []byte, mask [4]byte, offset int) {
	var key [8]byte
	for i := range key {
		key[i] = mask[(offset+i)%4]
	}
	word := binary.LittleEndian.Uint64(key[:])
	for len(data) >= 32 {
		_ = data[31]
		binary.LittleEndian.PutUint64(data, binary.LittleEndian.Uint64(data)^word)
		binary.LittleEndian.PutUint64(data[8:], binary.LittleEndian.Uint64(data[8:])^word)
		binary.LittleEndian.PutUint64(data[16:], binary.LittleEndian.Uint64(data[16:])^word)
		binary.LittleEndian.PutUint64(data[24:], binary.LittleEndian.Uint64(data[24:])^word)
		data = data[32:]
	}
	for i := range data {
		data[i] ^= key[i%8]
	}
}

// violation is a protocol violation by the peer, which ends the connection.
type violation string

func (v violation) Error() string { return "WebSocket protocol violation: " + string(v) }
