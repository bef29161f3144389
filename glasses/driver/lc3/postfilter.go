package lc3

const (
	ltpfHistory    = 288 // samples: the longest lag is 285, and the filter reads two more before it
	ltpfTaps       = len(ltpfDenominators[0])
	ltpfTransition = FrameSamples / 4
	// Gains for the lowest bit rate.
	ltpfGain          = 0.4
	ltpfNumeratorGain = 0.85 * ltpfGain
)

// ltpf contains a frame's parameters for the long term postfilter, which attenuates the sound between a voice's
// harmonics.
type ltpf struct {
	active bool
	lag    int // pitch period in quarters of a sample, from 160 to 1140
}

func readLTPF(r *bitReader) ltpf {
	f := ltpf{active: r.flag()}
	pitch := r.bits(9)
	switch { // to quarters of a sample at 12.8 kHz
	case pitch >= 440:
		pitch = 4 * (pitch - 283)
	case pitch >= 380:
		pitch = 2*pitch - 4*63
	default:
		pitch += 4 * 32
	}
	f.lag = (pitch*SampleRate/100 + 64) / 128
	return f
}

// postfilter is the long term postfilter. Its buffers start with samples of earlier frames.
type postfilter struct {
	last   ltpf
	before [ltpfTaps - 1 + FrameSamples]float64 // unfiltered
	after  [ltpfHistory + FrameSamples]float64
}

// input returns the buffer for the samples of the next frame.
func (p *postfilter) input() []float64 {
	copy(p.before[:], p.before[FrameSamples:])
	copy(p.after[:], p.after[FrameSamples:])
	return p.before[ltpfTaps-1:]
}

// run filters the samples and returns them. They are valid until the next call.
func (p *postfilter) run(f ltpf) []float64 {
	out := p.after[ltpfHistory:]
	copy(out, p.before[ltpfTaps-1:])
	first := p.before[:ltpfTaps-1+ltpfTransition]
	switch last := p.last; {
	case last.active && f.active && last.lag == f.lag:
		p.filter(first, 0, f.lag, steady)
	case last.active && f.active:
		p.filter(first, 0, last.lag, fadeOut)
		var faded [ltpfTaps - 1 + ltpfTransition]float64
		copy(faded[:], p.after[ltpfHistory-(ltpfTaps-1):])
		p.filter(faded[:], 0, f.lag, fadeIn)
	case last.active:
		p.filter(first, 0, last.lag, fadeOut)
	case f.active:
		p.filter(first, 0, f.lag, fadeIn)
	}
	if f.active {
		p.filter(p.before[ltpfTransition:], ltpfTransition, f.lag, steady)
	}
	p.last = f
	return out
}

// fade is how the filter's effect changes during a transition.
type fade int

const (
	steady fade = iota
	fadeIn
	fadeOut
)

// filter filters the samples of the frame from start on. in contains these samples, preceded by ltpfTaps-1 others.
func (p *postfilter) filter(in []float64, start, lag int, fade fade) {
	denominator := &ltpfDenominators[lag%4]
	for i := range len(in) - (ltpfTaps - 1) {
		effect := 1.0
		switch fade {
		case fadeIn:
			effect = float64(i) / ltpfTransition
		case fadeOut:
			effect = 1 - float64(i)/ltpfTransition
		}
		at := ltpfHistory + start + i
		var sum float64
		for k, c := range ltpfNumerator {
			sum = addProduct(sum, ltpfNumeratorGain*float64(c), in[ltpfTaps-1+i-k])
		}
		for k, c := range denominator {
			sum = addProduct(sum, -ltpfGain*float64(c), p.after[at-lag/4+1-k])
		}
		p.after[at] = addProduct(in[ltpfTaps-1+i], -effect, sum)
	}
}
