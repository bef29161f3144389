package localsim

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
	"github.com/service-dev/service/glasses/media/exiftest"
	"github.com/service-dev/service/internal/problem"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

func TestVirtualTime(t *testing.T) {
	p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{VirtualClock: true, NowMs: 5000})
	say, sleep := p.Start("speech.say", `{"text":"hello"}`), p.Start("clock.sleep", `{"ms":250}`)
	p.Await(say)
	c := p.Must(glasses.SimAdvance, `{"toMs":6000}`).Clock
	if c.NowMs != 5250 || c.Reached || p.Frames[0].ID != sleep || p.Frames[0].At != 5250 {
		t.Errorf("first step: got %+v, %v, want a frame at 5250", c, p.Take())
	}
	p.Frames = nil
	if steps := p.advance(6000); steps != 2 {
		t.Errorf("got %d steps, want 2", steps)
	}
	if got := p.Take(); len(got) != 1 || got[0] != fmt.Sprintf(`5300 speech {"id":%q,"state":"finished"}`, say) {
		t.Errorf("frames after advance: got %v", got)
	}
	if c := p.Must(glasses.SimAdvance, `{"toMs":10}`).Clock; c.NowMs != 6000 || !c.Reached {
		t.Errorf("advance to the past: got %+v, want an unchanged clock", c)
	}
	for _, to := range []string{"-1", "9223372036854775807"} {
		if r := p.Do(glasses.SimAdvance, `{"toMs":`+to+`}`); r.Error == nil || r.Error.Code != "bad_payload" {
			t.Errorf("advance to %s: got %+v, want bad_payload", to, r)
		}
	}
	before := time.Now()
	p.Must("motion.start", `{"hz":1}`)
	if steps := p.advance(3_606_000); steps != 3600 {
		t.Errorf("an hour took %d steps, want 3600", steps)
	}
	t.Logf("an hour at 1 Hz took %v", time.Since(before))
}

func TestPace(t *testing.T) {
	p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{VirtualClock: true, DeviceModel: "even_g1", Pace: true})
	first, second := p.Start("display.show", `{"tree":{"type":"text","text":"1"}}`),
		p.Start("display.show", `{"tree":{"type":"text","text":"2"}}`)
	last := p.Start("display.show", `{"tree":{"type":"text","text":"3"}}`)
	if r := p.Await(second); !r.OK || !r.Superseded {
		t.Errorf("the picture that waited: got %+v, want it superseded", r)
	}
	p.advance(4000)
	got := strings.Join(p.Take(), "\n")
	for id, at := range map[string]int{first: 1600, last: 3200} {
		if !strings.Contains(got, fmt.Sprint(at)+" result ") {
			t.Errorf("%s: got %s, want a result at %d ms", id, got, at)
		}
	}
}

func TestRealTime(t *testing.T) {
	p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{})
	begin := time.Now()
	p.Must("clock.sleep", `{"ms":50}`)
	if took := time.Since(begin); took < 45*time.Millisecond {
		t.Errorf("50 ms of real time took only %v", took)
	}
	if r := p.Do(glasses.SimAdvance, `{"toMs":1}`); r.Error == nil || r.Error.Code != "unsupported" {
		t.Errorf("sim.advance in real time: got %+v, want unsupported", r)
	}
	p.Must("motion.start", `{"hz":100}`)
	f := p.Next()
	if f.Type != glasses.TypeMotion || f.At < begin.UnixMilli() || f.At > time.Now().UnixMilli()+1 {
		t.Errorf("unexpected motion frame: %+v", f)
	}
}

