// Command panels draws one display tree on every device model with a panel, side by side, for README. It writes a PNG
// to the file given as its argument.
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

const tree = `{"tree":{"type":"column","padding":10,"gap":6,"overflow":"scroll","children":[
 {"type":"row","gap":8,"align":"center","children":[{"type":"icon","icon":"navigation","colour":"#40c4ff"},{"type":"text","text":"Trail to the lake","style":"title"}]},
 {"type":"text","text":"Left at the bridge, 240 m"},
 {"type":"progress","value":62,"colour":"#7ddf64"},
 {"type":"row","gap":8,"children":[{"type":"button","id":"next","text":"Next"},{"type":"button","id":"photo","text":"Photo"}]},
 {"type":"text","text":"Озеро · λίμνη · 12:45","style":"caption","colour":"#ffd166"}]}}`

const (
	margin = 24
	label  = 40
)

// columns lists the device models in the order of the picture.
var columns = [][]string{{"rayban_display", "even_g1"}, {"brilliant_frame", "even_g2"},
	{"android_xr_display", "brilliant_halo"}}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: panels FILE.png")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "panels:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	show, err := glasses.ParseShow([]byte(tree))
	if err != nil {
		return err
	}
	sheet := image.NewNRGBA(image.Rect(0, 0, 1800, 900))
	draw.Draw(sheet, sheet.Bounds(), image.NewUniform(color.NRGBA{38, 42, 48, 255}), image.Point{}, draw.Src)
	x, bottom := margin, 0
	for _, column := range columns {
		y, wide := margin, 0
		for _, id := range column {
			model, _ := glasses.Model(id)
			place(sheet, x, y, caption(model))
			y += label
			picture := render.Draw(model, render.Clamp(model, glasses.View{Tree: &show.Tree}))
			place(sheet, x, y, picture)
			y += picture.Bounds().Dy() + margin
			wide = max(wide, picture.Bounds().Dx(), 300)
		}
		x += wide + margin
		bottom = max(bottom, y)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := png.Encode(out, sheet.SubImage(image.Rect(0, 0, x, bottom))); err != nil {
		return err
	}
	return out.Close()
}

func place(sheet *image.NRGBA, x, y int, picture *image.NRGBA) {
	draw.Draw(sheet, picture.Bounds().Add(image.Pt(x, y)), picture, image.Point{}, draw.Over)
}

// caption draws the caption with the renderer on a separate panel. Black becomes transparent, as on real glasses.
func caption(m glasses.DeviceModel) *image.NRGBA {
	strip := glasses.DeviceModel{Panel: &glasses.Panel{Width: 600, Height: label, Shape: glasses.ShapeRect,
		Colour: glasses.ColourRGB, Bits: 24}}
	text := fmt.Sprintf("%s · %d × %d", m.Name, m.Panel.Width, m.Panel.Height)
	picture := render.Draw(strip, glasses.View{Tree: &glasses.Node{Type: glasses.NodeText, Text: text,
		Style: glasses.StyleBody}})
	for i := 0; i < len(picture.Pix); i += 4 {
		picture.Pix[i+3] = max(picture.Pix[i], picture.Pix[i+1], picture.Pix[i+2])
	}
	return picture
}
