package glassesapp

import (
	"image"
	"testing"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/driver/kinds"
	"github.com/service-dev/service/proto/glasses/render"
)

// The picture that is drawn reaches the panel of each model with its own pixels: nothing is scaled or moved.
func TestDrawTest_IsShownPixelByPixel(t *testing.T) {
	for _, id := range kinds.DeviceModels() {
		m, _ := glasses.Model(id)
		area := render.Area(m)
		for _, rows := range []int{0, area.Dy() - 1} {
			img := DrawTest(m, rows)
			show, err := Picture(img, "test")
			if err != nil {
				t.Fatal(err)
			}
			shown := render.Draw(m, glasses.View{Tree: &show.Tree, Focus: -1})
			wrong := 0
			for y := range img.Rect.Dy() {
				for x := range img.Rect.Dx() {
					r, g, b, _ := shown.At(area.Min.X+x, area.Min.Y+y).RGBA()
					if isLit := max(r, g, b) > 0x7FFF; isLit != (img.GrayAt(x, y).Y != 0) {
						wrong++
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%s with %d rows: %d pixels differ", id, rows, wrong)
			}
			for _, corner := range []image.Point{{}, {img.Rect.Dx() - 1, img.Rect.Dy() - 1}} {
				if img.GrayAt(corner.X, corner.Y).Y == 0 {
					t.Errorf("%s with %d rows: the border is missing at %v", id, rows, corner)
				}
			}
		}
	}
}
