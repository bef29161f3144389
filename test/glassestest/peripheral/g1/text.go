package g1

import (
	"slices"
	"unicode/utf8"
)

const (
	// textHeader is the number of bytes before the text in a packet, and maxText the maximum number of bytes of text
	// (vendor: README.md and evenai_proto.dart).
	textHeader = 9
	maxText    = 191
)

// words is a text of which some packets have arrived.
type words struct {
	header []byte // of the latest packet
	data   []byte
}

// handleText collects the packets of a 4E command and answers each of them.
func (a *Arm) handleText(v []byte) {
	if len(v) <= textHeader || len(v) > textHeader+maxText {
		a.violation("text packet of %d bytes", len(v))
		a.padded(cmdText, failed)
		return
	}
	if screen := v[4]; screen&0x0F != 1 || screen>>4 < 3 || screen>>4 > 7 || v[8] == 0 {
		a.violation("text packet with screen status %02X and %d pages", screen, v[8]) // vendor: README.md
	}
	total, current, w := v[2], v[3], &a.words
	if current == 0 {
		*w = words{}
	}
	if !w.follows(v) {
		a.violation("text packet % X does not follow % X", v[:textHeader], w.header)
		a.padded(cmdText, failed)
		return
	}
	if w.header == nil || w.header[3] != current { // not a repeated packet
		w.data = append(w.data, v[textHeader:]...)
	}
	w.header = slices.Clone(v[:textHeader])
	if current+1 < total {
		a.padded(cmdText, continues)
		return
	}
	switch {
	case !utf8.Valid(w.data):
		a.violation("text is not UTF-8")
	case !a.pair.silent:
		a.closePanel()
		a.text = string(w.data)
	}
	a.padded(cmdText, ok)
}

// follows reports whether a packet is the first one, the next one or a repeat of the latest one.
func (w *words) follows(v []byte) bool {
	if v[2] == 0 || v[3] >= v[2] {
		return false
	}
	if w.header == nil {
		return v[3] == 0
	}
	same := v[1] == w.header[1] && v[2] == w.header[2] && slices.Equal(v[4:textHeader], w.header[4:])
	return same && (v[3] == w.header[3] || v[3] == w.header[3]+1)
}
