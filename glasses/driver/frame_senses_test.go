package driver_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	emulatedframe "github.com/service-dev/service/test/glassestest/peripheral/frame"
)

func TestFrame_ReportsTheWearersInputs(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		d.Tap(a.now, "single")
		want := []string{glasses.InputTap}
		if model == modelHalo {
			for _, touch := range []struct{ part, kind, input string }{
				{"tap", "double", glasses.InputDoubleTap}, {"tap", "triple", glasses.InputHold},
				{"button", "single", glasses.InputSelect}, {"button", "double", glasses.InputDoubleTap},
				{"button", "long", glasses.InputHold},
			} {
				a.run(a.now + 100)
				if touch.part == "tap" {
					d.Tap(a.now, touch.kind)
				} else {
					d.Button(a.now, touch.kind)
				}
				want = append(want, touch.input)
			}
		}
		a.run(a.now + 100)
		got := a.events(glasses.TypeInput)
		if len(got) != len(want) {
			t.Fatalf("got inputs %v, want %v", got, want)
		}
		for i, kind := range want {
			if !strings.Contains(got[i], `"kind":"`+kind+`"`) {
				t.Errorf("input %d is %s, want %s", i, got[i], kind)
			}
		}
	})
}

func TestFrame_ReportsItsBattery(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		d.Battery(0, 41, true)
		a.waitConnected()
		got := a.events(glasses.TypeBattery)
		if len(got) != 1 || !strings.Contains(got[0], `"level":41`) ||
			strings.Contains(got[0], `"charging":true`) != (model == modelHalo) {
			t.Errorf("got %v, want 41 percent, charging only on a Halo", got)
		}
		d.Battery(a.now, 12, false)
		a.run(a.now + 60_000)
		if got := a.events(glasses.TypeBattery); len(got) != 2 || !strings.Contains(got[1], `"level":12`) {
			t.Errorf("after a minute: got %v, want 12 percent", got)
		}
		if len(a.infos) < 2 || *a.infos[len(a.infos)-1].BatteryLevel != 12 {
			t.Errorf("got %+v, want a level of 12", a.infos)
		}
	})
}

func TestFrame_ReportsTheDirectionOfTheHead(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		a.wait(a.send(glasses.TypeMotionStart, glasses.MotionStart{Hz: 5}))
		d.Direction(a.now, 30, -90)
		a.run(a.now + 1000)
		got := a.events(glasses.TypeMotion)
		// The sine of 30 degrees is 0.5; the rest of the gravity points to the side.
		if len(got) < 4 || !strings.Contains(got[len(got)-1], `"ax":-500,"ay":-866,"az":0`) {
			t.Errorf("got %v", got)
		}
	})
}

// The microphone's sound arrives without gaps at the requested rate.
func TestFrame_HearsWhatIsSaid(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		for _, rate := range []int{8000, 16000} {
			a, d := frameAir(t, model, emulatedframe.Options{})
			a.waitConnected()
			var said []byte
			for n := range 8000 * 4 {
				said = binary.LittleEndian.AppendUint16(said, uint16(int16(20_000*math.Sin(float64(n)*2*math.Pi*200/8000))))
			}
			a.wait(a.send(glasses.TypeAudioStart, glasses.AudioStart{SampleRate: rate}))
			d.Speak(a.now, said)
			a.wait(a.send(glasses.TypeDisplayShow, tree("pictures and sound at the same time")))
			a.run(a.now + 3000)
			var pcm []byte
			for _, f := range a.frames {
				if f.Type == glasses.TypeAudioChunk {
					pcm = append(pcm, a.bodies[f.ID]...)
				}
			}
			if len(pcm) < 2*2*rate {
				t.Fatalf("%d Hz: heard %d bytes in 3 s, want at least 2 s", rate, len(pcm))
			}
			for n := range len(pcm) / 2 {
				got := int(int16(binary.LittleEndian.Uint16(pcm[2*n:])))
				want := 20_000 * math.Sin(float64(n*8000/rate)*2*math.Pi*200/8000)
				if math.Abs(float64(got)-want) > 3400 { // half a step of the signal, and the lower 8 bits
					t.Fatalf("%d Hz: sample %d is %d, want about %.0f", rate, n, got, want)
				}
			}
			a.wait(a.send(glasses.TypeAudioStop, struct{}{}))
			a.run(a.now + 200)
			if got := d.Microphone(); got.Rate != 0 {
				t.Errorf("after the end the microphone still listens: %+v", got)
			}
		}
	})
}

// sensorPicture returns the picture that the sensor captures: a red square at the top left, the rest blue.
func sensorPicture(t *testing.T, width, height int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, color.RGBA{B: 255, A: 255})
			if x < width/2 && y < height/2 {
				img.Set(x, y, color.RGBA{R: 255, A: 255})
			}
		}
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, img, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestFrame_TakesUprightPhotos(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		red := image.Pt(10, 700) // a Frame's sensor is turned to the right, so its top left is the upright bottom left
		if d.Photograph(a.now, sensorPicture(t, 720, 720), 300); model == modelHalo {
			d.Photograph(a.now, sensorPicture(t, 640, 480), 300)
			red = image.Pt(10, 10)
		}
		id := a.send(glasses.TypeCameraPhoto, glasses.Photo{Width: 4000})
		if r := a.wait(id); !r.OK {
			t.Fatalf("got %+v, want ok; %v", r.Error, a.notes)
		}
		img, err := jpeg.Decode(bytes.NewReader(a.bodies[id]))
		if err != nil {
			t.Fatal(err)
		}
		if r, _, b, _ := img.At(red.X, red.Y).RGBA(); r < 0x8000 || b > 0x8000 {
			t.Errorf("the picture of %v is not upright", img.Bounds())
		}
		if p := d.Photos(); len(p) != 1 {
			t.Errorf("the glasses took %d photos, want 1", len(p))
		}
		r := a.wait(a.send(glasses.TypeCameraVideo, glasses.Video{DurationMs: 500, FPS: 2, Width: 640}))
		if r.Error == nil || r.Error.Code != glasses.CodeUnsupported {
			t.Errorf("a clip: got %+v, want unsupported", r)
		}
	})
}

func TestFrame_StreamsPictures(t *testing.T) {
	a, d := frameAir(t, modelFrame, emulatedframe.Options{})
	a.waitConnected()
	d.Photograph(a.now, sensorPicture(t, 320, 320), 100)
	a.wait(a.send(glasses.TypeVideoStart, glasses.VideoStart{FPS: 5, Width: 320}))
	a.run(a.now + 10_000)
	frames := slices.DeleteFunc(slices.Clone(a.frames), func(f glasses.Frame) bool {
		return f.Type != glasses.TypeVideoFrame
	})
	if len(frames) < 5 {
		t.Errorf("got %d pictures in 10 s, want at least 5", len(frames))
	}
}
