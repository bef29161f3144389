package device_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestEachChangeIsToldOnce(t *testing.T) {
	b := newBench(t, "rayban_display")
	all := `{"disabled":["speech","camera"],"permissions":{"speech":"denied","camera":"denied"},"call":true,"route":"phone","link":"lossy",
		"thermal":"warm","hinge":"folded","worn":false,"battery":{"level":7,"charging":true}}`
	b.must(glasses.SimState, all)
	equal(t, "events", b.types(), []string{`battery{"level":7,"charging":true}`, `wear{"worn":false}`,
		`hinge{"state":"folded"}`, `thermal{"state":"warm"}`,
		`link{"state":"lossy"}`, `route{"to":"phone"}`, `call{"active":true}`, `permission{"part":"camera","state":"denied","by":"permission"}`,
		`permission{"part":"speech","state":"denied","by":"permission"}`,
		`disabled{"parts":["camera","speech"],"by":"switch"}`})
	b.must(glasses.SimState, all)
	b.must(glasses.SimState, "{}")
	equal(t, "nothing changed", b.types(), []string{})
	b.must(glasses.SimFault, `{"command":"camera.photo","code":"timeout"}`)
	equal(t, "a fault", b.types(), []string{`fault{"command":"camera.photo","code":"timeout","times":1}`})
	b.must(glasses.SimFault, `{"clear":true}`)
	if faults := b.d.Snapshot().State.Faults; len(faults) != 0 {
		t.Errorf("the snapshot contains faults: %v", faults)
	}
}

func TestSpeech(t *testing.T) {
	b := newBench(t, "rayban_display")
	first := b.do(glasses.TypeSpeechSay, `{"text":"ten chars!"}`)
	second := b.do(glasses.TypeSpeechSay, `{"text":"a"}`)
	if b.code(first) != "ok" || b.code(second) != "ok" {
		t.Error("the result of speech.say is delayed")
	}
	b.wait(599)
	equal(t, "too early", b.types(), []string{})
	b.wait(1)
	equal(t, "the first", b.types(), []string{fmt.Sprintf(`speech{"id":%q,"state":"finished"}`, first)})
	b.wait(300)
	equal(t, "the second, after the first", b.types(),
		[]string{fmt.Sprintf(`speech{"id":%q,"state":"finished"}`, second)})
	third, fourth := b.do(glasses.TypeSpeechSay, `{"text":"x"}`), b.do(glasses.TypeSpeechSay, `{"text":"y"}`)
	b.types()
	b.must(glasses.SimState, `{"call":true}`)
	equal(t, "a call", b.types(), []string{`call{"active":true}`,
		fmt.Sprintf(`speech{"id":%q,"state":"stopped"}`, third), fmt.Sprintf(`speech{"id":%q,"state":"stopped"}`,
			fourth)})
	b.wait(5000)
	equal(t, "afterwards", b.types(), []string{})
	kinds := []string{}
	for _, a := range b.asks {
		kinds = append(kinds, a.Kind+" "+a.Text)
	}
	equal(t, "asks", kinds, []string{"say ten chars!", "say a", "say x", "hush "})
}

func TestStreamsLoseTheirGround(t *testing.T) {
	for _, c := range []struct{ typ, payload, left string }{
		{"sim.state", `{"call":true}`, "video motion"},
		{"sim.state", `{"hinge":"folded"}`, "motion"},
		{"sim.state", `{"thermal":"critical"}`, "audio transcription motion"},
		{"sim.state", `{"permissions":{"microphone":"denied"}}`, "video motion"},
		{"sim.state", `{"disabled":["camera"]}`, "audio transcription motion"},
		{"sim.state", `{"link":"lost"}`, ""},
		{"sim.state", `{"worn":false}`, "audio transcription video motion"},
		{"sim.device", `{"deviceModel":"brilliant_frame"}`, "transcription"},
	} {
		b := newBench(t, "rayban_display")
		for _, stream := range []string{"motion", "video", "transcription", "audio"} {
			b.must(stream+".start", "")
		}
		b.must(c.typ, c.payload)
		if got := strings.Join(b.d.Snapshot().State.Running, " "); got != c.left {
			t.Errorf("%s: still running: %q", c.payload, got)
		}
		b.types()
		b.wait(1000)
		for stream, typ := range map[string]string{"audio": glasses.TypeAudioChunk, "video": glasses.TypeVideoFrame,
			"motion": glasses.TypeMotion} {
			comes := slices.ContainsFunc(b.out, func(o device.Out) bool { return o.Frame.Type == typ })
			if comes != strings.Contains(c.left, stream) {
				t.Errorf("%s: %s is still sent: %v", c.payload, typ, comes)
			}
		}
	}
}