// TestOneCannotDisturbAnother checks that an invalid message gets an error in its own session and affects no other
// session.
func TestOneCannotDisturbAnother(t *testing.T) {
	c := serveSim(t)
	good, bad := attachPair(t, c, &pluginv1.AttachOpen{VirtualClock: true}), attachPair(t, c,
		&pluginv1.AttachOpen{VirtualClock: true})
	for _, m := range []*pluginv1.AttachRequest{
		{}, {Message: &pluginv1.AttachRequest_Frame{Frame: []byte("{")}}, {Message: &pluginv1.AttachRequest_Binary{Binary: []byte{255, 255}}},
		{Message: &pluginv1.AttachRequest_Open{Open: &pluginv1.AttachOpen{}}}, {Message: &pluginv1.AttachRequest_Frame{Frame: []byte(strings.Repeat("x", 3<<20))}},
		{Message: &pluginv1.AttachRequest_Frame{Frame: []byte(`{"v":1,"type":"display.show","id":"x","payload":[]}`)}},
	} {
		bad.Send(m)
		if f := bad.Next(); f.Type != glasses.TypeError || !strings.Contains(string(f.Payload), `"bad_frame"`) || f.ID == "" {
			t.Errorf("response to %.40v: got %s %s, want bad_frame", m, f.Type, f.Payload)
		}
	}
	bad.Start("com.example.unknown", "{}")
	if r := bad.Do("sim.camera", "{}"); r.Error != nil {
		t.Errorf("the next command failed: %+v", r.Error)
	}
	// This is more than gRPC accepts.
	bad.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Frame{Frame: make([]byte, 5<<20)}})
	good.Must("display.show", `{"tree":{"type":"text","text":"still here"}}`)
	if _, err := bad.Receive(); err == nil {
		t.Error("a request over the size limit was accepted")
	}
	good.Must("display.clear", "{}")
}

