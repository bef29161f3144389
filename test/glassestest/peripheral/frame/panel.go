package frame

import (
	"image"
	"image/color"
	"slices"
)

// panel is the display. Frame draws into a hidden buffer of palette indices, which show swaps with the visible buffer
// and clears (docs: Buffering; brilliantlabsAR/frame-codebase, source/fpga/modules/graphics/display_buffers.sv). Halo
// draws directly.
type panel struct {
	width, height int
	direct        bool // Halo
	hidden, shown []byte
	canvas        *image.RGBA
	palette       [16]color.Color
	lit           bool // whether anything drawn by a client is visible
	dark          bool // switched off by power_save
	shows         int
	shownAt       int64
}

func newPanel(width, height int, direct bool) panel {
	p := panel{width: width, height: height, direct: direct}
	p.clear()
	return p
}

func (p *panel) clear() {
	p.hidden, p.shown = make([]byte, p.width*p.height), make([]byte, p.width*p.height)
	p.canvas = image.NewRGBA(image.Rect(0, 0, p.width, p.height))
	p.fill(p.canvas.Rect, color.Black)
}

func (p *panel) picture() (image.Image, bool) {
	if !p.lit || p.dark {
		return nil, false
	}
	if p.direct {
		picture := *p.canvas
		picture.Pix = slices.Clone(p.canvas.Pix)
		return &picture, true
	}
	picture := image.NewPaletted(image.Rect(0, 0, p.width, p.height), slices.Clone(p.palette[:]))
	copy(picture.Pix, p.shown)
	return picture, true
}

// draw executes a message for the display and returns a description of what is wrong with it, or "".
func (p *panel) draw(m message) (problem string) {
	n := m.numbers()
	switch m.kind {
	case "reset":
		p.clear()
		p.lit, p.dark = false, false
	case "ycbcr":
		p.palette[n[0]] = YCbCr(n[1], n[2], n[3])
	case "rgb":
		p.palette[n[0]] = color.RGBA{byte(n[1]), byte(n[2]), byte(n[3]), 255}
	case "bitmap":
		problem = p.bitmap(n[0], n[1], n[2], n[3], n[4], m.payload)
	case "show":
		p.hidden, p.shown = p.shown, p.hidden
		clear(p.hidden)
		p.lit, p.shownAt = true, m.at
		p.shows++
	case "power":
		p.dark = n[0] == 1
	case "clear":
		p.fill(p.canvas.Rect, rgb(n[0]))
		p.lit, p.shownAt = true, m.at
	case "rect":
		p.fill(image.Rect(n[0], n[1], n[0]+n[2], n[1]+n[3]), rgb(n[4]))
		p.lit, p.shownAt = true, m.at
	}
	if p.direct && m.kind == "bitmap" {
		p.lit, p.shownAt = true, m.at
	}
	return problem
}

func (p *panel) fill(r image.Rectangle, c color.Color) {
	r = r.Intersect(p.canvas.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p.canvas.Set(x, y, c)
		}
	}
}

// bitmap draws pixels that are packed without gaps, with the first one in the upper bits. Index 0 is VOID on a Frame
// and transparent on a Halo; offset is added to the other indices (docs: Sprite Engine; halo: PROTOCOL.md 7.10).
func (p *panel) bitmap(x, y, width, format, offset int, data string) (problem string) {
	if format == 0 {
		return p.direct888(x, y, width, data)
	}
	bits := map[int]int{2: 1, 4: 2, 16: 4}[format]
	perByte := 8 / bits
	pixels := len(data) * perByte
	if x+width > p.width || y+(pixels-perByte)/width >= p.height {
		problem = "a bitmap reaches over the edge of the display"
	}
	for i := range pixels {
		at := image.Pt(x+i%width, y+i/width)
		if !at.In(p.canvas.Rect) {
			continue
		}
		index := int(data[i/perByte]) >> ((perByte - 1 - i%perByte) * bits) & (1<<bits - 1)
		if index > 0 {
			index += offset
		}
		switch {
		case !p.direct:
			p.hidden[at.Y*p.width+at.X] = byte(index & 15)
		case index > 0 && index < 16:
			p.canvas.Set(at.X, at.Y, p.palette[index])
		}
	}
	return problem
}

func (p *panel) direct888(x, y, width int, data string) (problem string) {
	if len(data)%(3*width) != 0 {
		problem = "a bitmap of RGB888 has an incomplete row"
	}
	for i := range len(data) / 3 {
		p.canvas.Set(x+i%width, y+i/width, color.RGBA{data[3*i], data[3*i+1], data[3*i+2], 255})
	}
	return problem
}

func rgb(c int) color.Color { return color.RGBA{byte(c >> 16), byte(c >> 8), byte(c), 255} }

// YCbCr returns the colour that the palette shows for a 4-bit Y and 3-bit Cb and Cr, whose neutral value is 4
// (firmware: display.c).
func YCbCr(y, cb, cr int) color.Color {
	return color.YCbCr{Y: byte(y * 17), Cb: byte(cb << 5), Cr: byte(cr << 5)}
}
