package frame

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/render"
)

// Only the lines of the program reach the REPL, and no control byte that reboots a Halo or removes its files.
func TestPermitted_AllowsNothingElse(t *testing.T) {
	for _, value := range []string{
		"", "\x00", "\x02", "\x05", "\x06", "\x07", "\x03\x03", "\x04\x00", "\x01", "\x01\x00", "\x01\x00x", "print(1)",
		"frame.file.remove('main.lua')", bootLines[0] + " ", " " + bootLines[0], "\n", readyLine + ";", "\x03print(1)",
	} {
		if permitted([]byte(value)) {
			t.Errorf("%q may be sent", value)
		}
	}
	for _, value := range append([]string{"\x03", "\x04", "\x01\x07b", readyLine, leaveLine}, bootLines...) {
		if !permitted([]byte(value)) {
			t.Errorf("%q may not be sent", value)
		}
	}
}

// Each line fits in the smallest MTU, and the program neither opens files nor changes stored settings of the glasses.
func TestBoot_IsHarmless(t *testing.T) {
	for _, line := range append([]string{readyLine, leaveLine}, bootLines...) {
		if len(line) > minMTU-3 {
			t.Errorf("%d bytes are too many for a line: %s", len(line), line)
		}
		for _, word := range []string{"file", "require", "load", "update", "fpga", "reboot", "ship_mode", "register",
			"frame.sleep()", "brightness", "gain", "set_pan", "charge("} {
			if strings.Contains(line, word) {
				t.Errorf("%q is in %s", word, line)
			}
		}
	}
}

// The program sets the palette of package render.
func TestBoot_SetsThePalette(t *testing.T) {
	rest := bootText
	for i, c := range render.FramePalette() {
		want := fmt.Sprintf(" %d %d %d", c[0], c[1], c[2])
		at := strings.Index(rest, want)
		if at < 0 {
			t.Fatalf("colour %d,%s, is missing or not in its place", i, want)
		}
		rest = rest[at+len(want):]
	}
}

func TestPair_MatchesOnlyItsModel(t *testing.T) {
	for name, match := range map[string]func(string) (string, string, bool){"Frame 4F": PairFrame, "Halo 07": PairHalo} {
		if pair, link, ok := match(name); !ok || pair != name || link != Main {
			t.Errorf("%q: got %q, %q, %v", name, pair, link, ok)
		}
		for _, other := range []string{"", "Frame", "Frame 4", "Frame 4F ", "Frame 4f", "Frame 4F\n", "xHalo 07", "Halo 077",
			"Halo \u202e07", "monocle", "Even G1_27_L_119A6C"} {
			if _, _, ok := match(other); ok {
				t.Errorf("%q: taken for the model of %s", other, name)
			}
		}
	}
}

// Random pictures become tiles that fit in a packet and on the panel, have rows of whole bytes, and use the smallest
// format.
func TestTiles_FitAndAreSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		halo := n%2 == 0
		bounds, palette := image.Rect(0, 0, 640, 400), render.FramePalette()
		if halo {
			bounds = image.Rect(0, 0, 256, 256)
		}
		img, room := image.NewNRGBA(bounds), 179+r.IntN(300)
		colours := 1 + r.IntN(16)
		for range r.IntN(30) {
			c := palette[r.IntN(colours)]
			spot := image.Rect(0, 0, 1+r.IntN(90), 1+r.IntN(60)).Add(image.Pt(r.IntN(bounds.Dx()), r.IntN(bounds.Dy())))
			for y := spot.Min.Y; y < min(spot.Max.Y, bounds.Max.Y); y++ {
				for x := spot.Min.X; x < min(spot.Max.X, bounds.Max.X); x++ {
					img.SetNRGBA(x, y, color.NRGBA{c[0], c[1], c[2], 255})
					if halo && n%4 == 0 {
						img.SetNRGBA(x, y, color.NRGBA{byte(x), byte(y), c[2], 255}) // more colours than fit in a palette
					}
				}
			}
		}
		for _, tile := range tiles(img, nil, room, halo) {
			word := func(i int) int { return int(tile[i])<<8 | int(tile[i+1]) }
			at := image.Rect(0, 0, word(4), word(6)).Add(image.Pt(word(0)-1, word(2)-1))
			if len(tile) > room || !at.In(bounds) || at.Dx()%8 != 0 || at.Empty() {
				t.Fatalf("picture %d: a tile of %d bytes at %v, room for %d", n, len(tile), at, room)
			}
			tiler := &tiler{img: img, room: room, halo: halo}
			if f := tiler.format(at); byte(f.total) != tile[8] {
				t.Errorf("picture %d: format %d at %v, want %d", n, tile[8], at, f.total)
			}
		}
	}
}

