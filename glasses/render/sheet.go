package render

import (
	"fmt"
	"image"
	"image/draw"

	"github.com/service-dev/service/glasses"
)

// Dimensions of a contact sheet, in pixels.
const (
	sheetMargin  = 16
	sheetCaption = 36
	sheetWidth   = 1300 // width of a row of panels
)

// Sheet returns a contact sheet that shows a new tree on each model with a panel. Captions contain the name of the
// model and the number of findings.
func Sheet(models []glasses.DeviceModel, tree *glasses.Node) *image.NRGBA {
	type panel struct {
		picture *image.NRGBA
		caption *image.NRGBA
		at      image.Point
	}
	var panels []panel
	x, y, row := sheetMargin, sheetMargin, 0
	size := image.Pt(2*sheetMargin, 2*sheetMargin)
	for _, m := range models {
		v := Clamp(m, glasses.View{Tree: tree})
		picture := Draw(m, v)
		if picture == nil {
			continue
		}
		w, h := picture.Rect.Dx(), picture.Rect.Dy()
		if x > sheetMargin && x+w > sheetWidth {
			x, y, row = sheetMargin, y+row, 0
		}
		words := fmt.Sprintf("%s: %d findings", m.ID, len(Fit(m, v)))
		panels = append(panels, panel{picture, sheetLabel(words, w), image.Pt(x, y)})
		size.X, size.Y = max(size.X, x+w+sheetMargin), max(size.Y, y+sheetCaption+h+sheetMargin)
		x, row = x+w+sheetMargin, max(row, sheetCaption+h+sheetMargin)
	}
	sheet := image.NewNRGBA(image.Rectangle{Max: size})
	for i := 0; i < len(sheet.Pix); i += 4 {
		copy(sheet.Pix[i:], []byte{0x26, 0x2a, 0x30, 0xff})
	}
	for _, p := range panels {
		for _, img := range []*image.NRGBA{p.caption, p.picture} {
			draw.Draw(sheet, img.Rect.Add(p.at), img, image.Point{}, draw.Src)
			p.at.Y += img.Rect.Dy()
		}
	}
	return sheet
}

// sheetLabel draws a caption that is w pixels wide.
func sheetLabel(words string, w int) *image.NRGBA {
	strip := glasses.DeviceModel{Panel: &glasses.Panel{Width: w, Height: sheetCaption, Colour: glasses.ColourRGB}}
	return Draw(strip, glasses.View{Focus: -1, Tree: &glasses.Node{Type: glasses.NodeText, Text: words}})
}
