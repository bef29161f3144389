package lc3

// frame is the side information of a frame.
type frame struct {
	wideband  bool // sound up to 8 kHz, otherwise 4 kHz
	count     int  // number of encoded coefficients; the others are 0 or noise
	separate  bool // the lowest bits of large coefficients follow the spectrum
	gainIndex int
	noise     int // level of the noise that fills gaps, from 7 (lowest) to 0
	tns       tns
	sns       sns
	ltpf      ltpf
}

// bandwidth returns the number of coefficients in the frame's bandwidth.
func (f *frame) bandwidth() int {
	if f.wideband {
		return FrameSamples
	}
	return FrameSamples / 2
}

// readFrame reads the side information, and reports whether the values are valid.
func readFrame(r *bitReader) (frame, bool) {
	f := frame{wideband: r.flag(), count: 2 * (r.bits(7) + 1), separate: r.flag(), gainIndex: r.bits(8)}
	if f.count > FrameSamples {
		return f, false
	}
	f.tns = readTNS(r)
	hasPitch := r.flag()
	var ok bool
	if f.sns, ok = readSNS(r); !ok {
		return f, false
	}
	if hasPitch {
		f.ltpf = readLTPF(r)
	}
	f.noise = r.bits(3)
	return f, true
}
