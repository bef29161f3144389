package media

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
)

// JPEG markers (ITU-T T.81, B.1.1.3).
const (
	soi  = 0xD8
	eoi  = 0xD9
	sos  = 0xDA
	app0 = 0xE0
	app1 = 0xE1
	com  = 0xFE

	pixels = 0 // not a marker
)

// jpegParts yields the parts of the JPEG at the start of data in order, each with its marker. The parts are the
// segments and, with the marker pixels, the data after a segment sos. The last part is eoi, unless the JPEG is
// truncated or malformed.
func jpegParts(data []byte) iter.Seq2[byte, []byte] {
	return func(yield func(byte, []byte) bool) {
		if len(data) < 4 || data[0] != 0xFF || data[1] != soi || !yield(soi, data[:2]) {
			return
		}
		for i := 2; i+1 < len(data) && data[i] == 0xFF; {
			start := i
			for i+2 < len(data) && data[i+1] == 0xFF { // fill byte
				i++
			}
			marker := data[i+1]
			if marker == eoi {
				yield(eoi, data[start:i+2])
				return
			}
			if marker == soi || marker == 0 || i+3 >= len(data) {
				return
			}
			length := int(data[i+2])<<8 + int(data[i+3])
			if i += 2 + length; length < 2 || i > len(data) || !yield(marker, data[start:i]) {
				return
			}
			if marker != sos {
				continue
			}
			for start = i; i+1 < len(data) && !endsScan(data[i], data[i+1]); {
				i++
			}
			if !yield(pixels, data[start:i]) {
				return
			}
		}
	}
}

// content returns the content of a segment. Fill bytes may precede its marker.
func content(marker byte, segment []byte) []byte { return segment[bytes.IndexByte(segment, marker)+3:] }

// endsScan reports whether two bytes are a marker that ends the pixels.
func endsScan(a, b byte) bool { return a == 0xFF && b != 0 && (b < 0xD0 || b > 0xD7) }

// jpegLength returns the length of the JPEG at the start of data, or 0 if there is none or it is truncated.
func jpegLength(data []byte) (length int) {
	for marker, part := range jpegParts(data) {
		if length += len(part); marker == eoi {
			return length
		}
	}
	return 0
}

// kept lists the application segments that decoders need: density (without the thumbnail after it), colour profile and
// colour transform. It contains the start of each segment's content and the length of the needed part.
var kept = map[byte]struct {
	start  string
	length int
}{app0: {"JFIF\x00", 12}, 0xE2: {"ICC_PROFILE\x00", 1 << 16}, 0xEE: {"Adobe", 12}}

// withoutMetadata returns a JPEG without descriptive segments (such as place and device), thumbnails, other pictures
// and data after its end. It returns nil if the JPEG is truncated or malformed.
func withoutMetadata(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for marker, part := range jpegParts(data) {
		if marker&0xF0 == app0 || marker == com {
			part = withoutDescription(marker, part)
		}
		if out = append(out, part...); marker == eoi {
			return out
		}
	}
	return nil
}

// withoutDescription returns the part of an application segment or comment that decoders need, or nil if they need
// none.
func withoutDescription(marker byte, segment []byte) []byte {
	k, found := kept[marker]
	needed := content(marker, segment)
	if !found || !bytes.HasPrefix(needed, []byte(k.start)) {
		return nil
	}
	needed = needed[:min(len(needed), k.length)]
	if marker == app0 {
		needed = append(slices.Clone(needed), 0, 0) // size of the thumbnail
	}
	return append(binary.BigEndian.AppendUint16([]byte{0xFF, marker}, uint16(2+len(needed))), needed...)
}