// FuzzNotify feeds arbitrary bytes at arbitrary times, with arbitrary pixels on the display. The driver must not
// panic, write only allowed values and one at a time, and use bounded memory.
func FuzzNotify(f *testing.F) {
	f.Add(true, []byte("\x02\x01A\x05\x011\x04\x01A\x01\x00\x03\x01Ts\x04\x01B\x50\x01\x02\x01R"))
	f.Add(false, []byte("\x0b')os.remove\x03\x04\x05\x07\x06\x01M\x00ab\x05\x01P\x00\xff\xd8\x03\x01E\x01"))
	f.Fuzz(func(t *testing.T, halo bool, script []byte) {
		d := newDriver(halo)
		f := &feeder{t: t, d: d}
		d.Event(0, driver.Event{Kind: driver.LinkUp, Link: Main, MTU: 247})
		img := image.NewNRGBA(d.bounds())
		copy(img.Pix, bytes.Repeat(script, 10))
		d.Do(0, device.Ask{ID: 1, Kind: device.AskShow}, img)
		d.Do(0, device.Ask{ID: 2, Kind: device.AskMicOn, SampleRate: 16000}, nil)
		f.answer()
		d.Do(f.now, device.Ask{ID: 3, Kind: device.AskPhoto, Width: 640}, nil)
		for n := 0; n < len(script); n++ {
			size := int(script[n])
			value := script[min(n+1, len(script)):min(n+1+size, len(script))]
			n += len(value)
			f.now += int64(size)
			d.Event(f.now, driver.Event{Kind: driver.Notified, Link: Main, Data: bytes.Clone(value)})
			f.drain()
		}
		d.Close(f.now)
		f.drain()
		if n := len(d.mic.pcm); n > maxSamples {
			t.Fatalf("%d samples wait, want at most %d", n, maxSamples)
		}
		if n := len(d.link.waiting); n > 3000 {
			t.Fatalf("%d packets wait", n)
		}
	})
}

// feeder acts as the carrier and, until the program runs, as the REPL.
type feeder struct {
	t   *testing.T
	d   *Driver
	now int64
}

// drain handles the output. It checks each write and reports it as written.
func (f *feeder) drain() (written []byte) {
	for outs := f.d.Take(); len(outs) > 0; outs = f.d.Take() {
		writes := 0
		for _, o := range outs {
			if o.Write == nil {
				continue
			}
			if writes++; !permitted(o.Write.Data) || writes > 1 {
				f.t.Fatalf("it sends %q", o.Write.Data)
			}
			written = o.Write.Data
		}
		if writes > 0 {
			f.d.Event(f.now, driver.Event{Kind: driver.Written, Link: Main})
		}
	}
	return written
}

// answer answers the lines that boot the program.
func (f *feeder) answer() {
	f.drain()
	f.now += breakTime
	f.d.Tick(f.now)
	for n := range bootLines {
		f.drain()
		f.d.Event(f.now, driver.Event{Kind: driver.Notified, Link: Main, Data: fmt.Append(nil, n+1)})
	}
	f.drain()
	f.d.Event(f.now, driver.Event{Kind: driver.Notified, Link: Main, Data: []byte{byteData, saysReady}})
	if !f.d.ready {
		f.t.Fatal("the program was not installed")
	}
	f.drain()
}
