package glasses

import "encoding/binary"

// A binary frame is one self-contained WebSocket binary message: the header length as a big-endian uint16, the header
// (a Frame as JSON), and the body that the header describes.

// Limits of a binary frame, in bytes.
const (
	MaxBinary = 2 << 20 // the whole message; a larger one closes the connection with status 1009
	MaxHeader = 4 << 10
)

// ParseBinary splits a binary message. body aliases data. On failure it returns an *Error with code bad_frame.
func ParseBinary(data []byte) (f Frame, body []byte, err error) {
	if len(data) > MaxBinary {
		return Frame{}, nil, badFrame("binary frame is %d bytes long, over the limit of %d", len(data), MaxBinary)
	}
	if len(data) < 2 {
		return Frame{}, nil, badFrame("binary frame is shorter than 2 bytes")
	}
	n := int(binary.BigEndian.Uint16(data))
	if n > MaxHeader || 2+n > len(data) {
		return Frame{}, nil, badFrame("binary frame declares a header of %d bytes, but %d follow and the limit is %d",
			n, len(data)-2, MaxHeader)
	}
	f, err = Parse(data[2 : 2+n])
	return f, data[2+n:], err
}

// EncodeBinary returns the binary message of a header and a body. It returns an *Error with code bad_frame if the
// header or the message is too long.
func EncodeBinary(f Frame, body []byte) ([]byte, error) {
	header, err := f.Encode()
	if err != nil {
		return nil, err
	}
	if len(header) > MaxHeader || 2+len(header)+len(body) > MaxBinary {
		return nil, badFrame("binary frame would be longer than %d bytes", MaxBinary)
	}
	data := make([]byte, 2, 2+len(header)+len(body))
	binary.BigEndian.PutUint16(data, uint16(len(header)))
	return append(append(data, header...), body...), nil
}
