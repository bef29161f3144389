package typeset

import "github.com/go-text/typesetting/segmenter"

// Breaks reports for each character, and for the end of the text, whether a line may begin there (Unicode Standard
// Annex 14).
func Breaks(text []rune) []bool {
	var s segmenter.Segmenter
	return breaksOf(&s, text)
}

func breaksOf(s *segmenter.Segmenter, text []rune) []bool {
	may := make([]bool, len(text)+1)
	s.Init(text)
	for lines := s.LineIterator(); lines.Next(); {
		l := lines.Line()
		may[l.Offset+len(l.Text)] = true
	}
	return may
}

// Divisions reports for each character whether a line may begin with it if a word, or a text without spaces, is wider
// than the line. A line must not begin within a grapheme cluster (Unicode Standard Annex 29), or between a Thai
// consonant and a vowel written before or after it.
func Divisions(text []rune) []bool {
	may := make([]bool, len(text))
	var s segmenter.Segmenter
	s.Init(text)
	for graphemes := s.GraphemeIterator(); graphemes.Next(); {
		at := graphemes.Grapheme().Offset
		may[at] = !isThaiFollower(text[at]) && (at == 0 || !isThaiLeader(text[at-1]) && !joinsConsonants(text[at-1]))
	}
	return may
}

// joinsConsonants reports whether r is a virama, which joins two consonants into one character (rule GB9c).
func joinsConsonants(r rune) bool { return r == 0x94d || r == 0x9cd }

// isThaiLeader reports whether r is a vowel that precedes its consonant.
func isThaiLeader(r rune) bool { return r >= 0xe40 && r <= 0xe44 }

// isThaiFollower reports whether r is a vowel or a sign that follows its consonant or word.
func isThaiFollower(r rune) bool {
	return r >= 0xe2f && r <= 0xe33 || r == 0xe45 || r == 0xe46
}
