package render

import (
	"image"
	"slices"
	"sort"

	"github.com/service-dev/service/glasses"
)

// rgb is a colour on a panel.
type rgb [3]uint8

// quantiser maps colours to the colours that a panel can show.
type quantiser struct {
	colour string
	levels int // number of shades of a green panel
}

// framePalette is the default palette of Brilliant Frame. It is from the documentation ("display", names and colours of
// the 16 entries).
var framePalette = [16]rgb{
	{0x00, 0x00, 0x00}, {0xff, 0xff, 0xff}, {0x9d, 0x9d, 0x9d}, {0xbe, 0x26, 0x33},
	{0xe0, 0x6f, 0x8b}, {0x49, 0x3c, 0x2b}, {0xa4, 0x64, 0x22}, {0xeb, 0x89, 0x31},
	{0xf7, 0xe2, 0x6b}, {0x2f, 0x48, 0x4e}, {0x44, 0x89, 0x1a}, {0xa3, 0xce, 0x27},
	{0x1b, 0x26, 0x32}, {0x00, 0x57, 0x84}, {0x31, 0xa2, 0xf2}, {0xb2, 0xdc, 0xef},
}

// FramePalette returns the colours of a panel with a palette, as red, green and blue.
func FramePalette() [16][3]uint8 {
	var list [16][3]uint8
	for i, c := range framePalette {
		list[i] = c
	}
	return list
}

func newQuantiser(p *glasses.Panel) quantiser {
	return quantiser{colour: p.Colour, levels: 1 << min(max(p.Bits, 1), 8)}
}

// ink returns the panel's colour for the #rrggbb colour of text and shapes. An empty colour means white. On one-bit
// panels every colour except the darkest is lit.
func (q quantiser) ink(colour string) rgb {
	c := rgb{0xff, 0xff, 0xff}
	if parsed, ok := glasses.ParseColour(colour); ok {
		c = parsed
	}
	switch q.colour {
	case glasses.ColourGreen:
		v := brightness(c)
		if q.levels == 2 {
			v = 0
			if brightness(c) >= 48 {
				v = 0xff
			}
		}
		return rgb{v, v, v}
	case glasses.ColourPalette:
		return nearest(c)
	}
	return c
}

// cover returns the coverage that the panel shows for a. On a panel without intermediate shades, it is either full or
// zero.
func (q quantiser) cover(a uint8) uint8 {
	if q.colour != glasses.ColourPalette && (q.colour != glasses.ColourGreen || q.levels > 2) {
		return a
	}
	if a >= hardEdge {
		return 0xff
	}
	return 0
}

// hardEdge is the minimum coverage that lights a pixel on a panel without intermediate shades.
const hardEdge = 112

// leastCover returns the minimum coverage that lights a pixel.
func (q quantiser) leastCover() uint8 {
	if q.cover(hardEdge-1) == 0 {
		return hardEdge
	}
	return 1
}

// leastSeen returns the lowest coverage at which ink differs visibly from the ground below it. ok is false if there is
// none.
func (q quantiser) leastSeen(ink, ground rgb) (least uint8, ok bool) {
	a := sort.Search(256, func(a int) bool {
		px := ground
		blend(px[:], ink, q.cover(uint8(a)))
		return q.shown(px) != q.shown(ground)
	})
	return uint8(a), a < 256
}

// shown returns the colour that the panel shows for a colour of the canvas.
func (q quantiser) shown(c rgb) rgb {
	if q.colour != glasses.ColourGreen {
		return c
	}
	return rgb{0, q.shade(c[1]), 0}
}

// shade rounds a brightness to one of the shades of a green panel.
func (q quantiser) shade(v uint8) uint8 {
	top := q.levels - 1
	return uint8((int(v)*top + 127) / 255 * 255 / top)
}

// bayer is the ordered dithering matrix.
var bayer = [4][4]int{{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}}

// picture returns the panel's colour for the pixel x, y of a picture, dithered if the panel has few colours.
func (q quantiser) picture(c rgb, x, y int) rgb {
	threshold := 2*bayer[y&3][x&3] - 15 // -15 to 15, in 32nds of a step
	switch q.colour {
	case glasses.ColourGreen:
		top := q.levels - 1
		v := int(brightness(c))*32*top + threshold*255
		shade := min(max((v+16*255)/(32*255), 0), top)
		v = shade * 255 / top
		return rgb{uint8(v), uint8(v), uint8(v)}
	case glasses.ColourPalette:
		// Colours in the palette or close to an entry are not dithered, so that black stays black.
		own, most := nearest(c), 0
		for k := range c {
			most = max(most, 2*(int(c[k])-int(own[k])), 2*(int(own[k])-int(c[k])))
		}
		for k := range c {
			c[k] = uint8(min(max(int(c[k])+min(max(threshold*2, -most), most), 0), 255))
		}
		return nearest(c)
	}
	return c
}

// finish rounds anti-aliased pixels to the shades of a green panel.
func (q quantiser) finish(img *image.NRGBA) {
	if q.colour != glasses.ColourGreen {
		return
	}
	var shade [256]uint8
	for v := range shade {
		shade[v] = q.shade(uint8(v))
	}
	for i := 0; i < len(img.Pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2] = 0, shade[img.Pix[i+1]], 0
	}
}

// LostColours returns the colours in a tree that a model's panel shows as a different colour, without duplicates and in
// reading order.
func LostColours(m glasses.DeviceModel, tree *glasses.Node) []string {
	s, ok := newScreen(m)
	if !ok || tree == nil {
		return nil
	}
	return s.appendLost(nil, tree, 1)
}

func (q quantiser) appendLost(lost []string, n *glasses.Node, depth int) []string {
	c, ok := glasses.ParseColour(n.Colour)
	if ok && q.shown(q.ink(n.Colour)) != c && !slices.Contains(lost, n.Colour) {
		lost = append(lost, n.Colour)
	}
	if isContainer(n) && depth < glasses.MaxTreeDepth {
		for i := range n.Children {
			lost = q.appendLost(lost, &n.Children[i], depth+1)
		}
	}
	return lost
}

// brightness returns a value between the perceived brightness and the strongest component of c, so that no pure colour
// looks dark on a green panel.
func brightness(c rgb) uint8 {
	eye := (299*int(c[0]) + 587*int(c[1]) + 114*int(c[2]) + 500) / 1000
	return uint8((eye + int(max(c[0], c[1], c[2])) + 1) / 2)
}

// nearest returns the palette entry that looks most similar to c.
func nearest(c rgb) rgb {
	best, least := framePalette[0], 1<<30
	for _, p := range framePalette {
		dr, dg, db := int(c[0])-int(p[0]), int(c[1])-int(p[1]), int(c[2])-int(p[2])
		if d := 2*dr*dr + 4*dg*dg + 3*db*db; d < least {
			best, least = p, d
		}
	}
	return best
}
