package fakebluez_test

import (
	_ "embed"
	"image"
	"testing"

	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/frame"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

//go:embed testdata/glasses.py
var glassesScript string

//go:embed testdata/g1.py
var g1Script string

//go:embed testdata/frame.py
var frameScript string

// Bleak connects both arms of the emulated Even G1 with the vendor's handshake and shows a complete picture, so the
// emulator does not only accept our own driver.
func TestRadio_LetsBleakDriveEvenG1(t *testing.T) {
	python := needBleak(t)
	pair := g1.New(g1.Options{Channel: 27})
	r := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{pair.Left(), pair.Right()}, MTU: 251})
	run := startBleak(t, r, python, glassesScript+g1Script, g1.WriteUUID, g1.NotifyUUID)
	var shown [2]image.Image
	run.await("right checksum accepted")
	r.Emulate(func(now int64) {
		for _, side := range []g1.Side{g1.Left, g1.Right} {
			if picture, ok := pair.Picture(side); ok {
				shown[side] = picture
			}
		}
		pair.Tap(now, g1.Right)
	})
	run.want("left init 4dc9", "right init 4dc9",
		"left heartbeat 250600010401", "left battery 80", "right heartbeat 250600010401", "right battery 80",
		"left end 20c9", "left checksum accepted", "right end 20c9", "right checksum accepted",
		"right event f501", "left exit 18c9", "right exit 18c9")
	for side, picture := range shown {
		if picture == nil {
			t.Fatalf("the arm %v showed no picture", g1.Side(side))
		}
		for y := range g1.Height {
			for x := range g1.Width {
				if red, _, _, _ := picture.At(x, y).RGBA(); (red != 0) != (x%7 == 0 || y%5 == 0) {
					t.Fatalf("pixel %d, %d of the arm %v is wrong", x, y, g1.Side(side))
				}
			}
		}
	}
	r.Emulate(func(int64) {
		if v := pair.Violations(); len(v) > 0 {
			t.Errorf("the emulated glasses complain: %v", v)
		}
	})
}

// Bleak pairs with the emulated Frame and exchanges data with its Lua.
func TestRadio_LetsBleakDriveFrame(t *testing.T) {
	python := needBleak(t)
	d, err := frame.New(t.Context(), frame.Options{Number: 0x4F, Main: "while true do frame.sleep(0.1) end"})
	if err != nil {
		missing(t, "lua5.4", "lua5.4")
	}
	t.Cleanup(func() { _ = d.Close() })
	r := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{d}, MTU: 247})
	run := startBleak(t, r, python, glassesScript+frameScript, frame.WriteUUID, frame.NotifyUUID)
	run.want("break break signal", "line 16", "callback set",
		`acknowledged b'\x01\x00first'`, `acknowledged b'\x01\x00second'`,
		`error [string "error('no')"]:1: no`, "endless", "break break signal", "shown")
	r.Emulate(func(int64) {
		if v := d.Violations(); len(v) > 0 || d.Shows() != 1 {
			t.Errorf("the emulated Frame showed %d pictures and complains: %v", d.Shows(), v)
		}
	})
}
