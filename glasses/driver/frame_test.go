package driver_test

import (
	"fmt"
	"image"
	"image/color"
	"os"
	"os/exec"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/frame"
	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/test/glassestest/peripheral"
	emulatedframe "github.com/service-dev/service/test/glassestest/peripheral/frame"
)

// The device models of Brilliant Labs.
const (
	modelFrame = "brilliant_frame"
	modelHalo  = "brilliant_halo"
)

// frameAir connects the driver to an emulated Frame or Halo.
func frameAir(t *testing.T, model string, o emulatedframe.Options) (*air, *emulatedframe.Device) {
	t.Helper()
	if _, err := exec.LookPath("lua5.4"); err != nil && os.Getenv("CI") == "" {
		t.Skip("SKIPPED, lua5.4 is missing: apt-get install lua5.4")
	}
	o.Halo = model == modelHalo
	d, err := emulatedframe.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := kinds.Of(model)
	a := newAir(t, model, kind.New(driver.Panel{}), map[string]peripheral.Peripheral{frame.Main: d})
	if o.Halo {
		a.mtu = d.MaxMTU()
	}
	t.Cleanup(func() {
		_ = d.Close()
		v := d.Violations()
		if a.lossy {
			v = d.Grave() // repeated data may collide with the original
		}
		if len(v) > 0 {
			t.Errorf("the driver broke the protocol: %.500q", v)
		}
	})
	return a, d
}

// wantFramePicture checks the picture on the panel; nil means a dark panel.
func wantFramePicture(t *testing.T, d *emulatedframe.Device, want *image.NRGBA) {
	t.Helper()
	if err := sameColours(d, want); err != nil {
		t.Error(err)
	}
}

func sameColours(d *emulatedframe.Device, want *image.NRGBA) error {
	got, ok := d.Picture()
	if !ok {
		if want == nil {
			return nil
		}
		return fmt.Errorf("the panel shows no picture")
	}
	if want == nil {
		want = image.NewNRGBA(got.Bounds())
	}
	palette := render.FramePalette()
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			w := want.NRGBAAt(x, y)
			r, g, b, _ := got.At(x, y).RGBA()
			c := color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), w.A}
			if p, isFrame := got.(*image.Paletted); isFrame {
				rgb := palette[p.ColorIndexAt(x, y)]
				c = color.NRGBA{rgb[0], rgb[1], rgb[2], w.A}
			}
			if c != w {
				return fmt.Errorf("pixel %d,%d is %v, want %v", x, y, c, w)
			}
		}
	}
	return nil
}

// bothModels runs a test for a Frame and a Halo.
func bothModels(t *testing.T, test func(t *testing.T, model string)) {
	for _, model := range []string{modelFrame, modelHalo} {
		t.Run(model, func(t *testing.T) { test(t, model) })
	}
}

func TestFrame_ShowsWhatTheSimulatorShows(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{Main: "while true do frame.sleep(0.1) end"})
		a.waitConnected()
		for _, show := range []glasses.Show{tree("Hello from the air"), tree("Another one")} {
			if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
				t.Fatalf("got %+v, want ok; %v", r.Error, a.notes)
			}
			wantFramePicture(t, d, drawn(t, model, show))
		}
		if r := a.wait(a.send(glasses.TypeDisplayClear, struct{}{})); !r.OK {
			t.Fatalf("clear: got %+v, want ok", r.Error)
		}
		wantFramePicture(t, d, nil)
	})
}
