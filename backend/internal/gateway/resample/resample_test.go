package resample

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// pcm returns ms of sound at a rate.
func pcm(rate, ms int, at func(seconds float64) float64) (out []byte) {
	for i := range rate * ms / 1000 {
		value := math.Round(at(float64(i) / float64(rate)))
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(value)))
	}
	return out
}

func tone(hz float64) func(float64) float64 {
	return func(s float64) float64 { return 10_000 * math.Sin(2*math.Pi*hz*s) }
}

// level returns the amplitude of a tone in the middle of the sound.
func level(sound []byte, rate int, hz float64) float64 {
	var re, im float64
	skip := rate / 10
	n := len(sound)/2 - 2*skip
	for i := range n {
		v := float64(int16(binary.LittleEndian.Uint16(sound[2*(skip+i):])))
		angle := 2 * math.Pi * hz * float64(i) / float64(rate)
		window := 1 - math.Cos(2*math.Pi*float64(i)/float64(n))
		re, im = re+v*window*math.Cos(angle), im+v*window*math.Sin(angle)
	}
	return 2 * math.Hypot(re, im) / float64(n)
}

func decibels(of, to float64) float64 { return 20 * math.Log10(of/to) }

func TestResampler_Golden(t *testing.T) {
	for name, at := range map[string]func(float64) float64{
		"silence": func(float64) float64 { return 0 },
		"tone":    tone(1000),
		"impulse": func(s float64) float64 {
			if s == 0.01 {
				return 30_000
			}
			return 0
		},
		"sweep": func(s float64) float64 { // from 100 Hz to 7.3 kHz, as loud as speech and with its syllables
			return 8000 * math.Sin(math.Pi*20*s) * math.Sin(2*math.Pi*(100*s+36_000*s*s))
		},
	} {
		for _, rates := range [][2]int{{16000, 24000}, {24000, 16000}} {
			r := New(rates[0], rates[1])
			got := r.Flush(r.Append(nil, pcm(rates[0], 100, at)))
			file := filepath.Join("testdata", name+map[int]string{16000: "-down.pcm", 24000: "-up.pcm"}[rates[1]])
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || len(want) != len(got) {
				t.Fatalf("%s: %d bytes, want %d: %v", file, len(got), len(want), err)
			}
			for i := 0; i < len(got); i += 2 { // architectures may round differently
				a, b := int16(binary.LittleEndian.Uint16(got[i:])), int16(binary.LittleEndian.Uint16(want[i:]))
				if d := int(a) - int(b); d < -1 || d > 1 {
					t.Fatalf("%s: sample %d is %d, want %d", file, i/2, a, b)
				}
			}
		}
	}
}

// However sound is divided, the output is the same, and exactly as long as the input.
func TestResampler_AnyParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		from, to := 16000, 24000
		if random.IntN(2) == 0 {
			from, to = to, from
		}
		sound := make([]byte, 2*random.IntN(3000))
		for i := range sound {
			sound[i] = byte(random.Uint32())
		}
		r := New(from, to)
		want := r.Flush(r.Append(nil, sound))
		if length := (len(sound)/2*to + from - 1) / from; len(want) != 2*length {
			t.Fatalf("%d samples became %d, want %d", len(sound)/2, len(want)/2, length)
		}
		var got []byte
		for rest := sound; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(500))
			got, rest = r.Append(got, rest[:n]), rest[n:]
		}
		if got = r.Flush(got); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes in parts became other sound", len(sound))
		}
	}
}

func TestResampler_Frequencies(t *testing.T) {
	for _, rates := range [][2]int{{16000, 24000}, {24000, 16000}} {
		convert := func(hz float64) []byte {
			r := New(rates[0], rates[1])
			return r.Flush(r.Append(nil, pcm(rates[0], 1000, tone(hz))))
		}
		if d := decibels(level(convert(1000), rates[1], 1000), 10_000); math.Abs(d) > 0.1 {
			t.Errorf("%v: 1 kHz changed by %.3f dB", rates, d)
		}
		// The mirror of a tone lies as far above 8 kHz as the tone lies below.
		tone, mirror := 7900.0, 8100.0
		if rates[1] == 16000 {
			tone, mirror = mirror, tone
		}
		if d := decibels(level(convert(tone), rates[1], mirror), 10_000); d > -40 {
			t.Errorf("%v: the mirror of %.0f Hz has %.1f dB", rates, tone, d)
		}
	}
}

func TestResampler_AllocatesNothing(t *testing.T) {
	r := New(16000, 24000)
	sound, out := pcm(16000, 100, tone(300)), make([]byte, 0, 5000)
	if n := testing.AllocsPerRun(100, func() { out = r.Append(out[:0], sound[:len(sound)-1]) }); n > 0 {
		t.Errorf("%v allocations for 100 ms", n)
	}
}

func BenchmarkResampler(b *testing.B) {
	r := New(16000, 24000)
	sound, out := pcm(16000, 100, tone(300)), make([]byte, 0, 5000)
	for b.Loop() {
		out = r.Append(out[:0], sound)
	}
}
