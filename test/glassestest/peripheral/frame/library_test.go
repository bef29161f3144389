package frame

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"slices"
	"testing"
)

func TestDevice_ShowsBitmaps(t *testing.T) {
	c := connect(t, Options{})
	if _, ok := c.d.Picture(); ok {
		t.Error("a picture before the first one")
	}
	c.line(`frame.display.bitmap(2, 3, 8, 2, 0, "\x81\x01")`)
	c.line(`frame.display.bitmap(1, 1, 2, 4, 2, "\x1b")`)
	c.line(`frame.display.bitmap(640, 400, 1, 16, 0, "\x70") print(1)`, "1")
	c.line(`frame.display.bitmap(635, 1, 8, 2, 0, "\x01")`)
	if _, ok := c.d.Picture(); ok {
		t.Error("a picture before show")
	}
	c.line("frame.display.show()")
	want := map[image.Point]uint8{{1, 2}: 1, {8, 2}: 1, {8, 3}: 1, {1, 0}: 3, {0, 1}: 4, {1, 1}: 5, {639, 399}: 7}
	check := func(want map[image.Point]uint8) {
		t.Helper()
		picture, ok := c.d.Picture()
		if !ok {
			t.Fatal("no picture")
		}
		p := picture.(*image.Paletted)
		for i, got := range p.Pix {
			if at := image.Pt(i%640, i/640); got != want[at] {
				t.Errorf("pixel %v has index %d, want %d", at, got, want[at])
			}
		}
	}
	check(want)
	c.line("frame.display.show()") // clears the buffer for the next picture
	check(nil)
	c.line("frame.display.show()")
	check(nil)
	c.line("frame.display.power_save(true)")
	if _, ok := c.d.Picture(); ok {
		t.Error("a picture although the display is off")
	}
	c.line("frame.display.power_save(false)")
	check(nil)
	c.violations("reaches over the edge")
}

func TestDevice_AssignsColours(t *testing.T) {
	c := connect(t, Options{})
	c.line("frame.display.assign_color_ycbcr('RED', 15, 1, 7)")
	c.line("frame.display.assign_color('WHITE', 0, 0, 0) frame.display.show()")
	picture, _ := c.d.Picture()
	palette := picture.(*image.Paletted).Palette
	for i, want := range map[int]color.Color{3: YCbCr(15, 1, 7), 1: YCbCr(0, 4, 4), 0: YCbCr(0, 4, 4), 2: YCbCr(7, 4, 4)} {
		if palette[i] != want {
			t.Errorf("colour %d is %v, want %v", i, palette[i], want)
		}
	}
	c.fails("frame.display.assign_color_ycbcr(3, 15, 1, 7)", "Invalid color name")
	c.fails("frame.display.assign_color_ycbcr('RED', 16, 1, 7)", "Y component must be between 0 and 15")
	c.fails("frame.display.assign_color('RED', 0, 256, 7)", "green component")
}

func TestDevice_RefusesBitmapsOutOfRange(t *testing.T) {
	c := connect(t, Options{})
	for args, text := range map[string]string{
		"0, 1, 8, 2, 0, 'a'":   "x_position must be between 1 and 640",
		"1, 401, 8, 2, 0, 'a'": "y_position must be between 1 and 400",
		"1, 1, 641, 2, 0, 'a'": "width must be between 1 and 640",
		"1, 1, 8, 3, 0, 'a'":   "total_colors must be either 2, 4 or 16",
		"1, 1, 8, 2, 16, 'a'":  "palette_offset must be between 0 and 15",
		"1, 1, 8, 2, 0":        "string expected",
		"1, 1, 8.5, 2, 0, 'a'": "number expected",
	} {
		c.fails("frame.display.bitmap("+args+")", text)
	}
}

