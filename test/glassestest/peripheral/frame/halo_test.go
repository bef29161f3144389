package frame

import (
	"errors"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

func (c *client) pixel(x, y int, want color.RGBA) {
	c.t.Helper()
	picture, ok := c.d.Picture()
	if !ok {
		c.t.Fatal("no picture")
	}
	if got := picture.(*image.RGBA).RGBAAt(x, y); got != want {
		c.t.Errorf("pixel %d, %d is %v, want %v", x, y, got, want)
	}
}

func TestHalo_DrawsDirectly(t *testing.T) {
	c := connect(t, Options{Halo: true})
	c.line("print(frame.HARDWARE_VERSION .. frame.display.width())", "halo256\n")
	c.line("frame.display.clear(0x102030)")
	black, grey, red := color.RGBA{A: 255}, color.RGBA{0x10, 0x20, 0x30, 255}, color.RGBA{255, 0, 0, 255}
	c.pixel(0, 0, grey)
	c.line(`frame.display.bitmap(1, 1, 2, 0, 0, "\255\0\0\0\0\0")`)
	c.pixel(0, 0, red)
	c.pixel(1, 0, black)
	c.line("frame.display.assign_color(5, 0, 0, 9)")
	c.line(`frame.display.bitmap(1, 1, 2, 16, 4, "\x01")`) // index 0 is transparent
	c.pixel(0, 0, red)
	c.pixel(1, 0, color.RGBA{0, 0, 9, 255})
	c.line("frame.display.rect(255, 255, 9, 9, 0xFF0000, true) frame.display.set_pixel(3, 1, 0xFF0000)")
	c.pixel(255, 255, red)
	c.pixel(2, 0, red)
	c.line("frame.display.show()")
	c.pixel(2, 0, red)
	c.violations()
	c.line("frame.display.brightness(20)")
	c.line("frame.microphone.gain(3)")
	c.send("frame.ship_mode()")
	if n := len(c.d.Grave()); n != 2 {
		t.Errorf("%d grave violations, want 2", n)
	}
	c.wait(100)
	if n := len(c.d.Grave()); n != 3 {
		t.Errorf("%d grave violations, want 3", n)
	}
}

func TestHalo_QueuesData(t *testing.T) {
	c := connect(t, Options{Halo: true})
	c.line("n = 0 frame.bluetooth.receive_callback(function(d) n = n + #d end)")
	for range 10 {
		c.send("\x01" + strings.Repeat("x", 100))
	}
	c.wait(20)
	c.line("print(n)", "1000\n")
	full := 0
	for range 50 {
		if err := c.d.Write(c.now, WriteUUID, []byte("\x01"+strings.Repeat("x", 99)), true); errors.Is(err, ErrResources) {
			full++
		}
	}
	if full != 10 { // 40 frames of 101 bytes fit, and the 41st would end beyond 4096
		t.Errorf("%d of 50 writes were refused, want 10", full)
	}
	c.violations()
}

func TestHalo_InterruptsAndRestarts(t *testing.T) {
	c := connect(t, Options{Halo: true})
	c.line("x = 1 while true do frame.sleep(1) end")
	c.line("\x03", "interrupted")
	c.line("print(x)", "1\n")
	c.line("while true do pcall(frame.sleep, 1) end")
	c.line("\x04") // immediately, although a program is running
	c.line("print(x)", "nil\n")
}

func TestHalo_FeelsTapsAndButton(t *testing.T) {
	c := connect(t, Options{Halo: true})
	c.line("frame.imu.tap_callback(function(k) print(k) end) frame.button.long(function() print('long') end)")
	c.d.Tap(c.now, "double")
	if got := c.wait(20); !slices.Equal(got, []string{"double\n"}) {
		t.Errorf("a tap led to %q", got)
	}
	c.d.Button(c.now, "single")
	c.d.Button(c.now, "long")
	if got := c.wait(20); !slices.Equal(got, []string{"long\n"}) {
		t.Errorf("the button led to %q", got)
	}
	c.fails("frame.camera.capture{}", "camera is asleep")
	c.fails("frame.camera.power_save(false) frame.camera.capture{resolution = 320}", "not supported")
}

func TestHalo_PairsInItsWindow(t *testing.T) {
	d := start(t, Options{Halo: true, BondedElsewhere: true})
	if err := d.Connect(0, 517); err != nil || d.Connected() {
		t.Fatalf("an unknown client is connected: %v, %v", d.Connected(), err)
	}
	if out := d.Take(); len(out) != 1 || !out[0].Dropped {
		t.Errorf("output %+v", out)
	}
	d.OpenPairing(1000)
	if err := errors.Join(d.Connect(60_999, 517), d.Pair(60_999)); err != nil || d.Payload() != 509 {
		t.Fatalf("connection in the window: %v, payload %d", err, d.Payload())
	}
	d.Disconnect(60_999)
	if err := d.Connect(60_999, 517); err != nil || !d.Connected() {
		t.Errorf("the window is still open after pairing: %v", err)
	}
	d.OpenPairing(70_000)
	if err := d.Connect(70_001, 517); err != nil || d.Connected() {
		t.Errorf("a known client is connected during the window: %v", err)
	}
	if err := d.Connect(130_000, 517); err != nil || !d.Connected() {
		t.Errorf("a known client is refused after the window: %v", err)
	}
	d.Forget()
	d.Disconnect(130_001)
	if err := d.Connect(130_002, 517); err != nil || d.Connected() {
		t.Errorf("a forgotten client is connected: %v", err)
	}
	d.Tick(200_000)
}

func TestHalo_ReportsBattery(t *testing.T) {
	c := connect(t, Options{Halo: true})
	for _, uuid := range []string{BatteryUUID, PowerUUID} {
		if err := c.d.Subscribe(0, uuid, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		percent  int
		charging bool
		power    byte
	}{{50, false, 0b10_10_11_11}, {50, true, 0b10_11_10_11}, {9, false, 0b11_10_11_11}} {
		c.d.Battery(c.now, test.percent, test.charging)
		level, err1 := c.d.Read(c.now, BatteryUUID)
		power, err2 := c.d.Read(c.now, PowerUUID)
		if err := errors.Join(err1, err2); err != nil || int(level[0]) != test.percent || power[0] != test.power {
			t.Errorf("read %v and %b: %v", level, power, err)
		}
		if got := c.wait(0); !slices.Equal(got, []string{string(level), string(power)}) {
			t.Errorf("notified %q", got)
		}
	}
	if _, err := c.d.Read(0, NotifyUUID); !errors.Is(err, peripheral.ErrNotPermitted) {
		t.Errorf("read of the notifying characteristic: %v", err)
	}
	if err := c.d.Write(c.now, UpdateUUID, []byte{1}, true); err != nil || len(c.d.Grave()) != 1 {
		t.Errorf("a write to the update service: %v, %d grave violations", err, len(c.d.Grave()))
	}
}

// FuzzDevice_Write splits the input into writes: the ms before each write, the length, and the value.
func FuzzDevice_Write(f *testing.F) {
	f.Add([]byte("\x01\x09print(1)\x20\x0a\x03\x01\x03"))
	f.Add([]byte("\x01\x2eframe.bluetooth.receive_callback(function() end)\x20\x02\x01a\x00\x02\x01b\x20\x01\x04"))
	f.Add([]byte("\x01\x30frame.display.bitmap(1,1,8,2,0,'abc') frame.show()\x05\x01\x05\x00\x00"))
	f.Add([]byte("\x01\x13while true do end --\x01\x04x=1\n\xff\x02\x01\x01"))
	needLua(f)
	f.Fuzz(func(t *testing.T, input []byte) {
		c := connect(t, Options{Halo: len(input)%2 == 1})
		for len(input) >= 2 {
			at, size := int64(input[0]), int(input[1])
			value := input[2:][:min(size, len(input)-2)]
			input = input[2+len(value):]
			c.now += at
			_ = c.d.Write(c.now, WriteUUID, value, at%2 == 0)
		}
		c.wait(1000)
		if len(c.d.Violations()) > 256 {
			t.Error("a device keeps more violations than its bound")
		}
	})
}
