package driver_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"testing"

	"github.com/service-dev/service/glasses"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// Sound for the right arm's microphone, encoded by liblc3, reaches the app as decoded by liblc3: in order, without
// gaps, and with 16-bit samples that differ by at most 1.
func TestG1_HearsWhatIsSaid(t *testing.T) {
	encoded, err := os.ReadFile("lc3/testdata/sounds.lc3")
	if err != nil {
		t.Fatal(err)
	}
	wav, err := os.ReadFile("lc3/testdata/sounds.wav")
	if err != nil {
		t.Fatal(err)
	}
	want := append(make([]byte, 2*40), wav[44:]...) // dlc3 skips the delay of the codec, 2.5 ms
	var frames []byte
	for rest := encoded[binary.LittleEndian.Uint16(encoded[2:]):]; len(rest) > 2; {
		n := int(binary.LittleEndian.Uint16(rest))
		frames = append(frames, rest[2:2+n]...)
		rest = rest[2+n:]
	}
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	if r := a.wait(a.send(glasses.TypeAudioStart, glasses.AudioStart{SampleRate: 16000})); !r.OK {
		t.Fatalf("audio.start: got %+v, want ok", r.Error)
	}
	a.run(a.now + 100)
	pair.Speak(a.now, frames)
	a.settle()
	a.run(a.now + int64(len(frames)/2) + 1000) // 20 bytes are 10 ms
	if r := a.wait(a.send(glasses.TypeAudioStop, struct{}{})); !r.OK {
		t.Fatalf("audio.stop: got %+v, want ok", r.Error)
	}
	a.run(a.now + 1000)
	if pair.Microphone() {
		t.Error("the microphone is still on after audio.stop")
	}
	var heard []byte
	for _, f := range a.frames {
		if f.Type == glasses.TypeAudioChunk {
			var m glasses.Media
			if err := json.Unmarshal(f.Payload, &m); err != nil || m.SampleRate != 16000 {
				t.Fatalf("chunk: got %s (error %v), want 16000 Hz", f.Payload, err)
			}
			heard = append(heard, a.bodies[f.ID]...)
		}
	}
	chunk := 3200 // 100 ms
	if len(heard) != len(want)/chunk*chunk {
		t.Fatalf("heard %d bytes, want %d", len(heard), len(want)/chunk*chunk)
	}
	worst := 0
	for i := 80; i+1 < min(len(heard), len(want)); i += 2 {
		got, expected := int16(binary.LittleEndian.Uint16(heard[i:])), int16(binary.LittleEndian.Uint16(want[i:]))
		worst = max(worst, int(got)-int(expected), int(expected)-int(got))
	}
	if worst > 1 {
		t.Errorf("a sample differs by %d from what liblc3 decodes, want at most 1", worst)
	}
}
