package lc3

import "math"

const (
	// maxEscapes is the maximum number of escape symbols before a pair of coefficients.
	maxEscapes = 14
	// Noise replaces a coefficient from noiseStart on if the coefficient and the noiseReach coefficients on both sides
	// are zero.
	noiseStart = 24
	noiseReach = 3
	// gainOffset is the gain index that means a gain of 1. It depends on the rates.
	gainOffset = 105 + 5*2 + 8*FrameBytes/(10*2)
)

// readSpectrum reads and scales the coefficients and reports whether they are valid.
func (f *frame) readSpectrum(r *bitReader, x *[FrameSamples]float64) bool {
	*x = [FrameSamples]float64{}
	seed, ok := f.readCoefficients(r, x)
	if !ok {
		return false
	}
	if f.separate {
		seed += readLowestBits(r, x[:f.count])
	} else {
		readResidual(r, x[:f.count])
	}
	// An encoder marks silence in this way. Any other frame gets at least a little noise.
	isZero := f.count == 2 && x[0] == 0 && x[1] == 0 && f.gainIndex == 0 && f.noise == 7
	if !isZero {
		fillNoise(x[:f.bandwidth()], float64(8-f.noise)/16, seed)
	}
	gain := exp2(float64(f.gainIndex-gainOffset) * (math.Ln10 / math.Ln2) / 28) // 10^(n/28)
	for i := range x {
		x[i] *= gain
	}
	return true
}

// readCoefficients decodes the quantized coefficients, in pairs. It returns the seed of the noise.
func (f *frame) readCoefficients(r *bitReader, x *[FrameSamples]float64) (seed uint16, ok bool) {
	context := 0
	for i := 0; i < f.count; i += 2 {
		models := &spectrumLookup[context]
		if i > FrameSamples/2 {
			models = &spectrumLookup[256+context]
		}
		// Each escape symbol adds one bit to both coefficients, the lowest bit first.
		a, b, escapes := 0, 0, 0
		symbol := r.symbol(spectrumModels[models[0]][:])
		for symbol == 16 {
			if escapes == maxEscapes {
				return 0, false
			}
			if escapes > 0 || !f.separate {
				a |= r.bits(1) << escapes
				b |= r.bits(1) << escapes
			}
			escapes++
			symbol = r.symbol(spectrumModels[models[min(escapes, 3)]][:])
		}
		highA, highB := symbol%4, symbol/4
		a |= highA << escapes
		b |= highB << escapes
		x[i], x[i+1] = signed(r, a), signed(r, b)
		seed += uint16(a*i + b*(i+1))

		if escapes < 2 {
			context = context<<4 + 1 + (highA+highB)*(escapes+1)
		} else {
			context = context<<4 + 12 + min(escapes, 3)
		}
		context &= 0xFF
	}
	return seed, true
}

// signed reads the sign of a coefficient. A zero has no sign.
func signed(r *bitReader, size int) float64 {
	if size != 0 && r.flag() {
		size = -size
	}
	return float64(size)
}

// readResidual reads one more bit of precision for each coefficient while bits are left.
func readResidual(r *bitReader, x []float64) {
	left := r.left()
	for i, value := range x {
		switch {
		case value == 0:
			continue
		case left <= 0:
			return
		}
		left--
		up := r.flag()
		step := 3.0 / 16
		if up == (value > 0) { // away from zero
			step = 5.0 / 16
		}
		if !up {
			step = -step
		}
		x[i] += step
	}
}

// readLowestBits reads the lowest bits of pairs with a large coefficient while bits are left. It returns their
// contribution to the seed.
func readLowestBits(r *bitReader, x []float64) (seed uint16) {
	left := r.left()
	flag := func() bool {
		left--
		return left >= 0 && r.flag()
	}
	for i := 0; i < len(x) && left > 0; i += 2 {
		if max(math.Abs(x[i]), math.Abs(x[i+1])) < 4 {
			continue
		}
		for j := i; j < i+2; j++ {
			if !flag() {
				continue
			}
			switch {
			case x[j] > 0:
				x[j]++
			case x[j] < 0:
				x[j]--
			case left <= 0:
				continue // its sign is missing
			case flag():
				x[j] = -1
			default:
				x[j] = 1
			}
			seed += uint16(j)
		}
	}
	return seed
}

// fillNoise replaces coefficients surrounded by zeros with noise of this level.
func fillNoise(x []float64, level float64, seed uint16) {
	zeros := 0 // before i
	for i := noiseStart - noiseReach; i < len(x)+noiseReach; i++ {
		if i < len(x) && x[i] != 0 {
			zeros = 0
			continue
		}
		zeros++
		if zeros > 2*noiseReach {
			seed = 13849 + seed*31821
			x[i-noiseReach] = level
			if seed&0x8000 != 0 {
				x[i-noiseReach] = -level
			}
		}
	}
}
