// Package typeset turns text of any language into positioned glyphs. It determines directions (Unicode Standard Annex
// 9), scripts, the font of each character, the glyphs (OpenType shaping), and where lines may break (Annex 14). The
// results are integers in font units, so they are the same on every platform and for every size. Positions are rounded
// to a quarter of a pixel within a run of joined letters.
//
// A left-to-right text whose characters are all in the Go fonts is not shaped, so its pictures never change and it has
// no extra cost. Embedding levels are computed here (levels.go), because the library reports only whether a level is
// odd. The library is pinned to the version that shapes exactly like HarfBuzz. Tests compare the two, and check levels
// and breaks against Unicode's conformance files.
//
// If no direction is set, a text runs in the direction of its first letter, a container uses the direction of the first
// letter below it, and a node without letters inherits its container's direction. Pages in Arabic or Hebrew are thus
// mirrored automatically.
package typeset

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-text/typesetting/harfbuzz"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/segmenter"

	"github.com/service-dev/service/glasses/render/fonts"
)

// maxCellGlyphs is the maximum number of glyphs in a cell. A character with more marks is not readable.
const maxCellGlyphs = 32

// Cell is a unit that is drawn and moved as a whole: a character with its marks, or a ligature.
type Cell struct {
	// From and To delimit the cell's characters in the text.
	From, To int
	// Level is the cell's embedding level, which is odd for right to left. Base is the level of its paragraph.
	Level, Base uint8
	// Break reports whether a line may begin with the cell.
	Break bool
	// Run is equal for all cells that were shaped together. They are adjacent in the text.
	Run int
	// Face is the font. It is nil for a line feed, or if no font contains the character.
	Face *fonts.Face
	// Glyphs are in drawing order. Advance is the distance to the next cell in font units.
	Glyphs  []Glyph
	Advance int
}

// Glyph is a glyph of a font, with its offset from the left end of its cell on the baseline, in font units. The y axis
// points up.
type Glyph struct {
	ID   uint16
	X, Y int
}

// Options describes the language and direction of a text.
type Options struct {
	Bold bool
	// Language is a BCP 47 tag that selects the forms of characters; empty if unknown.
	Language string
	// RTL makes paragraphs run from right to left. With Auto, it applies only to paragraphs without a letter.
	RTL, Auto bool
	// WithoutAdded excludes added fonts.
	WithoutAdded bool
}

// Typesetter lays out texts. It reuses its buffers and is not safe for concurrent use.
type Typesetter struct {
	levels  leveller
	lines   segmenter.Segmenter
	shaper  *harfbuzz.Buffer
	text    []rune
	items   []item
	cells   []Cell
	region  fonts.Region
	options Options
	nextRun int
}

// Cells returns the cells of a text in the order of its characters. Each line feed or other paragraph separator is a
// separate cell.
func (t *Typesetter) Cells(text []rune, o Options) []Cell {
	if t.shaper == nil {
		t.shaper = harfbuzz.NewBuffer()
	}
	t.options, t.region, t.cells, t.nextRun = o, regionOf(text, o.Language), nil, 0
	for from := 0; from <= len(text); {
		to := from
		for to < len(text) && !isSeparator(text[to]) {
			to++
		}
		t.paragraph(text[from:to], from)
		if to < len(text) {
			t.cells = append(t.cells, Cell{From: to, To: to + 1, Run: t.run()})
		}
		from = to + 1
	}
	return t.cells
}

func (t *Typesetter) run() int {
	t.nextRun++
	return t.nextRun
}

// regionOf returns the region of Han characters, which is determined by the language or by adjacent characters.
func regionOf(text []rune, tag string) fonts.Region {
	primary, rest, _ := strings.Cut(strings.ToLower(tag), "-")
	switch primary {
	case "ja":
		return fonts.RegionJapan
	case "ko":
		return fonts.RegionKorea
	case "yue":
		return fonts.RegionTaiwan
	case "zh":
		if slices.ContainsFunc(strings.Split(rest, "-"), isTraditional) {
			return fonts.RegionTaiwan
		}
		return fonts.RegionChina
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return fonts.RegionJapan
		case unicode.Is(unicode.Hangul, r):
			return fonts.RegionKorea
		case unicode.Is(unicode.Bopomofo, r):
			return fonts.RegionTaiwan
		}
	}
	return fonts.RegionChina
}

