package cli

import (
	"bytes"
	"encoding/binary"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"golang.org/x/image/font/gofont/goregular"
)

// writeFontBomb implements `fontbomb FILE`. It writes a font of 180 KB whose GSUB table lists the same lookup thousands
// of times, and the lookup lists the same subtable thousands of times, so that parsing it needs gigabytes.
func writeFontBomb(ts *testscript.TestScript, _ bool, args []string) {
	const times, tableHeader = 8000, 12
	be := binary.BigEndian
	words := func(values ...uint16) (out []byte) {
		for _, v := range values {
			out = be.AppendUint16(out, v)
		}
		return out
	}
	table := words(1, 0, 10, 12, 14, 0, 0, times)
	table = append(table, bytes.Repeat(words(2+2*times), times)...) // the offset of the lookup
	table = append(table, words(1, 0, times)...)
	table = append(table, bytes.Repeat(words(6+2*times), times)...) // the offset of the subtable
	table = append(table, words(1, 6, 1, 1, 1, 3)...)
	font := bytes.Clone(goregular.TTF)
	for i := range int(be.Uint16(font[4:])) {
		entry := font[tableHeader+16*i:]
		if string(entry[:4]) == "gasp" { // the Go fonts have this table, which is not needed for drawing
			copy(entry, "GSUB")
			be.PutUint32(entry[8:], uint32(len(font)))
			be.PutUint32(entry[12:], uint32(len(table)))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(font, table...), 0o600))
}
