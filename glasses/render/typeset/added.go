package typeset

import (
	"fmt"

	"github.com/go-text/typesetting/harfbuzz"
	"github.com/go-text/typesetting/language"

	"github.com/service-dev/service/glasses/render/fonts"
)

// addedFace returns the first added font that contains a character with its marks, or nil if there is none.
func (t *Typesetter) addedFace(grapheme []rune, from int, script language.Script) *fonts.Face {
	if t.options.WithoutAdded {
		return nil
	}
	for f := range fonts.AddedFaces(t.options.Bold) {
		if t.guard(f, func() bool { return t.has(f, grapheme, from, script) }) {
			return f
		}
	}
	return nil
}

// canShape reports whether an item with an added font can be shaped. If not, the font is no longer used.
func (t *Typesetter) canShape(it item) bool {
	return t.guard(it.face, func() bool {
		n := it.to - it.from
		if b := t.glyphs(it); len(b.Info) > fonts.MaxGrowth*n+maxCellGlyphs {
			panic(fmt.Sprintf("%d characters became %d glyphs", n, len(b.Info)))
		}
		return true
	})
}

// guard calls do, which uses an added font, and drops the font if do panics. fonts.Check cannot try every text, so an
// accepted font may still fail.
func (t *Typesetter) guard(f *fonts.Face, do func() bool) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			fonts.Drop(f, r)
			t.shaper, ok = harfbuzz.NewBuffer(), false
		}
	}()
	return do()
}
