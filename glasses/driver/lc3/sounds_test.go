package lc3

import (
	"math"
	"math/rand/v2"
)

// sound is a test sound with samples from -1 to 1.
type sound struct {
	name string
	at   func(i int, seconds float64) float64
}

// sounds returns test sounds that exercise every stage of the codec. They depend only on the seed.
func sounds(seed uint64) []sound {
	random := rand.New(rand.NewPCG(seed, 1))
	pitch, level := 80+200*random.Float64(), 0.05+0.4*random.Float64()
	noise := func() float64 { return 2*random.Float64() - 1 }
	sine := func(hertz, seconds float64) float64 { return math.Sin(2 * math.Pi * hertz * seconds) }
	voice := func(_ int, t float64) float64 { // harmonics under a moving formant, in syllables
		hertz := pitch * (1 + 0.1*math.Sin(7*t))
		formant := 900 + 600*math.Sin(11*t)
		sum := 0.02 * noise()
		for n := 1.0; n*hertz < 7500; n++ {
			sum += math.Exp(-math.Abs(n*hertz-formant)/600) * math.Sin(2*math.Pi*n*pitch*t+n*n)
		}
		return level * sum * max(0, math.Sin(13*t))
	}
	return []sound{
		{"sweep", func(_ int, t float64) float64 { return level * math.Sin(2*math.Pi*(50+3000*t)*t) }},
		{"noise", func(int, float64) float64 { return level * noise() }},
		{"voice", voice},
		{"tone", func(_ int, t float64) float64 { return 0.6 * (sine(pitch, t) + sine(2*pitch, t)/2) }},
		{"silence", func(int, float64) float64 { return 0 }},
		{"clipped", func(_ int, t float64) float64 { return 3 * (sine(pitch, t) + sine(3.1*pitch, t)) }},
		{"clicks", func(i int, _ float64) float64 { return float64(i % 1371 / 1370) }},
		{"quiet", func(int, float64) float64 { return 0.0004 * noise() }},
		{"low", func(_ int, t float64) float64 { return level * sine(pitch, t) * sine(3, t) }},
	}
}

// samples returns the sounds one after the other, each with the given length in frames.
func samples(all []sound, frames int) []int16 {
	var pcm []int16
	for _, s := range all {
		for i := range frames * FrameSamples {
			x := math.Round(s.at(i, float64(i)/SampleRate) * math.MaxInt16)
			pcm = append(pcm, int16(min(max(x, math.MinInt16), math.MaxInt16)))
		}
	}
	return pcm
}