// isTraditional reports whether a script or a country uses traditional Chinese.
func isTraditional(subtag string) bool {
	return slices.Contains([]string{"hant", "tw", "hk", "mo"}, subtag)
}

// paragraph appends the cells of a paragraph that begins at offset.
func (t *Typesetter) paragraph(text []rune, offset int) {
	if len(text) == 0 {
		return
	}
	t.text = text
	first := len(t.cells)
	base := t.baseLevel()
	t.itemise(t.levels.find(text, base))
	for _, it := range t.items {
		t.shape(it)
	}
	breaks := breaksOf(&t.lines, t.text)
	for i := first; i < len(t.cells); i++ {
		c := &t.cells[i]
		c.Break, c.Base = breaks[c.From], base
		c.From, c.To = c.From+offset, c.To+offset
	}
}

// baseLevel returns the level of the paragraph.
func (t *Typesetter) baseLevel() uint8 {
	rtl, found := FirstLetter(t.text)
	if !t.options.Auto || !found {
		rtl = t.options.RTL
	}
	if rtl {
		return 1
	}
	return 0
}

// shape appends the cells of an item.
func (t *Typesetter) shape(it item) {
	run := t.run()
	if it.face == nil || it.face.Added != nil && !t.canShape(it) {
		for i := it.from; i < it.to; i++ {
			t.cells = append(t.cells, Cell{From: i, To: i + 1, Level: it.level, Run: run})
		}
		return
	}
	b := t.glyphs(it)
	cells := []Cell{}
	for i := 0; i < len(b.Info); {
		c := Cell{From: b.Info[i].Cluster, Level: it.level, Run: run, Face: it.face}
		for ; i < len(b.Info) && b.Info[i].Cluster == c.From; i++ {
			at := b.Pos[i]
			if len(c.Glyphs) < maxCellGlyphs {
				c.Glyphs = append(c.Glyphs, Glyph{uint16(b.Info[i].Glyph), c.Advance + int(at.XOffset), int(at.YOffset)})
			}
			c.Advance += int(at.XAdvance)
		}
		cells = append(cells, c)
	}
	if it.level%2 == 1 { // from drawing order
		for i, j := 0, len(cells)-1; i < j; i, j = i+1, j-1 {
			cells[i], cells[j] = cells[j], cells[i]
		}
	}
	for i := range cells {
		cells[i].To = it.to
		if i+1 < len(cells) {
			cells[i].To = cells[i+1].From
		}
	}
	if len(cells) > 0 {
		cells[0].From = it.from
	}
	t.cells = append(t.cells, cells...)
}

// noKerning disables kerning in the primary font, so that shaped text has the same advances as plain text.
var noKerning = []harfbuzz.Feature{{Tag: 'k'<<24 | 'e'<<16 | 'r'<<8 | 'n', Start: 0, End: harfbuzz.FeatureGlobalEnd}}

// glyphs shapes an item, with the surrounding text as context.
func (t *Typesetter) glyphs(it item) *harfbuzz.Buffer {
	b := t.shaper
	b.Clear()
	b.AddRunes(t.text, it.from, it.to-it.from)
	b.Props = harfbuzz.SegmentProperties{Direction: harfbuzz.LeftToRight, Script: it.script, Language: t.language()}
	if it.level%2 == 1 {
		b.Props.Direction = harfbuzz.RightToLeft
	}
	var features []harfbuzz.Feature
	if it.face.Primary {
		features = noKerning
	}
	b.Shape(it.face.Shaper, features)
	return b
}

func (t *Typesetter) language() language.Language {
	if t.options.Language != "" {
		return language.NewLanguage(t.options.Language)
	}
	return languages[t.region]
}

// languages select the Han forms of a region in a font that contains the forms of several regions.
var languages = map[fonts.Region]language.Language{
	fonts.RegionChina: "", fonts.RegionTaiwan: language.NewLanguage("zh-hant"),
	fonts.RegionJapan: language.NewLanguage("ja"), fonts.RegionKorea: language.NewLanguage("ko"),
}
