package fonts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// drawnTables lists the tables that drawing needs. The other tables of an added font, such as those for Apple's
// shaping, bitmaps, colours and variations, are removed, so that no parser reads them.
var drawnTables = []string{"CFF ", "GDEF", "GPOS", "GSUB", "OS/2", "cmap", "glyf", "head", "hhea", "hmtx", "loca",
	"maxp", "name", "post"}

// parseAdded parses a TrueType, OpenType or WOFF file from an untrusted source.
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

// withoutOutlines returns a font for shaping only. The shaping library would parse every outline, which takes most of
// the time and memory for a large font.
func withoutOutlines(ttf []byte) ([]byte, error) {
	tables, err := tablesOf(ttf, func(tag string) bool { return tag != "glyf" && tag != "loca" })
	if err != nil {
		return nil, err
	}
	return fontOf(ttf[:4], tables), nil
}

// onlyDrawn returns a copy of a font file that contains only its drawnTables, and separately its OS/2 table.
func onlyDrawn(ttf []byte) (out, os2 []byte, err error) {
	tables, err := tablesOf(ttf, func(tag string) bool { return slices.Contains(drawnTables, tag) })
	if err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(tables, func(t sfntTable) bool { return t.tag == "glyf" || t.tag == "CFF " }) {
		return nil, nil, noOutlines()
	}
	size := 0
	for _, t := range tables {
		size += len(t.data) + 3
		if t.tag == "OS/2" {
			os2 = t.data
		}
	}
	if size > maxUnpacked {
		return nil, nil, fmt.Errorf("the font is larger than %d bytes", maxUnpacked)
	}
	version := ttf[:4]
	if string(version) == "true" { // Apple's name of the same format
		version = []byte{0, 1, 0, 0}
	}
	return fontOf(version, tables), os2, nil
}

// sfntTable is a table of a font file.
type sfntTable struct {
	tag       string
	sum, data []byte
}

// tablesOf returns the tables of a font file for which keep returns true, in the order of the file. It returns an error
// if a table occurs twice.
func tablesOf(ttf []byte, keep func(tag string) bool) ([]sfntTable, error) {
	be := binary.BigEndian
	if len(ttf) < sfntHeader || len(ttf) < sfntHeader+sfntEntry*int(be.Uint16(ttf[4:])) {
		return nil, errTruncated
	}
	var kept []sfntTable
	for i := range int(be.Uint16(ttf[4:])) {
		entry := ttf[sfntHeader+sfntEntry*i:][:sfntEntry]
		tag := string(entry[:4])
		if !keep(tag) {
			continue
		}
		from, length := int64(be.Uint32(entry[8:])), int64(be.Uint32(entry[12:]))
		if from+length > int64(len(ttf)) {
			return nil, fmt.Errorf("table %q: %w", tag, errTruncated)
		}
		if slices.ContainsFunc(kept, func(t sfntTable) bool { return t.tag == tag }) {
			return nil, fmt.Errorf("table %q occurs twice", tag)
		}
		kept = append(kept, sfntTable{tag, entry[4:8], ttf[from : from+length]})
	}
	return kept, nil
}

// fontOf returns a font file that contains tables.
func fontOf(version []byte, tables []sfntTable) []byte {
	be := binary.BigEndian
	size := sfntHeader + sfntEntry*len(tables)
	for _, t := range tables {
		size += len(t.data) + 3
	}
	out := make([]byte, sfntHeader+sfntEntry*len(tables), size)
	copy(out, version)
	be.PutUint16(out[4:], uint16(len(tables)))
	for i, t := range tables {
		to := out[sfntHeader+sfntEntry*i:]
		copy(to, t.tag)
		copy(to[4:], t.sum)
		be.PutUint32(to[8:], uint32(len(out)))
		be.PutUint32(to[12:], uint32(len(t.data)))
		out = append(out, t.data...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	return out
}
