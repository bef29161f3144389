package lc3

import "math"

const (
	bands        = 64
	scaleFactors = 16
	// Numbers of arrangements of pulses, without the sign of the first pulse.
	arrangements10on10 = 2_390_004
	arrangements8on16  = 15_158_272
	arrangements6on16  = 774_912
)

// sns contains the quantized scale factors of spectral noise shaping. They consist of a coarse shape from two codebooks
// and a fine shape of enumerated pulses (pyramid vector quantization).
type sns struct {
	low, high int // indexes of the codebooks
	shape     int // number and places of the pulses, 0 to 3
	gain      int // index
	first     pulses
	second    pulses // of shape 0
}

// pulses is an arrangement of pulses, represented by its number and the sign of the first pulse.
type pulses struct {
	index    int
	negative bool
}

// readSNS reads the scale factors and reports whether the values are valid.
func readSNS(r *bitReader) (sns, bool) {
	s := sns{low: r.bits(5), high: r.bits(5)}
	if r.flag() {
		s.shape, s.gain, s.first.negative = 2, r.bits(2), r.flag()
		s.first.index = r.bits(24)
		if rest := s.first.index - arrangements8on16; rest >= 0 {
			s.shape, s.gain, s.first.index = 3, 2*s.gain+rest%2, rest/2
			return s, s.first.index < arrangements6on16
		}
		return s, true
	}
	s.gain, s.first.negative = r.bits(1), r.flag()
	code := r.bits(25)
	s.first.index = code % arrangements10on10
	rest := code / arrangements10on10
	if rest < 2 {
		s.shape, s.gain = 1, 2*s.gain+rest
		return s, true
	}
	s.second = pulses{index: rest/2 - 1, negative: rest%2 == 1}
	return s, rest < 14
}

// apply multiplies each band of a spectrum by its scale factor.
func (s *sns) apply(m *mdct, x *[FrameSamples]float64) {
	factors := s.factors(m)
	for band := range bands {
		factor := factors[0]
		if band >= 2 { // at 1/8, 3/8, 5/8 and 7/8 of the way to the next factor; extrapolated beyond the last one
			i, eighths := (band-2)/4, 2*((band-2)%4)+1
			next := min(i+1, scaleFactors-1)
			factor = addProduct(factors[i], float64(eighths)/8, factors[next]-factors[next-1])
		}
		factor = exp2(factor)
		for i := bandLimits[band]; i < bandLimits[band+1]; i++ {
			x[i] *= factor
		}
	}
}

// factors returns the binary logarithms of the 16 scale factors.
func (s *sns) factors(m *mdct) [scaleFactors]float64 {
	var placed [scaleFactors]int
	switch s.shape {
	case 0:
		s.first.place(placed[:10], 10)
		s.second.place(placed[10:], 1)
	case 1:
		s.first.place(placed[:10], 10)
	case 2:
		s.first.place(placed[:], 8)
	case 3:
		s.first.place(placed[:], 6)
	}
	energy := 0
	for _, n := range placed {
		energy += n * n
	}
	gain := float64(snsGains[s.shape][s.gain]) / math.Sqrt(float64(energy))
	var factors [scaleFactors]float64
	for i := range factors {
		fine := float64(placed[0]) * math.Sqrt2 / 2 // inverse discrete cosine transform
		for j := 1; j < scaleFactors; j++ {
			fine = addProduct(fine, float64(placed[j]), m.cosine((2*i+1)*j, 4*scaleFactors))
		}
		coarse := float64(snsLowCodebook[s.low][i%8])
		if i >= 8 {
			coarse = float64(snsHighCodebook[s.high][i%8])
		}
		factors[i] = addProduct(coarse, gain*math.Sqrt2/4, fine)
	}
	return factors
}

// place sets the number of pulses at each place.
func (p pulses) place(places []int, count int) {
	index, negative := p.index, p.negative
	for i := range places {
		offsets := &pulseOffsets[len(places)-1-i]
		rest := count
		for offsets[rest] > index {
			rest--
		}
		index -= offsets[rest]
		places[i] = count - rest
		if negative {
			places[i] = -places[i]
		}
		if rest < count {
			negative = index%2 == 1
			index /= 2
		}
		count = rest
	}
}

// pulseOffsets[places][pulses] is the index of the first arrangement that leaves this number of pulses for this
// number of places.
var pulseOffsets = newPulseOffsets()

func newPulseOffsets() (offsets [scaleFactors][11]int) {
	for count := 1; count < len(offsets[0]); count++ {
		offsets[0][count] = 1
		for places := 1; places < len(offsets); places++ {
			offsets[places][count] = offsets[places-1][count] + offsets[places-1][count-1] + offsets[places][count-1]
		}
	}
	return offsets
}
