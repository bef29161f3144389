package lc3

import "math"

const (
	// windowZeros is the number of zeros at the end of the encoder's window. They shorten the delay.
	windowZeros = 3 * FrameSamples / 8
	overlapping = FrameSamples - windowZeros
	// turn is the number of steps per full turn in the cosine table. Every angle of the transforms is a whole number
	// of steps.
	turn = 8 * FrameSamples
)

// mdct is the inverse low delay modified discrete cosine transform. It is computed directly from the definition, with
// 25,600 products per frame, which is far faster than needed.
type mdct struct {
	cosines [turn]float64
	overlap [overlapping]float64 // the part of the last frame that is added to the next one
}

func (m *mdct) init() {
	for i := range m.cosines {
		m.cosines[i] = cosine(i, turn)
	}
}

// cosine returns the cosine of k/n turns, k >= 0. n must be a divisor of the steps of a turn.
func (m *mdct) cosine(k, n int) float64 { return m.cosines[k%n*(turn/n)] }

// inverse transforms a spectrum to samples.
func (m *mdct) inverse(spectrum *[FrameSamples]float64, samples []float64) {
	const n = FrameSamples
	// middle contains the samples n/2 to 3n/2 of 2n. The others follow from symmetry.
	var middle [n]float64
	for k, x := range spectrum {
		if x == 0 {
			continue
		}
		// Sample i is the sum of x * cos(pi/n * (i + 1/2 + n/2) * (k + 1/2)). This angle is (2*i + 1 + n) * (2*k + 1)
		// steps.
		angle, step := (2*n+1)*(2*k+1)%turn, 2*(2*k+1)
		for i := range middle {
			middle[i] = addProduct(middle[i], x, m.cosines[angle])
			angle += step
			if angle >= turn {
				angle -= turn
			}
		}
	}
	scale := math.Sqrt(2.0 / n)
	for i := windowZeros; i < 2*n; i++ {
		var x float64
		switch {
		case i < n/2:
			x = -middle[n/2-1-i]
		case i < n*3/2:
			x = middle[i-n/2]
		default:
			x = middle[n*5/2-1-i]
		}
		x = x * scale * float64(window[2*n-1-i])
		switch at := i - windowZeros; {
		case at < overlapping:
			samples[at] = m.overlap[at] + float64(x)
		case at < n:
			samples[at] = x
		default:
			m.overlap[at-n] = x
		}
	}
}
