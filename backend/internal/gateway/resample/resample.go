// Package resample converts sound between the sample rates of apps (16 kHz) and of realtime providers (24 kHz).
package resample

import (
	"encoding/binary"
	"math"
)

// The filter runs at 48 kHz, the rate that both rates divide. It passes speech up to 7.2 kHz and removes what lies
// above 8 kHz, half of the lower rate.
const (
	fullRate = 48000
	cutoff   = 7600.0 // Hz; half of the sound's amplitude is left here
	half     = 120    // taps on each side of the middle: a delay of 2.5 ms
	kaiser   = 6.0    // shape of the window: the rest above 8 kHz is below -60 dB
)

// Resampler converts a stream of signed 16-bit little-endian samples of one channel. Its output is as long as its
// input and not delayed, but its last 2.5 ms come with Flush. Use it from one goroutine at a time.
type Resampler struct {
	up, down int         // ratio of the rates
	phases   [][]float64 // taps for each position of an output sample between two input samples, the latest input first
	recent   []float64   // the latest input samples, the oldest first
	position int         // of the next output sample behind the oldest tap of recent, at the full rate
	odd      []byte      // the first byte of a sample whose second byte has not arrived
	samples  int         // in
	sent     int         // samples out
}

// New returns a Resampler from one rate to another, each of them 16000 or 24000.
func New(from, to int) *Resampler {
	r := &Resampler{up: fullRate / from, down: fullRate / to}
	length := 2*half/r.up + 1
	r.phases = make([][]float64, r.up)
	for phase := range r.phases {
		taps := make([]float64, length)
		for i := range taps {
			taps[i] = tap(phase+i*r.up-half) * float64(r.up)
		}
		r.phases[phase] = taps
	}
	r.recent = make([]float64, length)
	r.Reset()
	return r
}

// tap returns the filter's response at a distance from its middle, at the full rate.
func tap(at int) float64 {
	if at < -half || at > half {
		return 0
	}
	x := 2 * cutoff / fullRate
	sinc := x
	if at != 0 {
		sinc = math.Sin(math.Pi*x*float64(at)) / (math.Pi * float64(at))
	}
	inside := float64(at) / half
	return sinc * bessel(kaiser*math.Sqrt(1-inside*inside)) / bessel(kaiser)
}

// bessel is the modified Bessel function of the first kind of order zero.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-12*sum; k++ {
		term *= x / (2 * k) * x / (2 * k)
		sum += term
	}
	return sum
}

// Reset forgets all sound.
func (r *Resampler) Reset() {
	clear(r.recent)
	r.odd, r.samples, r.sent = r.odd[:0], 0, 0
	r.position = half
}

// Append appends the converted sound to out. pcm may end inside a sample.
func (r *Resampler) Append(out, pcm []byte) []byte {
	if len(r.odd) > 0 && len(pcm) > 0 {
		whole := [2]byte{r.odd[0], pcm[0]}
		r.odd, pcm = r.odd[:0], pcm[1:]
		out = r.add(out, whole[:])
	}
	for ; len(pcm) >= 2; pcm = pcm[2:] {
		out = r.add(out, pcm)
	}
	r.odd = append(r.odd, pcm...)
	return out
}

// add adds one sample.
func (r *Resampler) add(out, sample []byte) []byte {
	r.samples++
	return r.push(out, float64(int16(binary.LittleEndian.Uint16(sample)))) //nolint:gosec // its bits are a signed number
}

// push appends the output samples that lie before the next input sample.
func (r *Resampler) push(out []byte, sample float64) []byte {
	copy(r.recent, r.recent[1:])
	last := len(r.recent) - 1
	r.recent[last] = sample
	for ; r.position < r.up; r.position += r.down {
		sum := 0.0
		for i, t := range r.phases[r.position] {
			sum += t * r.recent[last-i]
		}
		value := math.Round(max(math.MinInt16, min(math.MaxInt16, sum)))
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(value))) //nolint:gosec // limited above
		r.sent++
	}
	r.position -= r.up
	return out
}

// Flush appends the end of the sound to out and forgets all sound. An incomplete sample is left out.
func (r *Resampler) Flush(out []byte) []byte {
	want := (r.samples*r.up + r.down - 1) / r.down
	start := len(out)
	before := r.sent
	for r.sent < want {
		out = r.push(out, 0)
	}
	out = out[:start+2*(want-before)]
	r.Reset()
	return out
}
