package render

import (
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/render/typeset"
)

// mask holds coverage values, 0 to 255, row by row.
type mask struct {
	w, h int
	pix  []uint8
}

// glyph is a character in a face, or several characters drawn as one. It consists of its advance, and its mask with the
// offset from the pen on the baseline.
type glyph struct {
	r         rune
	more      []rune // the characters after r
	advance   int
	left, top int
	missing   bool         // no font contains the character
	complex   bool         // see isPlain
	font      *fonts.Added // the added font; nil for one of the service's fonts
	mask
}

// Fonts are parsed when the first text is drawn, so that programs that never draw text have no cost.
var (
	regular = sync.OnceValue(func() *sfnt.Font { return parseFont(goregular.TTF) })
	bold    = sync.OnceValue(func() *sfnt.Font { return parseFont(gobold.TTF) })
)

func parseFont(ttf []byte) *sfnt.Font {
	f, err := sfnt.Parse(ttf)
	if err != nil {
		panic("render: parse embedded font: " + err.Error())
	}
	return f
}

// maxGlyphs is the size of the cache. The cache is emptied when it is full.
const maxGlyphs = 4096

type glyphKey struct {
	face face
	r    rune
}

// glyphCache caches glyphs for all panels. It is safe for concurrent use. Glyphs are immutable.
type glyphCache struct {
	mu     sync.Mutex
	glyphs map[glyphKey]*glyph
	buf    sfnt.Buffer
	ras    rasteriser

	setter typeset.Typesetter
	cells  map[cellKey]*glyph
	bytes  int // of cells
	texts  map[typesetKey]typesetText
	runes  int // in texts
	fonts  int // generation of the fonts used to typeset texts
}

var glyphs glyphCache

// of returns the glyphs of text in f.
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
	g.complex = isComplex(g)
	c.glyphs[key] = g
	return g
}

// load rasterises a glyph. A character that the font lacks becomes a box. If it takes up no width (combining marks,
// joiners), it is not drawn.
func (c *glyphCache) load(f face, r rune) *glyph {
	src := regular()
	if f.bold {
		src = bold()
	}
	ppem := fixed.Int26_6(f.size << 6)
	index, err := src.GlyphIndex(&c.buf, r)
	if err != nil || index == 0 {
		if r == '\n' || zeroWidth(r) {
			return &glyph{r: r, missing: !typeset.IsInvisible(r) && r != '\n'}
		}
		return boxOf(f, r)
	}
	advance, err := src.GlyphAdvance(&c.buf, index, ppem, font.HintingNone)
	if err != nil {
		return boxOf(f, r)
	}
	segments, err := src.LoadGlyph(&c.buf, index, ppem, nil)
	if err != nil {
		return boxOf(f, r)
	}
	g := &glyph{r: r, advance: int(advance+32) >> 6}
	if zeroWidth(r) {
		g.advance = 0
	}
	g.left, g.top, g.mask = c.ras.glyph(segments)
	return g
}

// boxOf returns a box as high as a capital letter, to be drawn instead of a missing character.
func boxOf(f face, r rune) *glyph {
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
	return &glyph{r: r, advance: w + 2*edge, left: edge, top: -h, missing: true, mask: m}
}
