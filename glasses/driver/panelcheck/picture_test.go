package panelcheck

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/glasses/render"
)

// As an image node, the picture is shown pixel by pixel on each model, without being scaled or moved.
func TestPicture_IsShownPixelByPixel(t *testing.T) {
	for _, id := range kinds.DeviceModels() {
		m, _ := glasses.Model(id)
		area := render.Area(m)
		for _, rows := range []int{0, area.Dy() - 1} {
			img := Picture(m, rows)
			var file bytes.Buffer
			if err := png.Encode(&file, img); err != nil {
				t.Fatal(err)
			}
			node := glasses.Node{Type: glasses.NodeImage, Data: base64.StdEncoding.EncodeToString(file.Bytes())}
			shown := render.Draw(m, glasses.View{Tree: &node, Focus: -1})
			wrong := 0
			for y := range img.Rect.Dy() {
				for x := range img.Rect.Dx() {
					r, g, b, _ := shown.At(area.Min.X+x, area.Min.Y+y).RGBA()
					if isLit := max(r, g, b) > 0x7FFF; isLit != (img.NRGBAAt(x, y).R != 0) {
						wrong++
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%s with %d rows: %d pixels differ", id, rows, wrong)
			}
			for _, corner := range []image.Point{{}, {img.Rect.Dx() - 1, img.Rect.Dy() - 1}} {
				if img.NRGBAAt(corner.X, corner.Y).R == 0 {
					t.Errorf("%s with %d rows: the border is missing at %v", id, rows, corner)
				}
			}
		}
	}
}