func TestOpeningIsRefused(t *testing.T) {
	c := serveSim(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "transcripts.json"), []byte(`[{"at":1}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*pluginv1.AttachOpen{
		"no open": nil, "no model": {}, "unknown model": {DeviceModel: "x"}, "relative folder": {DeviceModel: "even_g1",
			FixturesDir: []byte("x")},
		"no such folder": {DeviceModel: "even_g1", FixturesDir: []byte(file + "x")}, "a file": {DeviceModel: "even_g1",
			FixturesDir: []byte(file)},
		"broken fixture": {DeviceModel: "even_g1", FixturesDir: []byte(broken)}, "no snapshot": {DeviceModel: "even_g1",
			Snapshot: []byte("{")},
		"before the epoch": {DeviceModel: "even_g1", NowMs: -1},
	} {
		stream, err := c.Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := &pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Frame{Frame: []byte("{}")}}
		if o != nil {
			m.Message = &pluginv1.AttachRequest_Open{Open: o}
		}
		_ = stream.Send(m)
		_, err = stream.Recv()
		details := status.Convert(err).Details()
		if len(details) != 1 || details[0].(*pluginv1.Problem).GetCode() != problem.CodeInvalidRequest {
			t.Errorf("%s: got %v, want attach.CodeInvalid", name, err)
		}
	}
}

func TestSnapshotIsTakenUp(t *testing.T) {
	c := serveSim(t)
	p := attachPair(t, c, &pluginv1.AttachOpen{VirtualClock: true})
	p.Must("sim.device", `{"deviceModel":"even_g2"}`)
	p.Must("display.show", `{"tree":{"type":"text","text":"kept"}}`)
	r := p.Must("sim.state", `{"battery":{"level":3}}`)
	raw, _ := json.Marshal(glasses.Snapshot{DeviceModel: "even_g2", State: *r.State, View: *r.View})
	again := attachPair(t, c, &pluginv1.AttachOpen{VirtualClock: true, Snapshot: raw})
	r = again.Must("sim.state", `{}`)
	if r.State.Battery.Level != 3 || r.View.Tree == nil || r.View.Tree.Text != "kept" {
		t.Errorf("restored session: got %+v %+v", r.State, r.View)
	}
	if r := again.Do("camera.photo", "{}"); r.Error == nil || r.Error.Code != "unsupported" {
		t.Errorf("the model was not restored: got %+v, want unsupported", r)
	}
}

func TestFixtures(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		_ = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	photos := [][]byte{media.TestPicture(100, 80, 1), media.TestPicture(100, 80, 2)}
	write("photos/b.jpg", photos[1])
	write("photos/a.jpg", photos[0])
	write("photos/readme.txt", nil)
	write("clip.mjpeg", slices.Concat(media.TestPicture(64, 64, 1), media.TestPicture(64, 64, 2)))
	write("transcripts.json", []byte(`[{"atMs":900,"text":"two","final":true,"language":"en"},{"atMs":300,"text":"one"}]`))
	p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{VirtualClock: true, FixturesDir: []byte(dir)})
	for i := range 3 {
		id := p.Start("camera.photo", "{}")
		r := p.Await(id)
		if r.Media == nil || !slices.Equal(p.Bodies[id], photos[i%2]) {
			t.Errorf("unexpected photo %d: %+v", i, r)
		}
	}
	p.Frames = nil
	p.Must("transcription.start", "{}")
	p.advance(400)
	p.Must("transcription.stop", "{}")
	p.Must("transcription.start", "{}")
	p.advance(2000)
	want := []string{`300 transcript {"text":"one","final":false}`, `700 transcript {"text":"one","final":false}`,
		`1300 transcript {"text":"two","final":true,"language":"en"}`}
	if got := p.Take(); !slices.Equal(got, want) {
		t.Errorf("transcripts: got %v", got)
	}
	id := p.Start("camera.video", `{"durationMs":1000,"fps":4}`)
	p.advance(3000)
	if got := len(media.SplitJPEGs(p.Bodies[id], 100)); got != 4 {
		t.Errorf("the clip has %d frames, want 4", got)
	}
	// An unreadable photo is reported, as is a symbolic link to a file outside the folder.
	p.Frames = nil
	secret := filepath.Join(t.TempDir(), "secret.jpg")
	if err := os.WriteFile(secret, photos[0], 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "photos/a.jpg"))
	_ = os.Remove(filepath.Join(dir, "photos/b.jpg"))
	if err := os.Symlink(secret, filepath.Join(dir, "photos/a.jpg")); err != nil {
		t.Skip(err)
	}
	for range 2 {
		if r := p.Do("camera.photo", "{}"); r.Error == nil || r.Error.Code != "platform_error" ||
			strings.Contains(r.Error.Message, secret) {
			t.Errorf("got %+v, want platform_error without the file's content", r)
		}
	}
}

// Fixtures from a phone are upright and have no metadata, as photos and as the frames of a clip, at any width.
func TestFixtures_AreUprightWithoutMetadata(t *testing.T) {
	for o := 1; o <= 8; o++ {
		dir := t.TempDir()
		picture := exiftest.JPEG(binary.LittleEndian, o)
		for name, data := range map[string][]byte{"a.png": exiftest.PNG(binary.BigEndian, o), "b.jpg": picture,
			"clip.mjpeg": slices.Repeat(picture, 2)} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{VirtualClock: true, FixturesDir: []byte(dir)})
		ids := []string{p.Start("camera.photo", "{}"), p.Start("camera.photo", `{"width":64}`),
			p.Start("camera.video", `{"durationMs":500,"fps":4}`)}
		p.advance(3000)
		for _, id := range ids {
			for _, body := range media.SplitJPEGs(p.Bodies[id], 9) {
				img, err := jpeg.Decode(bytes.NewReader(body))
				if err == nil {
					err = exiftest.CheckUpright(img, img.Bounds())
				}
				if err != nil || bytes.Contains(body, []byte(exiftest.Place)) {
					t.Errorf("orientation %d, command %s: %v, or metadata", o, id, err)
				}
			}
			if len(p.Bodies[id]) == 0 {
				t.Errorf("orientation %d: no picture of %s", o, id)
			}
		}
	}
}

// Pictures and sounds may have any name.
func TestFixtures_OfAnyName(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pictures := [][]byte{media.TestPicture(100, 80, 1), media.TestPicture(100, 80, 2)}
	write("a.jpg", pictures[0])
	write("B.JPEG", pictures[1])
	write("voice.WAV", wav(1000, 1000, 1000))
	p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{VirtualClock: true, FixturesDir: []byte(dir)})
	for i := range 3 {
		id := p.Start("camera.photo", "{}")
		if r := p.Await(id); r.Media == nil || !slices.Equal(p.Bodies[id], pictures[(i+1)%2]) {
			t.Errorf("photo %d is not the file that is next by name: %+v", i, r)
		}
	}
	id := p.Start("camera.video", `{"durationMs":500,"fps":4}`)
	p.advance(3000)
	if frames := media.SplitJPEGs(p.Bodies[id], 100); len(frames) != 2 || !slices.Equal(frames[0], pictures[1]) ||
		!slices.Equal(frames[1], pictures[0]) {
		t.Errorf("the clip has %d frames, want the two pictures", len(frames))
	}
	p.Must("audio.start", `{"sampleRate":8000}`)
	p.advance(100)
	for id, body := range p.Bodies {
		if len(body) == 1600 && (body[0] != 0xe8 || body[1] != 3 || body[1599] != 0) {
			t.Errorf("audio chunk %s: %v, want the sound of the file, then silence", id, body[:8])
		}
	}

	write("other.wav", wav(1))
	if _, err := openFixtures(dir); err == nil || !strings.Contains(err.Error(), "audio.wav") {
		t.Errorf("two sounds: got %v, want an error that explains how to choose one", err)
	}
	write("audio.wav", wav(2))
	write("photo.jpg", pictures[0])
	f, err := openFixtures(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if !slices.Equal(f.photos, []string{"photo.jpg"}) || len(f.frames) != 3 {
		t.Errorf("with photo.jpg the photos are %v and the frames %v", f.photos, f.frames)
	}
}

// wav returns a sound of 16-bit samples at 8000 Hz.
func wav(samples ...int16) []byte {
	body := new(bytes.Buffer)
	_ = binary.Write(body, binary.LittleEndian, samples)
	out := bytes.NewBufferString("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00")
	for _, field := range []any{uint16(1), uint16(1), uint32(8000), uint32(16000), uint16(2), uint16(16)} {
		_ = binary.Write(out, binary.LittleEndian, field)
	}
	out.WriteString("data")
	_ = binary.Write(out, binary.LittleEndian, uint32(body.Len()))
	out.Write(body.Bytes())
	return out.Bytes()
}

func TestWithoutFixtures(t *testing.T) {
	p := attachPair(t, serveSim(t), &pluginv1.AttachOpen{VirtualClock: true, DeviceModel: "brilliant_halo"})
	r := p.Must("camera.photo", `{"width":320}`)
	if r.Media == nil || r.Media.Width != 320 || r.Media.Height != 240 || r.Media.MIME != "image/jpeg" {
		t.Errorf("unexpected media: %+v", r.Media)
	}
	p.Frames = nil
	p.Must("audio.start", "{}")
	p.Must("video.start", `{"fps":10,"width":64}`)
	p.advance(1000)
	seen := map[string]int{}
	for _, f := range p.Frames {
		seen[f.Type]++
	}
	if seen[glasses.TypeAudioChunk] != 10 || seen[glasses.TypeVideoFrame] != 10 {
		t.Errorf("frames per stream: got %v, want 10 each", seen)
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(`[{"atMs":900,"text":"two","final":true,"language":"en"},{"atMs":300,"text":"one"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, err := parseScript(data)
		if err == nil && !slices.IsSortedFunc(lines, func(a, b line) int { return int(a.AtMs - b.AtMs) }) {
			t.Error("the lines are not ordered by time")
		}
	})
}
