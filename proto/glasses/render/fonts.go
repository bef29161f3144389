package render

import (
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// mask is coverage, 0 to 255, row by row.
type mask struct {
	w, h int
	pix  []uint8
}

// glyph is a character in a face: how far it moves the pen, and its mask with its place from the pen on the baseline.
type glyph struct {
	r         rune
	advance   int
	left, top int
	mask
}

// Fonts are parsed when the first text is drawn: a program that never draws must not pay for them.
var (
	regular = sync.OnceValue(func() *sfnt.Font { return parseFont(goregular.TTF) })
	bold    = sync.OnceValue(func() *sfnt.Font { return parseFont(gobold.TTF) })
)

func parseFont(ttf []byte) *sfnt.Font {
	f, err := sfnt.Parse(ttf)
	if err != nil {
		panic("render: a font that is part of the program does not parse: " + err.Error())
	}
	return f
}

// maxGlyphs bounds the cache; a full one starts anew.
const maxGlyphs = 4096

type glyphKey struct {
	face face
	r    rune
}

// glyphCache keeps glyphs for every panel. It may be used concurrently; glyphs never change.
type glyphCache struct {
	mu     sync.Mutex
	glyphs map[glyphKey]*glyph
	buf    sfnt.Buffer
	ras    rasteriser
}

var glyphs glyphCache

// of gives the glyphs of a text; see get for those that the fonts lack.
func (c *glyphCache) of(f face, text []rune) []*glyph {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*glyph, 0, len(text))
	for _, r := range text {
		out = append(out, c.get(f, r))
	}
	return out
}

func (c *glyphCache) get(f face, r rune) *glyph {
	f.line = 0 // not a property of the glyph
	key := glyphKey{f, r}
	if g, ok := c.glyphs[key]; ok {
		return g
	}
	if c.glyphs == nil || len(c.glyphs) >= maxGlyphs {
		c.glyphs = map[glyphKey]*glyph{}
	}
	g := c.load(f, r)
	c.glyphs[key] = g
	return g
}

// load rasterises a glyph. A character that the font lacks becomes a box; one without width of its own (combining marks,
// joiners) that it lacks becomes nothing.
func (c *glyphCache) load(f face, r rune) *glyph {
	src := regular()
	if f.bold {
		src = bold()
	}
	ppem := fixed.Int26_6(f.size << 6)
	index, err := src.GlyphIndex(&c.buf, r)
	if err != nil || index == 0 {
		if zeroWidth(r) {
			return &glyph{r: r}
		}
		return missing(f, r)
	}
	advance, err := src.GlyphAdvance(&c.buf, index, ppem, font.HintingNone)
	if err != nil {
		return missing(f, r)
	}
	segments, err := src.LoadGlyph(&c.buf, index, ppem, nil)
	if err != nil {
		return missing(f, r)
	}
	g := &glyph{r: r, advance: int(advance+32) >> 6}
	if zeroWidth(r) {
		g.advance = 0
	}
	g.left, g.top, g.mask = c.ras.glyph(segments)
	return g
}

// missing is a visible box as high as a capital letter.
func missing(f face, r rune) *glyph {
	h := max(f.size*7/10, 3)
	w := max(h*3/5, 3)
	edge := max(f.size/14, 1)
	m := mask{w: w, h: h, pix: make([]uint8, w*h)}
	for y := range h {
		for x := range w {
			if x < edge || y < edge || x >= w-edge || y >= h-edge {
				m.pix[y*w+x] = 0xff
			}
		}
	}
	return &glyph{r: r, advance: w + 2*edge, left: edge, top: -h, mask: m}
}
