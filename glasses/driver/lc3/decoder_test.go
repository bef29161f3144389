package lc3

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"testing"
)

// The recording contains the sounds of sounds_test.go as frames encoded by elc3, and as samples decoded by dlc3.
func TestDecode_IsAtMostOneOffTheRecording(t *testing.T) {
	if *update {
		record(t)
	}
	got, failed := decodeAll(recording(t))
	if failed != 0 {
		t.Errorf("%d frames are corrupt", failed)
	}
	compare(t, got, wavSamples(readFile(t, "testdata/sounds.wav")), 1)
}

// The checksum covers the samples before rounding. It is the same on amd64, including fused multiply-add
// (GOAMD64=v3), on arm64 and in WebAssembly.
func TestDecode_CalculatesTheSameOnEveryProcessor(t *testing.T) {
	const want = 0x6a36991ba063b88f
	sum := fnv.New64a()
	d := NewDecoder()
	for i, frame := range recording(t) {
		if i%10 == 9 {
			frame = nil
		}
		_ = d.Decode(frame, make([]int16, FrameSamples))
		for _, x := range d.filter.after[ltpfHistory:] {
			sum.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)))
		}
	}
	if got := sum.Sum64(); got != want {
		t.Errorf("the checksum is %#x, want %#x", got, uint64(want))
	}
}

func TestDecode_ConcealsWhatItCannotDecode(t *testing.T) {
	frames := recording(t)[:10]
	tooManyCoefficients := slices.Clone(frames[0])
	tooManyCoefficients[FrameBytes-1] = 0xFF
	for _, test := range []struct {
		name  string
		frame []byte
		want  error
	}{
		{"none", nil, ErrFrameLength},
		{"short", frames[0][:FrameBytes-1], ErrFrameLength},
		{"long", append(slices.Clone(frames[0]), 0), ErrFrameLength},
		{"too many coefficients", tooManyCoefficients, ErrCorruptFrame},
		{"15 escapes", fromHex(t, "fff407bab6845521a20000000000000000005501"), ErrCorruptFrame},
		{"all bits set", slices.Repeat([]byte{0xFF}, FrameBytes), ErrCorruptFrame},
	} {
		t.Run(test.name, func(t *testing.T) {
			concealing, decoding := NewDecoder(), NewDecoder()
			for _, frame := range frames {
				decode(t, concealing, frame)
				decode(t, decoding, frame)
			}
			var want, got [FrameSamples]int16
			concealing.Conceal(want[:])
			if err := decoding.Decode(test.frame, got[:]); !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
			if got != want || got == [FrameSamples]int16{} {
				t.Errorf("decoded %v, want the concealed sound %v", got, want)
			}
			if want, got = decode(t, concealing, frames[0]), decode(t, decoding, frames[0]); got != want {
				t.Error("the next frame is decoded differently")
			}
		})
	}
}

func TestDecode_AcceptsValuesUpToTheirLimits(t *testing.T) {
	decode(t, NewDecoder(), fromHex(t, "fff407ba6c773310780000000000000000005501")) // 14 escapes
	// Number of plain bits before the arrangements of pulses.
	const shapes01, shapes23 = 32, 33
	for _, test := range []struct {
		name        string
		first, size int
		value       int
		want        error
	}{
		{"shapes 0 and 1", shapes01, 25, 14*arrangements10on10 - 1, nil},
		{"shapes 0 and 1, too high", shapes01, 25, 14 * arrangements10on10, ErrCorruptFrame},
		{"shapes 2 and 3", shapes23, 24, arrangements8on16 + 2*arrangements6on16 - 1, nil},
		{"shapes 2 and 3, too high", shapes23, 24, arrangements8on16 + 2*arrangements6on16, ErrCorruptFrame},
	} {
		frame := make([]byte, FrameBytes)
		setPlain(frame, 29, 1, test.first-shapes01)
		setPlain(frame, test.first, test.size, test.value)
		if err := NewDecoder().Decode(frame, make([]int16, FrameSamples)); !errors.Is(err, test.want) {
			t.Errorf("%s: the error is %v, want %v", test.name, err, test.want)
		}
	}
}

