package lc3

import (
	"errors"
	"math"
)

// The only supported configuration.
const (
	SampleRate   = 16_000 // samples per second, one channel
	FrameSamples = 160    // samples per frame: 10 ms
	FrameBytes   = 20     // bytes per encoded frame
)

// Errors returned by Decode.
var (
	ErrFrameLength  = errors.New("lc3: the frame must be 20 bytes long")
	ErrCorruptFrame = errors.New("lc3: the frame is corrupt")
)

// Decoder decodes the frames of one stream in order. It is not safe for concurrent use.
type Decoder struct {
	spectrum [FrameSamples]float64 // of the current frame
	good     [FrameSamples]float64 // of the last frame that was not concealed
	mdct     mdct
	filter   postfilter
	loss     concealment
}

// NewDecoder returns a decoder for a new stream.
func NewDecoder() *Decoder {
	d := &Decoder{loss: concealment{seed: 24607, gain: 1}}
	d.mdct.init()
	return d
}

// Decode decodes a frame of FrameBytes bytes into the first FrameSamples samples of pcm. It panics if pcm is shorter.
// The sound is delayed by 2.5 ms, the delay of the codec. On failure it returns ErrFrameLength or ErrCorruptFrame, and
// fills pcm with concealed sound, like Conceal. A frame has no checksum, so some damage is not detected.
func (d *Decoder) Decode(frame []byte, pcm []int16) error {
	f, err := d.parse(frame)
	if err != nil {
		d.Conceal(pcm)
		return err
	}
	d.loss.lost, d.loss.gain = 0, 1
	f.tns.apply(d.spectrum[:f.bandwidth()])
	f.sns.apply(&d.mdct, &d.spectrum)
	d.good = d.spectrum
	d.synthesize(f.ltpf, pcm)
	return nil
}

// parse reads a frame and its spectrum. After an error, only the spectrum has changed.
func (d *Decoder) parse(data []byte) (frame, error) {
	if len(data) != FrameBytes {
		return frame{}, ErrFrameLength
	}
	r := newBitReader(data)
	f, ok := readFrame(&r)
	if !ok || !f.readSpectrum(&r, &d.spectrum) || r.left() < 0 || r.corrupt {
		return frame{}, ErrCorruptFrame
	}
	return f, nil
}

// Conceal replaces a missing frame. It fills the first FrameSamples samples of pcm with sound similar to the last good
// frame. The sound fades out if several frames are missing. Conceal panics if pcm is shorter.
func (d *Decoder) Conceal(pcm []int16) {
	d.loss.conceal(&d.good, &d.spectrum)
	d.synthesize(ltpf{}, pcm)
}

// synthesize converts the spectrum to samples.
func (d *Decoder) synthesize(f ltpf, pcm []int16) {
	samples := d.filter.input()
	d.mdct.inverse(&d.spectrum, samples)
	for i, x := range d.filter.run(f) {
		pcm[i] = int16(math.Round(min(max(x, math.MinInt16), math.MaxInt16)))
	}
}

// concealment replaces a lost frame with the last good spectrum, with random signs.
type concealment struct {
	seed uint16
	lost int // consecutive frames
	gain float64
}

func (c *concealment) conceal(good, spectrum *[FrameSamples]float64) {
	c.lost++
	switch {
	case c.lost >= 8:
		c.gain *= 0.85
	case c.lost >= 4:
		c.gain *= 0.9
	}
	if c.gain < 1e-12 { // the result is silent, and arithmetic with denormal numbers is slow
		c.gain = 0
	}
	for i, x := range good {
		c.seed = 16831 + c.seed*12821
		if c.seed&0x8000 != 0 {
			x = -x
		}
		spectrum[i] = x * c.gain
	}
}
