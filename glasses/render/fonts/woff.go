package fonts

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxUnpacked is the maximum size of an unpacked font, in bytes.
const maxUnpacked = 32 << 20

const (
	woffHeader, woffEntry = 44, 20
	sfntHeader, sfntEntry = 12, 16
)

var errTruncated = errors.New("the file is truncated")

// Unpack returns the TrueType file that a WOFF 1.0 file (W3C recommendation of 13 December 2012) contains.
func Unpack(woff []byte) ([]byte, error) {
	be := binary.BigEndian
	if len(woff) < woffHeader || string(woff[:4]) != "wOFF" {
		return nil, errors.New("not a WOFF file")
	}
	tables := int(be.Uint16(woff[12:]))
	if len(woff) < woffHeader+woffEntry*tables {
		return nil, errTruncated
	}
	out := make([]byte, sfntHeader+sfntEntry*tables, max(sfntHeader+sfntEntry*tables, unpackedSize(woff)))
	copy(out, woff[4:8])
	be.PutUint16(out[4:], uint16(tables))
	for i := range tables {
		entry := woff[woffHeader+woffEntry*i:]
		offset, packed, size := int64(be.Uint32(entry[4:])), int64(be.Uint32(entry[8:])), int64(be.Uint32(entry[12:]))
		if offset+packed > int64(len(woff)) || packed > size {
			return nil, errTruncated
		}
		if int64(len(out))+size > maxUnpacked {
			return nil, fmt.Errorf("the font is larger than %d bytes", maxUnpacked)
		}
		to := out[sfntHeader+sfntEntry*i:]
		copy(to, entry[:4])
		copy(to[4:], entry[16:20])
		be.PutUint32(to[8:], uint32(len(out)))
		be.PutUint32(to[12:], uint32(size))
		var err error
		if out, err = appendTable(out, woff[offset:offset+packed], int(size)); err != nil {
			return nil, fmt.Errorf("table %q: %w", entry[:4], err)
		}
	}
	return out, nil
}

// unpackedSize returns the size in the header of a WOFF file. The result is limited, because the size may be wrong.
func unpackedSize(woff []byte) int {
	return min(int(binary.BigEndian.Uint32(woff[16:])), maxUnpacked, 8*len(woff))
}

// appendTable appends a table, unpacked to size bytes and padded to four bytes. The table is compressed if it is
// shorter than size.
func appendTable(out, table []byte, size int) ([]byte, error) {
	start := len(out)
	if len(table) == size {
		out = append(out, table...)
	} else {
		z, err := zlib.NewReader(bytes.NewReader(table))
		if err != nil {
			return nil, err
		}
		out = slices.Grow(out, size)[:start+size]
		if _, err := io.ReadFull(z, out[start:]); err != nil {
			return nil, err
		}
	}
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out, nil
}