func TestConceal_FadesToSilence(t *testing.T) {
	d := NewDecoder()
	if got := conceal(d); peak(got[:]) != 0 {
		t.Errorf("before the first frame, %v conceals it", got)
	}
	frames := encodedNoise(t)
	loudest := make([]int, 0, 100)
	for _, frame := range frames {
		decode(t, d, frame)
	}
	for range cap(loudest) {
		got := conceal(d)
		loudest = append(loudest, peak(got[:]))
	}
	if loudest[0] < 1000 || loudest[2] < loudest[0]/2 {
		t.Errorf("the first lost frames have peaks of %v, want sound like before", loudest[:3])
	}
	if loudest[20] > loudest[0]/4 || loudest[99] != 0 {
		t.Errorf("peaks of lost frames are %v, want sound that fades to silence", loudest)
	}
	want := NewDecoder()
	for range 3 { // the first one overlaps silence, which still affects the filter of the second one
		decode(t, d, frames[0])
		decode(t, want, frames[0])
	}
	if decode(t, d, frames[0]) != decode(t, want, frames[0]) {
		t.Error("good frames after silence sound different")
	}
}

func TestDecoder_AllocatesNothingPerFrame(t *testing.T) {
	frames := recording(t)
	d, pcm := NewDecoder(), make([]int16, FrameSamples)
	next := 0
	if got := testing.AllocsPerRun(len(frames), func() {
		_ = d.Decode(frames[next%len(frames)], pcm)
		_ = d.Decode(nil, pcm)
		d.Conceal(pcm)
		next++
	}); got != 0 {
		t.Errorf("a frame needs %v allocations", got)
	}
}

func FuzzDecode(f *testing.F) {
	frames := recording(f)
	f.Add([]byte{})
	f.Add(slices.Repeat([]byte{0xFF}, FrameBytes))
	for i := 0; i < len(frames); i += 10 {
		f.Add(slices.Concat(frames[i : i+3]...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := NewDecoder()
		var pcm [FrameSamples]int16
		for chunk := range slices.Chunk(data, FrameBytes) {
			err := d.Decode(chunk, pcm[:])
			if len(chunk) != FrameBytes && !errors.Is(err, ErrFrameLength) {
				t.Errorf("%d bytes are decoded with error %v", len(chunk), err)
			}
			for _, x := range d.filter.after {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("%x is decoded as %v", data, x)
				}
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	frames := recording(b)
	d, pcm := NewDecoder(), make([]int16, FrameSamples)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = d.Decode(frames[i%len(frames)], pcm)
	}
	perSecond := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(perSecond, "frames/s")
	b.ReportMetric(perSecond*FrameSamples/SampleRate, "x-real-time")
}

func recording(t testing.TB) [][]byte { return lc3Frames(readFile(t, "testdata/sounds.lc3")) }

func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// setPlain sets the plain bits of a frame.
func setPlain(frame []byte, first, size, value int) {
	for i := range size {
		at := first + i
		frame[len(frame)-1-at/8] |= byte(value>>i&1) << (at % 8)
	}
}

// encodedNoise returns frames of loud noise.
func encodedNoise(t testing.TB) [][]byte { return recording(t)[27+5 : 2*27] }

func decode(t *testing.T, d *Decoder, frame []byte) (pcm [FrameSamples]int16) {
	t.Helper()
	if err := d.Decode(frame, pcm[:]); err != nil {
		t.Fatal(err)
	}
	return pcm
}

func conceal(d *Decoder) (pcm [FrameSamples]int16) {
	d.Conceal(pcm[:])
	return pcm
}

// decodeAll returns the samples of frames, and the number of concealed frames.
func decodeAll(frames [][]byte) (pcm []int16, failed int) {
	d := NewDecoder()
	for _, frame := range frames {
		var samples [FrameSamples]int16
		if d.Decode(frame, samples[:]) != nil {
			failed++
		}
		pcm = append(pcm, samples[:]...)
	}
	return pcm, failed
}

func peak(pcm []int16) int {
	largest := 0
	for _, x := range pcm {
		largest = max(largest, int(x), -int(x))
	}
	return largest
}

// compare fails unless samples equal those decoded by dlc3, without the delay. One in 50 may differ, by at most
// atMost, because dlc3 uses 32-bit floats. Samples over 2^31, which damaged frames may have, become the lowest
// possible sample in dlc3 and the highest one here.
func compare(t *testing.T, got, want []int16, atMost int) {
	t.Helper()
	if len(got) != len(want)+delay {
		t.Fatalf("%d samples, want %d", len(got), len(want)+delay)
	}
	different := 0
	for i, x := range got[delay:] {
		difference := max(int(x)-int(want[i]), int(want[i])-int(x))
		overflowed := x == math.MaxInt16 && want[i] == math.MinInt16
		if difference > atMost && !overflowed {
			t.Fatalf("sample %d (frame %d) is %d, want %d", i, (i+delay)/FrameSamples, x, want[i])
		}
		different += min(difference, 1)
	}
	if different > len(want)/50 {
		t.Errorf("%d of %d samples are rounded differently", different, len(want))
	}
	t.Logf("%d of %d samples are rounded differently", different, len(want))
}
