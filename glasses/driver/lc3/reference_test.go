package lc3

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "make the recording of testdata again, with elc3 and dlc3")

// The tools elc3 and dlc3 of liblc3 write files of frames with this header, and WAV files with 44 bytes before the
// samples. dlc3 skips the delay of the codec.
const (
	lc3Header = 18
	wavHeader = 44
	delay     = FrameSamples / 4
)

func TestDecode_AgreesWithDlc3(t *testing.T) {
	for seed := range uint64(3) {
		frames := encode(t, samples(sounds(seed), 30))
		got, failed := decodeAll(frames)
		if failed != 0 {
			t.Errorf("seed %d: %d of %d frames are corrupt", seed, failed, len(frames))
		}
		compare(t, got, decodeReference(t, frames), 1)
	}
}

// dlc3 conceals corrupt frames without reporting them. A frame that only one of the decoders considers corrupt sounds
// different.
func TestDecode_AgreesWithDlc3OnDamagedFrames(t *testing.T) {
	total, failed := 0, 0
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		frames := encode(t, samples(sounds(seed), 30))
		for _, frame := range frames {
			switch random.IntN(20) {
			case 0:
				for i := range frame {
					frame[i] = byte(random.Uint32())
				}
			case 1, 2, 3, 4, 5:
				for range 1 + random.IntN(4) {
					frame[random.IntN(len(frame))] ^= 1 << random.IntN(8)
				}
			}
		}
		got, n := decodeAll(frames)
		compare(t, got, decodeReference(t, frames), 4) // samples over full scale have less precision in dlc3
		total, failed = total+len(frames), failed+n
	}
	if failed < total/20 || failed > total/2 {
		t.Errorf("%d of %d frames are corrupt, want some", failed, total)
	}
}

// record creates the recording again.
func record(t *testing.T) {
	frames := encode(t, samples(sounds(1), 27))
	writeFile(t, "testdata/sounds.lc3", lc3File(frames))
	writeFile(t, "testdata/sounds.wav", wavFile(decodeReference(t, frames)))
}

// encode returns samples as frames encoded by elc3.
func encode(t *testing.T, pcm []int16) [][]byte {
	data := runTool(t, "elc3", wavFile(pcm), "-b", "16000")
	return lc3Frames(data)
}

// decodeReference returns frames as samples decoded by dlc3, without the delay.
func decodeReference(t *testing.T, frames [][]byte) []int16 {
	return wavSamples(runTool(t, "dlc3", lc3File(frames)))
}

// runTool runs a tool on an input file and returns its output file.
func runTool(t *testing.T, name string, input []byte, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: no other decoder judges ours (apt-get install liblc3-tools)", name)
		}
		t.Skipf("SKIPPED, %s is missing: apt-get install liblc3-tools", name)
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	writeFile(t, from, input)
	if out, err := exec.CommandContext(t.Context(), path, append(args, from, to)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return readFile(t, to)
}

func lc3File(frames [][]byte) []byte {
	n := len(frames)*FrameSamples - delay
	var b bytes.Buffer
	for _, field := range []int{0xCC1C, lc3Header, SampleRate / 100, 160, 1, 1000, 0, n & 0xFFFF, n >> 16} {
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(field)))
	}
	for _, frame := range frames {
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(frame))))
		b.Write(frame)
	}
	return b.Bytes()
}

func lc3Frames(data []byte) [][]byte {
	var frames [][]byte
	for data = data[lc3Header:]; len(data) > 0; data = data[2+FrameBytes:] {
		frames = append(frames, data[2:2+FrameBytes])
	}
	return frames
}

func wavFile(pcm []int16) []byte {
	size := uint32(2 * len(pcm))
	header := []any{
		[]byte("RIFF"), size + wavHeader - 8, []byte("WAVE"),
		[]byte("fmt "), uint32(16), uint16(1), uint16(1), uint32(SampleRate), uint32(2 * SampleRate), uint16(2), uint16(16),
		[]byte("data"), size, pcm,
	}
	var b []byte
	for _, field := range header {
		b, _ = binary.Append(b, binary.LittleEndian, field)
	}
	return b
}

func wavSamples(data []byte) []int16 {
	pcm := make([]int16, (len(data)-wavHeader)/2)
	_, _ = binary.Decode(data[wavHeader:], binary.LittleEndian, pcm)
	return pcm
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
