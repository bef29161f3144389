package fonts

import (
	"slices"

	"github.com/go-text/typesetting/language"
)

// pack contains the names of the font files of some scripts.
type pack struct {
	regular, bold string // base names; bold is empty if there is none
}

// Packs of each family. These Noto Sans files contain no Latin letters. The Go fonts and then latin provide these
// letters.
var (
	common     = []pack{both("latin"), both("hebrew")} // punctuation of every script; only hebrew contains U+2010
	latin      = []pack{both("latin-ext"), both("vietnamese")}
	greek      = []pack{both("greek-ext")}
	cyrillic   = []pack{both("cyrillic"), both("cyrillic-ext")}
	arabic     = []pack{both("arabic")}
	armenian   = []pack{both("armenian")}
	bengali    = []pack{both("bengali")}
	devanagari = []pack{both("devanagari")}
	georgian   = []pack{both("georgian")}
	hebrew     = []pack{both("hebrew")}
	tamil      = []pack{both("tamil")}
	thai       = []pack{both("thai")}

	simplified  = pack{regular: "chinese-simplified-400"}
	traditional = pack{regular: "chinese-traditional-400"}
	japanese    = pack{regular: "japanese-400"}
	korean      = pack{regular: "korean-400"}

	symbols = []pack{{regular: "symbols-400"}}
	emoji   = []pack{{regular: "emoji-400"}}
)

func both(name string) pack { return pack{name + "-400", name + "-700"} }

var byScript = map[language.Script][]pack{
	language.Arabic: arabic, language.Armenian: armenian, language.Bengali: bengali,
	language.Devanagari: devanagari, language.Georgian: georgian, language.Hebrew: hebrew,
	language.Tamil: tamil, language.Thai: thai,
	language.Latin: latin, language.Greek: greek, language.Cyrillic: cyrillic,
	language.Hangul: {korean}, language.Hiragana: {japanese}, language.Katakana: {japanese},
	language.Bopomofo: {traditional},
}

// Region selects the forms of Han characters, which differ between countries.
type Region int

// Regions. RegionChina applies to text of unknown language.
const (
	RegionChina Region = iota
	RegionTaiwan
	RegionJapan
	RegionKorea
)

var byRegion = map[Region][]pack{
	RegionChina:  {simplified, traditional, japanese, korean},
	RegionTaiwan: {traditional, simplified, japanese, korean},
	RegionJapan:  {japanese, simplified, traditional, korean},
	RegionKorea:  {korean, japanese, traditional, simplified},
}

// packsOf returns the packs to search for a character of a script, the best first. For a character without a script,
// such as a full stop or an emoji, pass the script of the surrounding text.
func packsOf(r rune, script language.Script, region Region, asEmoji bool) []pack {
	list := byScript[script]
	if script == language.Han || isEastAsian(r) {
		list = byRegion[region]
	}
	if own := language.LookupScript(r); own.Strong() && own != language.Unknown {
		return list
	}
	pictures := slices.Concat(symbols, emoji)
	if asEmoji || r >= firstEmojiPlane {
		pictures = slices.Concat(emoji, symbols)
	}
	if r >= firstSymbol && !isEastAsian(r) { // script-specific fonts rarely contain symbols
		return slices.Concat(pictures, list)
	}
	return slices.Concat(list, common, pictures)
}

const (
	firstSymbol     = 0x2190 // the block Arrows
	firstEmojiPlane = 0x1f000
)

// isEastAsian reports whether a character belongs to the punctuation, enclosed and full-width forms of East Asia.
func isEastAsian(r rune) bool {
	return r >= 0x3000 && r <= 0x303f || r >= 0x3200 && r <= 0x33ff || r >= 0xfe10 && r <= 0xfe1f ||
		r >= 0xfe30 && r <= 0xfe4f || r >= 0xff00 && r <= 0xffef
}
