package typeset_test

import (
	"slices"
	"strings"
	"testing"

	_ "github.com/service-dev/service/glasses/render/fonts/packs"
	"github.com/service-dev/service/glasses/render/typeset"
)

func cells(text string) []typeset.Cell {
	var t typeset.Typesetter
	return t.Cells([]rune(text), typeset.Options{Auto: true})
}

func TestCells_EveryScriptHasAFont(t *testing.T) {
	for _, text := range []string{
		"Tiếng Việt", "e\u0301", "ệ̃", "Ελλάδα ᾧ", "Ѣ кириллица", "你好，世界。", "繁體中文「廣東」", "日本語カタカナ",
		"한국어 뷁", "مرحبا بالعالم ١٢٣", "שָׁלוֹם", "नमस्ते क्षत्रिय", "ภาษาไทย น้ำ",
		"বাংলা ক্ষ", "தமிழ்", "Հայերեն", "ქართული", "✓ ★ → ☎", "🙂 👍🏽 👩‍👩‍👧 ❤️",
	} {
		for _, c := range cells(text) {
			if c.Face == nil {
				t.Errorf("%q: no font has %q", text, []rune(text)[c.From:c.To])
			}
			for _, g := range c.Glyphs {
				if g.ID == 0 {
					t.Errorf("%q: %s has no glyph for %q", text, c.Face.Name, []rune(text)[c.From:c.To])
				}
			}
		}
	}
}

func TestCells_LevelsAreThoseOfTheAnnex(t *testing.T) {
	for _, c := range []struct{ text, levels string }{
		{"abc שלום def", "000011110000"},
		{"שלום abc", "11111222"},
		{"של 12 ab", "11122122"},
		{"a של 12b", "00111220"},
		{"a של 12", "0011122"},
		{"\u2067של ab\u2069", "0111220"}, // letters within an isolate, an embedding, an override
		{"ab \u202bcd של\u202c", "0000221110"},
		{"\u202eab\u202c c", "011100"},
	} {
		var got strings.Builder
		for _, cell := range cells(c.text) {
			for range cell.To - cell.From {
				got.WriteByte('0' + cell.Level)
			}
		}
		if got.String() != c.levels {
			t.Errorf("%q: levels %s, want %s", c.text, got.String(), c.levels)
		}
	}
}

func TestCells_LinesMayBeginWhereTheAnnexSays(t *testing.T) {
	for _, c := range []struct{ text, marked string }{
		{"你好，世界", "你|好，|世|界"}, {"well-known 日本", "well-|known |日|本"}, {"שלום עולם", "שלום |עולם"},
	} {
		var got strings.Builder
		for _, cell := range cells(c.text) {
			if cell.Break {
				got.WriteByte('|')
			}
			got.WriteString(string([]rune(c.text)[cell.From:cell.To]))
		}
		if got.String() != c.marked {
			t.Errorf("%q: %q, want %q", c.text, got.String(), c.marked)
		}
	}
}

func TestCells_TakeDirectionAndLanguageFromTheirOptions(t *testing.T) {
	var setter typeset.Typesetter
	for _, c := range []struct {
		text string
		o    typeset.Options
		base uint8
	}{
		{"12:30", typeset.Options{Auto: true}, 0}, {"12:30", typeset.Options{Auto: true, RTL: true}, 1},
		{"abc", typeset.Options{Auto: true, RTL: true}, 0}, {"abc", typeset.Options{RTL: true}, 1},
		{"שלום", typeset.Options{Auto: true}, 1}, {"שלום", typeset.Options{}, 0},
	} {
		if got := setter.Cells([]rune(c.text), c.o)[0].Base; got != c.base {
			t.Errorf("%s, %+v: level %d, want %d", c.text, c.o, got, c.base)
		}
	}
	// The Korean file has no Han characters; the Japanese forms are nearest.
	for tag, face := range map[string]string{"": "chinese-simplified-400", "zh-CN": "chinese-simplified-400",
		"zh-Hant": "chinese-traditional-400", "zh-TW": "chinese-traditional-400", "yue": "chinese-traditional-400",
		"ja": "japanese-400", "JA-jp": "japanese-400", "ko": "japanese-400", "de": "chinese-simplified-400"} {
		if got := setter.Cells([]rune("直"), typeset.Options{Language: tag})[0].Face.Name; got != face {
			t.Errorf("%q is drawn with %s, want %s", tag, got, face)
		}
	}
}

func FuzzCells(f *testing.F) {
	for _, s := range []string{"a" + strings.Repeat("\u0301", 200), "abc \u202eשלום\u202c 12", "\u2067\u2066x\u2069",
		"स्\u200dत्री", "\n\n日\n",
		"👩‍👩‍👧 e\ufe0f", "لا إله", "\xff\xfe", "\u1100\u1161\u11a8"} {
		f.Add(s, false)
	}
	cells("\u65e5\ufffd\U0010ffff") // parses the large fonts before any text is timed
	f.Fuzz(func(t *testing.T, s string, bold bool) {
		if len(s) > 4096 {
			return
		}
		o := typeset.Options{Bold: bold, Auto: len(s)%2 == 0, RTL: len(s)%3 == 0}
		text := []rune(s)
		var setter typeset.Typesetter
		list := setter.Cells(text, o)
		at := 0
		for _, c := range list {
			if c.From != at || c.To <= c.From || len(c.Glyphs) > 32 {
				t.Fatalf("%q: an invalid cell from %d to %d with %d glyphs, after %d", s, c.From, c.To, len(c.Glyphs), at)
			}
			at = c.To
		}
		if at != len(text) {
			t.Fatalf("%q: the cells end at %d, want %d", s, at, len(text))
		}
		again := setter.Cells(text, o)
		if !slices.EqualFunc(list, again, func(a, b typeset.Cell) bool {
			return a.From == b.From && a.To == b.To && a.Level == b.Level && a.Break == b.Break && a.Advance == b.Advance &&
				a.Face == b.Face && slices.Equal(a.Glyphs, b.Glyphs)
		}) {
			t.Fatalf("%q: the second result differs from the first", s)
		}
	})
}