// The test vector is from firmware: tests/test_compression.py.
func TestDevice_Decompresses(t *testing.T) {
	c := connect(t, Options{})
	c.line("frame.compression.process_function(function(d) print(d) end)")
	c.line("frame.bluetooth.receive_callback(function(d) frame.compression.decompress(d, 1024) end)")
	compressed := "\x04\x22\x4d\x18\x64\x40\xa7\x6f\x00\x00\x00\xf5\x3d\x48\x65\x6c\x6c\x6f\x21\x20\x49\x20\x77\x61\x73" +
		"\x20\x73\x6f\x6d\x65\x20\x63\x6f\x6d\x70\x72\x65\x73\x73\x65\x64\x20\x64\x61\x74\x61\x2e\x20\x49\x6e\x20\x74\x68" +
		"\x69\x73\x20\x63\x61\x73\x65\x2c\x20\x73\x74\x72\x69\x6e\x67\x73\x20\x61\x72\x65\x6e\x27\x74\x20\x70\x61\x72\x74" +
		"\x69\x63\x75\x6c\x61\x72\x6c\x79\x3b\x00\xf1\x01\x69\x62\x6c\x65\x2c\x20\x62\x75\x74\x20\x73\x70\x72\x69\x74\x65" +
		"\x49\x00\xa0\x20\x77\x6f\x75\x6c\x64\x20\x62\x65\x2e\x00\x00\x00\x00\x5f\xd0\xa3\x47"
	c.line("\x01"+compressed, "Hello! I was some compressed data. In this case, strings aren't particularly "+
		"compressible, but sprite data would be.")
	c.line("while true do frame.sleep(1) end")
	c.line("\x01"+compressed[:40], "[string \"frame.bluetooth.receive_callback(function(d) ...\"]:1: decompression failed")
	c.violations()
}

func TestDevice_TakesPhotosAndHears(t *testing.T) {
	c := connect(t, Options{})
	c.d.Photograph(0, []byte("\xff\xd8photo\xff\xd9"), 250)
	c.line("frame.camera.capture{resolution = 720, quality = 'LOW'} print(frame.camera.image_ready())", "false")
	c.now += 200
	c.line("print(frame.camera.image_ready())", "true")
	c.line("frame.bluetooth.send(frame.camera.read(6))", "\x01\xff\xd8phot")
	c.line("frame.bluetooth.send(frame.camera.read(6))", "\x01o\xff\xd9")
	c.line("print(frame.camera.read(6))", "nil")
	if p := c.d.Photos(); len(p) != 1 || p[0].Resolution != 720 || p[0].Quality != "LOW" {
		t.Errorf("photos %+v", p)
	}
	c.fails("frame.camera.capture{resolution = 101}", "multiple of 2 between 100 and 720")
	c.d.Speak(c.now, bytes.Repeat([]byte{1, 2}, 1000))
	c.line("frame.microphone.start{sample_rate = 16000, bit_depth = 16}")
	if c.d.Microphone() != (Microphone{16000, 16}) {
		t.Errorf("microphone %+v", c.d.Microphone())
	}
	c.line("d = frame.microphone.read(512) print(#d .. ' ' .. d:byte(1) .. d:byte(2))", "512 12")
	c.line("frame.microphone.start{} print(#frame.microphone.read(4))", "0") // eight bits at 8 kHz
	c.line("d = frame.microphone.read(512) print(#d .. ' ' .. d:byte(1))", "512 2")
	c.line("frame.microphone.stop() frame.microphone.read(512)")
	c.fails("frame.microphone.read(243)", "must be positive and even")
	c.line("print(frame.microphone.read(512))", "nil")
}

func TestDevice_FeelsTapsAndDirection(t *testing.T) {
	c := connect(t, Options{})
	c.d.Tap(c.now, "single")
	c.line("frame.imu.tap_callback(function(k) print('tap ' .. tostring(k)) end)")
	c.d.Tap(c.now, "single")
	if got := c.wait(15); !slices.Equal(got, []string{"tap nil"}) {
		t.Errorf("a tap led to %q", got)
	}
	c.d.Direction(c.now, 12.5, -3)
	c.now += 20
	c.line("local d = frame.imu.direction() print(d.pitch .. ' ' .. d.roll)", "12.5 -3")
	c.d.Battery(c.now, 9, false)
	c.line("print(frame.battery_level())", "9.0")
	c.line("print(type(frame.imu.raw().compass.x))", "number")
	c.line("frame.time.utc(1698756584) frame.sleep(0.05) print(math.floor(frame.time.utc()))", "1698756584")
}

func ExampleYCbCr() {
	r, g, b, _ := YCbCr(15, 4, 4).RGBA()
	fmt.Println(r>>8, g>>8, b>>8)
	// Output: 255 255 255
}