func TestStreams(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("motion.start", `{"hz":3}`)
	b.must("sim.motion", `{"ax":5}`)
	b.wait(1000)
	var at []int64
	for _, o := range b.out {
		if o.Frame.Type == glasses.TypeMotion && strings.Contains(string(o.Frame.Payload), `"ax":5`) {
			at = append(at, o.Frame.At)
		}
	}
	if !slices.Equal(at, []int64{333, 666, 1000}) {
		t.Errorf("motion frames at %v, want 333, 666 and 1000 ms", at)
	}
	b.must("motion.stop", "")
	b.must("motion.stop", "")
	if got := b.code(b.do("sim.transcript", `{"text":"hi"}`)); got != "paused" {
		t.Errorf("a transcript that no app requested: %s, want paused", got)
	}
	b.types()
	b.must("transcription.start", "")
	b.must("sim.transcript", `{"text":"hi","final":true}`)
	equal(t, "transcript", b.types(), []string{`transcript{"text":"hi","final":true}`})
	b.must("transcription.stop", "")
	b.must("video.start", `{"fps":2,"width":64}`)
	b.must("audio.start", `{"sampleRate":8000}`)
	b.wait(500)
	frames, chunks := 0, 0
	for _, o := range b.out {
		var m glasses.Media
		_ = json.Unmarshal(o.Frame.Payload, &m)
		switch o.Frame.Type {
		case glasses.TypeVideoFrame:
			frames++
			if m.MIME != "image/jpeg" || m.Width != 64 || m.Height != 48 || m.Bytes != len(o.Body) {
				t.Errorf("frame: %+v", m)
			}
		case glasses.TypeAudioChunk:
			chunks++
			if m.MIME != "audio/L16" || m.DurationMs != 100 || m.SampleRate != 8000 || len(o.Body) != 1600 {
				t.Errorf("chunk: %+v", m)
			}
		}
	}
	if frames != 1 || chunks != 5 {
		t.Errorf("%d frames and %d chunks, want 1 and 5", frames, chunks)
	}
}

// After the machine was asleep, streams continue with current data instead of sending everything that was missed.
func TestAMachineThatSlept(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("motion.start", `{"hz":100}`)
	b.d.Tick(8 * 3600_000)
	if n := len(b.d.Take()); n > 200 {
		t.Errorf("%d frames were sent together, want at most 200", n)
	}
}

func TestAHostThatDoesNotAnswer(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.mute = true
	photo := b.do(glasses.TypeCameraPhoto, "")
	b.wait(10_000)
	video := b.do(glasses.TypeCameraVideo, `{"durationMs":500}`)
	b.wait(10_500)
	if b.code(photo) != "timeout" || b.code(video) != "timeout" {
		t.Errorf("photo: %s, video: %s; want timeout for both", b.code(photo), b.code(video))
	}
	refused := b.do(glasses.TypeCameraPhoto, "")
	b.d.Answer(b.now, b.asks[len(b.asks)-1].ID, device.Material{},
		&glasses.Error{Code: "permission_denied", Message: "no"})
	b.settle()
	broken := b.do(glasses.TypeCameraPhoto, "")
	b.d.Answer(b.now, b.asks[len(b.asks)-1].ID, device.Material{Bytes: []byte("GIF89a")}, nil)
	b.settle()
	folded := b.do(glasses.TypeCameraPhoto, "")
	b.must(glasses.SimState, `{"hinge":"folded"}`)
	if b.code(refused) != "permission_denied" || b.code(broken) != "platform_error" ||
		b.code(folded) != "hinge_closed" {
		t.Errorf("refused: %s, broken: %s, folded: %s", b.code(refused), b.code(broken), b.code(folded))
	}
	b.must(glasses.SimState, `{"hinge":"open"}`)
	b.must("video.start", `{"fps":30}`)
	b.asks = nil
	b.wait(1000)
	if len(b.asks) != 1 {
		t.Errorf("the host was asked %d times before it delivered a frame, want once", len(b.asks))
	}
}

