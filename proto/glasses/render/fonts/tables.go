package fonts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// drawnTables are the tables that drawing needs. Others, such as those of Apple's shaping, of bitmaps, colours and
// variations, are left out of an added font, so that their parsers see nothing of it.
var drawnTables = []string{"CFF ", "GDEF", "GPOS", "GSUB", "OS/2", "cmap", "glyf", "head", "hhea", "hmtx", "loca",
	"maxp", "name", "post"}

// parseAdded parses a TrueType, OpenType or WOFF file that somebody else made.
func parseAdded(data []byte) (f *Face, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("parsing it failed: %v", r)
		}
	}()
	if len(data) >= 4 && string(data[:4]) == "wOFF" {
		if data, err = Unpack(data); err != nil {
			return nil, err
		}
	}
	ttf, os2, err := onlyDrawn(data)
	if err != nil {
		return nil, err
	}
	if f, err = parse("added", ttf); err != nil {
		return nil, errors.Unwrap(err)
	}
	f.os2 = os2
	return f, nil
}

// onlyDrawn returns a font file with the drawn tables of another one, and its table OS/2.
func onlyDrawn(ttf []byte) (out, os2 []byte, err error) {
	be := binary.BigEndian
	if len(ttf) < sfntHeader || len(ttf) < sfntHeader+sfntEntry*int(be.Uint16(ttf[4:])) {
		return nil, nil, errTruncated
	}
	type table struct{ tag, sum, data []byte }
	var kept []table
	size := 0
	for i := range int(be.Uint16(ttf[4:])) {
		entry := ttf[sfntHeader+sfntEntry*i:][:sfntEntry]
		if !slices.Contains(drawnTables, string(entry[:4])) {
			continue
		}
		from, length := int64(be.Uint32(entry[8:])), int64(be.Uint32(entry[12:]))
		if from+length > int64(len(ttf)) {
			return nil, nil, fmt.Errorf("table %q: %w", entry[:4], errTruncated)
		}
		if slices.ContainsFunc(kept, func(t table) bool { return string(t.tag) == string(entry[:4]) }) {
			return nil, nil, fmt.Errorf("table %q: it is there twice", entry[:4])
		}
		kept = append(kept, table{entry[:4], entry[4:8], ttf[from : from+length]})
		size += int(length) + 3
	}
	if !slices.ContainsFunc(kept, func(t table) bool { return string(t.tag) == "glyf" || string(t.tag) == "CFF " }) {
		return nil, nil, noOutlines()
	}
	if size > maxUnpacked {
		return nil, nil, fmt.Errorf("the font is larger than %d bytes", maxUnpacked)
	}
	out = make([]byte, sfntHeader+sfntEntry*len(kept), sfntHeader+sfntEntry*len(kept)+size)
	copy(out, ttf[:4])
	if string(ttf[:4]) == "true" { // Apple's name of the same format
		be.PutUint32(out, 0x00010000)
	}
	be.PutUint16(out[4:], uint16(len(kept)))
	for i, t := range kept {
		to := out[sfntHeader+sfntEntry*i:]
		copy(to, t.tag)
		copy(to[4:], t.sum)
		be.PutUint32(to[8:], uint32(len(out)))
		be.PutUint32(to[12:], uint32(len(t.data)))
		if string(t.tag) == "OS/2" {
			os2 = t.data
		}
		out = append(out, t.data...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	return out, os2, nil
}
