package frame

import (
	"encoding/binary"
	"image"
	"slices"

	"github.com/service-dev/service/glasses/render"
)

const (
	// tileHeader is the number of bytes before the colours and pixels in the arguments of opTile: x, y, width and
	// height with 16 bits each, the format, and the palette offset (Frame) or the number of colours (Halo).
	tileHeader = 10
	// step is a divisor of the width of every tile, so that a row consists of whole bytes in every format. Pixels are
	// packed without gaps, and padding after the last one would be drawn below the tile.
	step = 8
)

// colour is the red, green and blue of a pixel.
type colour [3]byte

// tiler divides a picture into tiles, each of which fits in one packet.
type tiler struct {
	img, base *image.NRGBA // base is the picture that the panel shows; nil for a dark panel
	room      int          // bytes in a packet
	halo      bool
	tiles     [][]byte
}

// tiles returns the arguments of opTile for all pixels of img that differ from base.
func tiles(img, base *image.NRGBA, room int, halo bool) [][]byte {
	t := &tiler{img: img, base: base, room: room, halo: halo}
	t.add(img.Rect)
	return t.tiles
}

func at(img *image.NRGBA, x, y int) colour {
	i := img.PixOffset(x, y)
	return colour(img.Pix[i : i+3])
}

func (t *tiler) differs(x, y int) bool {
	if t.base == nil {
		return at(t.img, x, y) != colour{}
	}
	return at(t.img, x, y) != at(t.base, x, y)
}

// add adds tiles that cover r.
func (t *tiler) add(r image.Rectangle) {
	if r = t.shrink(r); r.Empty() {
		return
	}
	f := t.format(r)
	if f.size(r) <= t.room {
		t.tiles = append(t.tiles, t.encode(r, f))
		return
	}
	for _, part := range t.divide(r, f) {
		t.add(part)
	}
}

// shrink returns the smallest rectangle that contains all differing pixels of r.
func (t *tiler) shrink(r image.Rectangle) image.Rectangle {
	var all image.Rectangle
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x += step {
			for i := range step {
				if t.differs(x+i, y) {
					all = all.Union(image.Rect(x, y, x+step, y+1))
					break
				}
			}
		}
	}
	return all
}

// format describes how the pixels of a tile are encoded. total is the number of colours (0 for RGB888), and the other
// fields describe the colours of the indices.
type format struct {
	total, bits int
	offset      int      // Frame: added to every index except 0
	colours     []colour // Halo: index 0 is the background, which is drawn first
}

func (f format) size(r image.Rectangle) int {
	return tileHeader + 3*len(f.colours) + r.Dx()*r.Dy()*f.bits/8
}

// format returns the smallest format for the colours of a tile.
func (t *tiler) format(r image.Rectangle) format {
	var found []colour
	for y := r.Min.Y; y < r.Max.Y && len(found) <= 16; y++ {
		for x := r.Min.X; x < r.Max.X && len(found) <= 16; x++ {
			if c := at(t.img, x, y); !slices.Contains(found, c) {
				found = append(found, c)
			}
		}
	}
	least := 0 // lowest index in a Frame's palette
	span := len(found)
	if !t.halo {
		least, span = spanOf(found)
	}
	f := format{offset: max(least-1, 0), colours: found}
	switch {
	case span <= 2:
		f.total, f.bits = 2, 1
	case span <= 4:
		f.total, f.bits = 4, 2
	case span <= 16:
		f.total, f.bits = 16, 4
	default:
		f.total, f.bits, f.colours = 0, 24, nil
	}
	if !t.halo {
		f.colours = nil
		if f.total == 16 {
			f.offset = 0
		}
	}
	return f
}

// spanOf returns the lowest index of colours other than 0, and the number of indices from there to the highest, plus
// one for the index 0.
func spanOf(colours []colour) (least, span int) {
	greatest := 0
	for _, c := range colours {
		if i := paletteIndex(c); i > 0 {
			greatest = max(greatest, i)
			if least == 0 || i < least {
				least = i
			}
		}
	}
	return least, greatest - max(least-1, 0) + 1
}

var framePalette = render.FramePalette()

// paletteIndex returns the palette index of a colour that package render draws on a Frame.
func paletteIndex(c colour) int { return max(slices.Index(framePalette[:], [3]byte(c)), 0) }

// maxColumns is the maximum number of columns into which a part is divided.
const maxColumns = 8

// divide divides a part whose pixels do not fit in one packet. It keeps the number of packets low.
func (t *tiler) divide(r image.Rectangle, f format) (parts []image.Rectangle) {
	bits, room := f.bits, t.room-tileHeader-3*len(f.colours)
	if f.total == 0 { // smaller parts may have fewer colours
		bits, room = 4, t.room-tileHeader-3*16
	}
	units := r.Dx() / step
	var width, height int
	best := 0
	for n := 1; n <= min(units, maxColumns); n++ {
		w := (units + n - 1) / n
		h := room / (w * bits) // a unit of pixels has as many bytes per row as a pixel has bits
		if h == 0 {
			continue
		}
		if cost := n * ((r.Dy() + h - 1) / h); best == 0 || cost < best {
			best, width, height = cost, w*step, h
		}
	}
	if width >= r.Dx() && height >= r.Dy() {
		if height = (r.Dy() + 1) / 2; r.Dy() == 1 {
			width, height = (units+1)/2*step, 1
		}
	}
	for y := r.Min.Y; y < r.Max.Y; y += height {
		for x := r.Min.X; x < r.Max.X; x += width {
			parts = append(parts, image.Rect(x, y, x+width, y+height).Intersect(r))
		}
	}
	return parts
}

func (t *tiler) encode(r image.Rectangle, f format) []byte {
	out := make([]byte, 0, f.size(r))
	for _, v := range []int{r.Min.X + 1, r.Min.Y + 1, r.Dx(), r.Dy()} {
		out = binary.BigEndian.AppendUint16(out, uint16(v))
	}
	n := f.offset
	if t.halo {
		n = len(f.colours)
	}
	out = append(out, byte(f.total), byte(n))
	for _, c := range f.colours {
		out = append(out, c[:]...)
	}
	pixels, n := 0, 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := at(t.img, x, y)
			if f.total == 0 {
				out = append(out, c[:]...)
				continue
			}
			pixels = pixels<<f.bits | t.index(c, f)
			if n += f.bits; n == 8 {
				out = append(out, byte(pixels))
				pixels, n = 0, 0
			}
		}
	}
	return out
}

func (t *tiler) index(c colour, f format) int {
	if t.halo {
		return slices.Index(f.colours, c)
	}
	if i := paletteIndex(c); i > 0 {
		return i - f.offset
	}
	return 0
}