func TestPictureBeforeTheCamera(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 400, 200))
	for i := range 400 * 200 {
		img.SetNRGBA(i%400, i/400, color.NRGBA{byte(i), byte(i / 400), 80, 255})
	}
	var data bytes.Buffer
	_ = png.Encode(&data, img)
	b := newBench(t, "rayban_display")
	b.must(glasses.SimCamera, "", data.Bytes()...)
	b.asks = nil
	id := b.do(glasses.TypeCameraPhoto, `{"width":100}`)
	r := b.result(id)
	if r == nil || r.Media == nil || r.Media.Width != 100 || r.Media.Height != 50 || len(b.asks) != 0 {
		t.Fatalf("%+v, asks %v", r, b.asks)
	}
	// The photo is identical, byte for byte, on every processor and in WebAssembly.
	if want := "b421729d8ab8bdfe8cf7e89eb3e91164"; r.Media.SHA256[:32] != want {
		t.Errorf("the photo's hash is %s, want a fixed one", r.Media.SHA256[:32])
	}
	clip := b.do(glasses.TypeCameraVideo, `{"durationMs":2000,"fps":5,"width":100}`)
	b.wait(2000)
	if c := b.result(clip); c == nil || c.Media == nil || c.Media.Bytes != 10*r.Media.Bytes {
		t.Errorf("a clip of ten such pictures: %+v", c)
	}
	if got := b.code(b.do(glasses.SimCamera, "", []byte("no picture")...)); got != "bad_payload" {
		t.Errorf("a broken picture: %s, want bad_payload", got)
	}
	clip = b.do(glasses.TypeCameraVideo, `{"durationMs":1000,"width":100}`)
	b.must(glasses.SimCamera, "")
	b.wait(1000)
	if got := b.code(clip); got != "ok" {
		t.Errorf("a clip whose picture was removed in the meantime: %s, want ok", got)
	}
	b.do(glasses.TypeCameraPhoto, "")
	if len(b.asks) == 0 {
		t.Error("the host's camera was not restored")
	}
}

// wav returns a mono WAV file with 16-bit samples.
func wav(rate int, samples ...int16) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	_ = binary.Write(&b, binary.LittleEndian, []uint32{uint32(rate), uint32(2 * rate)})
	b.WriteString("\x02\x00\x10\x00data")
	_ = binary.Write(&b, binary.LittleEndian, uint32(2*len(samples)))
	_ = binary.Write(&b, binary.LittleEndian, samples)
	return b.Bytes()
}

func TestSoundBeforeTheMicrophone(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("audio.start", `{"sampleRate":16000}`)
	b.must(glasses.SimMicrophone, "", wav(8000, 100, 200, 300)...)
	b.types()
	b.wait(200)
	if len(b.out) != 2 || b.out[0].Body[0] != 100 || b.out[0].Body[2] != 150 || b.out[0].Body[4] != 200 {
		t.Fatalf("%d chunks, the first begins with %v", len(b.out), b.out[0].Body[:8])
	}
	if slices.ContainsFunc(b.out[1].Body, func(c byte) bool { return c != 0 }) {
		t.Error("sound was sent after the end of the file")
	}
	if got := b.code(b.do(glasses.SimMicrophone, "", []byte("RIFF")...)); got != "bad_payload" {
		t.Errorf("a broken sound: %s, want bad_payload", got)
	}
}

func TestTranscriptOfTheMicrophonesSound(t *testing.T) {
	b := newBench(t, "rayban_display")
	sound := wav(8000, make([]int16, 2400)...) // 300 ms
	b.must(glasses.SimMicrophone, `{"transcript":[{"text":"we need","endMs":100},{"text":"some","endMs":101},`+
		`{"text":"milk","endMs":200}]}`, sound...)
	b.must("audio.start", `{"sampleRate":16000}`)
	b.types()
	b.wait(300)
	var said []string
	for _, out := range b.out {
		var chunk glasses.Media
		if err := json.Unmarshal(out.Frame.Payload, &chunk); err != nil {
			t.Fatal(err)
		}
		said = append(said, chunk.Transcript)
	}
	if want := []string{"we need", "some milk", ""}; !slices.Equal(said, want) {
		t.Errorf("transcripts of the chunks: %q, want %q", said, want)
	}
	for _, transcript := range []string{
		`[{"text":"late","endMs":601}]`, `[{"text":"","endMs":1}]`, `[{"text":"a","endMs":2},{"text":"b","endMs":2}]`,
		`[{"text":"` + strings.Repeat("a", glasses.MaxSoundTranscript+1) + `","endMs":1}]`,
	} {
		if got := b.code(b.do(glasses.SimMicrophone, `{"transcript":`+transcript+`}`, sound...)); got != "bad_payload" {
			t.Errorf("the transcript %.40s: %s, want bad_payload", transcript, got)
		}
	}
}
