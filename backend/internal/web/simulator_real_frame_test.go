package web

import (
	"bytes"
	"encoding/json"
	"image"
	"image/jpeg"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/frame"
)

// A Frame is one peripheral, which the browser pairs with, and it has a camera. The owner's own program runs again when
// the page disconnects.
func TestRealGlasses_OneChoiceForAFrame(t *testing.T) {
	const greeting = `{"tree":{"type":"text","text":"Hello"}}`
	d, err := frame.New(t.Context(), frame.Options{Number: 0x4F,
		Main: "frame.display.bitmap(1, 1, 8, 2, 1, string.rep('\\255', 8)) frame.display.show()"})
	if err != nil {
		missing(t, "lua5.4")
	}
	t.Cleanup(func() { _ = d.Close() })
	radio := newRadio(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{d}, MTU: 247, PairOnDemand: true})
	s := realTest{pageTest: newPageTest(t, "brilliant_frame"), radio: radio}
	s.person = chromium.NewChooser(s.ctx, t)
	s.see(`!document.querySelector("#real-begin").disabled && document.querySelector("#real-begin").checkVisibility()`)
	s.do(chromium.Press("#real-begin"))
	s.choose("main", "Frame 4F")
	s.see(`document.querySelectorAll("#real-links .dot.on").length === 1`)
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(greeting))); !r.OK {
		t.Fatalf("display.show: %+v", r.Error)
	}
	shows := 0
	radio.Emulate(func(now int64) {
		if got, _ := d.Picture(); !isLit(got, drawn(t, "brilliant_frame", greeting)) {
			t.Error("the Frame shows another picture than the simulator")
		}
		shows = d.Shows()
		d.Photograph(now, squareJPEG(t), 100)
	})
	photo := s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})
	if img, err := jpeg.Decode(bytes.NewReader(s.next(glasses.TypeMedia, photo).body)); err != nil ||
		img.Bounds().Dx() != 320 {
		t.Errorf("photo of the Frame: %v, want a JPEG 320 pixels wide", err)
	}
	s.do(chromium.Press("#real-end"))
	s.see(`document.querySelector("#real-begin").checkVisibility()`)
	radio.Emulate(func(int64) {
		if v := d.Violations(); len(v) > 0 || d.Shows() < shows+2 {
			t.Errorf("the page broke the protocol (%v), or the owner's program does not run: %d pictures after %d",
				v, d.Shows(), shows)
		}
	})
}

func squareJPEG(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, 320, 320)), nil); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
