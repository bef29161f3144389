package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxMissingNamed is the maximum number of missing characters that are listed.
const maxMissingNamed = 8

// missing lists the characters of a paragraph that no font contains, each once and in order: "ሀ U+1200 ETHIOPIC
// SYLLABLE HA, ለ U+1208 ETHIOPIC SYLLABLE LA". It returns "" if there are none.
func (p *paragraph) missing() string {
	var runes []rune
	for _, g := range p.glyphs {
		if g.missing && !slices.Contains(runes, g.r) {
			if len(runes) == maxMissingNamed {
				return nameRunes(runes) + " and others"
			}
			runes = append(runes, g.r)
		}
	}
	return nameRunes(runes)
}

func nameRunes(runes []rune) string {
	names := make([]string, len(runes))
	for i, r := range runes {
		names[i] = fmt.Sprintf("%U", r)
		if unicode.IsGraphic(r) && !zeroWidth(r) {
			names[i] = string(r) + " " + names[i]
		}
		if name := nameOf(r); name != "" {
			names[i] += " " + name
		}
	}
	return strings.Join(names, ", ")
}

// legible returns how much of the visible part of a line the wearer can read. A line with a missing character is not
// readable in full, and a line that consists of missing characters is not readable at all.
func (p *paragraph) legible(l textLine, v lineView) lineView {
	some, missing := false, false
	for _, g := range p.glyphs[l.from:l.to] {
		missing = missing || g.missing
		some = some || !g.missing && g.w > 0
	}
	if missing {
		v.all = false
		v.some = v.some && some
	}
	return v
}
