package panelcheck

import (
	"image"
	"image/color"
	"image/draw"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// edge is the border width of a test picture in pixels.
const edge = 2

// Picture returns a picture with which the user can check how a panel shows pictures. It contains an arrow that points
// up, a border on all four sides, a lit square on the left, and a dark square in a broad lit frame on the right. On a
// panel that swaps light and dark, the right square looks lit. rows is the height of the panel; 0 means the model's
// height.
func Picture(m glasses.DeviceModel, rows int) *image.NRGBA {
	size := render.Area(m).Size()
	if rows > 0 {
		size.Y = min(size.Y, rows)
	}
	img := image.NewNRGBA(image.Rectangle{Max: size})
	fill := func(r image.Rectangle, lit bool) {
		level := color.NRGBA{A: 0xFF}
		if lit {
			level.R, level.G, level.B = 0xFF, 0xFF, 0xFF
		}
		draw.Draw(img, r, image.NewUniform(level), image.Point{}, draw.Src)
	}
	fill(img.Rect, true)
	fill(img.Rect.Inset(edge), false)
	side, middle := min(size.X, size.Y)/3, size.Div(2)
	square := image.Rect(0, 0, side, side).Add(image.Pt(-side/2, middle.Y-side/2))
	fill(square.Add(image.Pt(size.X/6, 0)), true)
	right := square.Add(image.Pt(size.X-size.X/6, 0))
	fill(right, true)
	fill(right.Inset(side/4), false)
	top := middle.Y - side
	for y := range side { // the head of the arrow
		fill(image.Rect(middle.X-y*2/3-1, top+y, middle.X+y*2/3+1, top+y+1), true)
	}
	fill(image.Rect(middle.X-side/6, top+side, middle.X+side/6, top+2*side), true)
	return img
}
