package lc3

import "math/bits"

// bitReader reads both streams of a frame: plain bits from its end backwards, and the arithmetic decoder's bytes from
// its start. The frame does not mark where a stream ends, but left reports whether the two overlap. Beyond the frame,
// both streams contain zeros.
type bitReader struct {
	data       []byte
	plain      int    // number of plain bits read
	next       int    // index of the arithmetic decoder's next byte
	low, width uint32 // state of the arithmetic decoder, 24 bits each
	corrupt    bool   // the arithmetic decoder found an impossible state
}

func newBitReader(data []byte) bitReader {
	r := bitReader{data: data, width: 0xFFFFFF}
	for range 3 {
		r.shift()
	}
	return r
}

// shift shifts the next byte into low.
func (r *bitReader) shift() {
	r.low = r.low << 8 & 0xFFFFFF
	if r.next < len(r.data) {
		r.low |= uint32(r.data[r.next])
		r.next++
	}
}

// bits reads n plain bits, the lowest bit first.
func (r *bitReader) bits(n int) int {
	value := 0
	for i := range n {
		if at := len(r.data) - 1 - r.plain/8; at >= 0 {
			value |= int(r.data[at]>>(r.plain%8)&1) << i
		}
		r.plain++
	}
	return value
}

func (r *bitReader) flag() bool { return r.bits(1) == 1 }

// symbol decodes one symbol. model contains the cumulative frequency below each symbol, out of 1024. Its first value is
// 0.
func (r *bitReader) symbol(model []uint16) int {
	unit := r.width >> 10
	if r.low >= unit<<10 {
		r.corrupt = true
		r.low = 0
	}
	symbol, end := len(model)-1, uint32(1024)
	for r.low < unit*uint32(model[symbol]) {
		end = uint32(model[symbol])
		symbol--
	}
	start := uint32(model[symbol])
	r.low -= unit * start
	r.width = unit * (end - start)
	for r.width < 1<<16 {
		r.width <<= 8
		r.shift()
	}
	return symbol
}

// left returns the number of plain bits that may still be read, excluding bits that the arithmetic decoder has
// consumed. It is negative if the frame is corrupt.
func (r *bitReader) left() int {
	decoded := 8*(r.next-3) + 26 - bits.Len32(r.width)
	return 8*len(r.data) - r.plain - decoded
}
