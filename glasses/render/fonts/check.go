package fonts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-text/typesetting/harfbuzz"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"github.com/service-dev/service/internal/problem"
)

// Limits of added fonts.
const (
	MaxFile  = 20 << 20 // bytes of a file
	MaxAdded = 16       // fonts
	// maxName is the maximum length of a font's name in characters. Longer names are truncated.
	maxName = 60
	// maxSegments is the maximum number of segments in the outline of a glyph, which is filled in one pass.
	maxSegments = 20_000
	// maxMeanArea is the maximum mean area of all glyphs in square ems, so that the masks of a text stay small.
	maxMeanArea = 4
	// maxTrial is the number of characters that the check shapes.
	maxTrial = 2000
)

// Info describes a font file.
type Info struct {
	// Name is the font's full name. It contains only printable characters.
	Name string
	// Weight is between 1 and 1000; 400 is regular. Italic is set for slanted fonts.
	Weight int
	Italic bool
	// Glyphs is the number of glyphs.
	Glyphs int
}

// boldWeight is the minimum weight of a font for bold text.
const boldWeight = 600

// Bold reports whether the font is meant for bold text.
func (i Info) Bold() bool { return i.Weight >= boldWeight }

// Check parses a font file and all its glyphs, as drawing does, and describes the font. On failure it returns a
// *problem.Error. It recovers from panics of the third-party parsers. Run it in a process that can be killed, because a
// hostile file can make the parsers use much time or memory.
func Check(data []byte) (info Info, err error) {
	defer func() {
		if r := recover(); r != nil {
			info, err = Info{}, damaged(fmt.Errorf("parsing it failed: %v", r))
		}
	}()
	if err := checkFormat(data); err != nil {
		return Info{}, err
	}
	f, err := parseAdded(data)
	var refused *problem.Error
	switch {
	case errors.As(err, &refused):
		return Info{}, refused
	case err != nil:
		return Info{}, damaged(err)
	}
	if err := f.checkGlyphs(); err != nil {
		return Info{}, err
	}
	if err := f.tryShaping(); err != nil {
		return Info{}, err
	}
	info = Info{Name: f.name(), Glyphs: f.Outlines.NumGlyphs()}
	info.Weight, info.Italic = f.style()
	return info, nil
}

func damaged(cause error) error {
	return problem.New(problem.CodeFontDamaged, "the font is damaged or of an unsupported kind: "+cause.Error(),
		"Download it again, or use another file of this font.")
}

func unsupported(what, hint string) error {
	return problem.New(problem.CodeFontUnsupported, what, hint)
}

func noOutlines() error {
	return unsupported("the font has no outlines that can be drawn", "Use a font with outlines (glyf or CFF).")
}

// checkFormat refuses large files and formats that the parsers do not support.
func checkFormat(data []byte) error {
	const others = "Use its TTF, OTF or WOFF file."
	if len(data) > MaxFile {
		return problem.New(problem.CodeFontTooLarge, fmt.Sprintf("the font is larger than %d MB", MaxFile>>20),
			"Use a font with fewer characters, e.g. for one script.")
	}
	if len(data) < 4 {
		return damaged(errTruncated)
	}
	switch string(data[:4]) {
	case "wOF2":
		return unsupported("the file is WOFF2, which is not supported", others)
	case "ttcf":
		return unsupported("the file is a collection of fonts", "Extract one font from it, and add that.")
	case "\x00\x01\x00\x00", "OTTO", "true", "wOFF":
		return nil
	}
	return unsupported("the file is not a font", others)
}

// checkGlyphs loads the outline of every glyph.
func (f *Face) checkGlyphs() error {
	const em = 64 << 6 // in 1/64 pixel
	if f.Upem < 16 || f.Upem > 16384 {
		return damaged(fmt.Errorf("an em has %d units", f.Upem))
	}
	var buf sfnt.Buffer
	var area float64
	drawn := 0
	for id := range f.Outlines.NumGlyphs() {
		segments, err := f.Outlines.LoadGlyph(&buf, sfnt.GlyphIndex(id), fixed.Int26_6(em), nil)
		switch {
		case err != nil:
			return damaged(fmt.Errorf("glyph %d: %w", id, err))
		case len(segments) > maxSegments:
			return problem.New(problem.CodeFontTooLarge, fmt.Sprintf("glyph %d has %d curves, over the limit of %d", id,
				len(segments),
				maxSegments), "Use another font.")
		case len(segments) > 0:
			drawn++
		}
		b := segments.Bounds()
		area += float64(b.Max.X-b.Min.X) * float64(b.Max.Y-b.Min.Y) / (em * em)
	}
	if drawn < 2 { // one may be .notdef
		return noOutlines()
	}
	if mean := area / float64(drawn); mean > maxMeanArea {
		return damaged(fmt.Errorf("its glyphs cover %.0f square ems on average", mean))
	}
	return nil
}

// tryShaping shapes the font's first characters.
func (f *Face) tryShaping() error {
	var text []rune
	for all := f.nominal.Cmap.Iter(); all.Next() && len(text) < maxTrial; {
		r, _ := all.Char()
		text = append(text, r)
	}
	if len(text) == 0 {
		return damaged(errors.New("it has no characters"))
	}
	b := harfbuzz.NewBuffer()
	b.AddRunes(text, 0, len(text))
	b.GuessSegmentProperties()
	b.Shape(f.Shaper, nil)
	if len(b.Info) > MaxGrowth*len(text) {
		return damaged(fmt.Errorf("%d characters become %d glyphs", len(text), len(b.Info)))
	}
	return nil
}

// MaxGrowth is the maximum number of glyphs per character that an added font may use, averaged over a text.
const MaxGrowth = 16

// name returns the font's full name, or its family or PostScript name if it has none.
func (f *Face) name() string {
	var buf sfnt.Buffer
	for _, id := range []sfnt.NameID{sfnt.NameIDFull, sfnt.NameIDFamily, sfnt.NameIDPostScript} {
		text, err := f.Outlines.Name(&buf, id)
		if name := printable(text); err == nil && name != "" {
			return name
		}
	}
	return "unnamed"
}

// printable returns the printable characters of a text, with single spaces and at most maxName characters long.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return strings.TrimSpace(string(runes[:min(len(runes), maxName)]))
}

// style returns the weight and whether the font is slanted, from table OS/2.
func (f *Face) style() (weight int, italic bool) {
	const weightClass, selection = 4, 62
	if len(f.os2) < selection+2 {
		return 400, false
	}
	be := binary.BigEndian
	weight = int(be.Uint16(f.os2[weightClass:]))
	if weight < 1 || weight > 1000 {
		weight = 400
	}
	return weight, be.Uint16(f.os2[selection:])&1 != 0
}
