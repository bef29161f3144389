package typeset

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-text/typesetting/segmenter"
)

// unicodeTest yields the lines of a conformance file of the Unicode Character Database without their comments.
func unicodeTest(t *testing.T, name string) func(yield func(line int, text string) bool) {
	t.Helper()
	file, err := os.Open(filepath.Join("/usr/share/unicode", name))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: the conformance files of Unicode are missing: apt-get install unicode-data")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return func(yield func(int, string) bool) {
		lines := bufio.NewScanner(file)
		for n := 1; lines.Scan(); n++ {
			text, _, _ := strings.Cut(lines.Text(), "#")
			if text = strings.TrimSpace(text); text != "" && !yield(n, text) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			t.Error(err)
		}
	}
}

// ofClass maps each bidirectional class to a character.
var ofClass = map[string]rune{
	"L": 'a', "R": '\u05d0', "AL": '\u0627', "EN": '1', "ES": '+', "ET": '$', "AN": '\u0660', "CS": ',',
	"B": '\u2029', "S": '\t', "WS": ' ', "ON": '!', "NSM": '\u0300', "BN": '\u00ad', "LRE": '\u202a', "RLE": '\u202b',
	"PDF": '\u202c', "LRO": '\u202d', "RLO": '\u202e', "LRI": '\u2066', "RLI": '\u2067', "FSI": '\u2068', "PDI": '\u2069',
}

// autoLevel returns the paragraph level according to rules P2 and P3.
func autoLevel(text []rune) uint8 {
	if rtl, _ := FirstLetter(text); rtl {
		return 1
	}
	return 0
}

// levelsAre compares levels with the levels in a conformance file, where x is a removed character.
func levelsAre(got []uint8, want []string) bool {
	return slices.EqualFunc(got, want, func(level uint8, w string) bool {
		return w == "x" || strconv.Itoa(int(level)) == w
	})
}

func TestLevels_AreThoseOfBidiTest(t *testing.T) {
	var v leveller
	var want []string
	count := 0
	for n, line := range unicodeTest(t, "BidiTest.txt") {
		if levels, ok := strings.CutPrefix(line, "@Levels:"); ok {
			want = strings.Fields(levels)
			continue
		}
		if strings.HasPrefix(line, "@") {
			continue
		}
		names, bits, _ := strings.Cut(line, ";")
		directions, err := strconv.ParseUint(strings.TrimSpace(bits), 16, 8)
		if err != nil {
			t.Fatal(n, err)
		}
		var text []rune
		for _, name := range strings.Fields(names) {
			text = append(text, ofClass[name])
		}
		for bit, base := range []uint8{autoLevel(text), 0, 1} {
			if directions&(1<<bit) == 0 {
				continue
			}
			count++
			if got := v.find(text, base); !levelsAre(got, want) {
				t.Fatalf("line %d, %s in a paragraph of level %d: levels %v, want %v", n, names, base, got, want)
			}
		}
	}
	if count < 770_000 {
		t.Errorf("only %d cases", count)
	}
}

func TestLevels_AreThoseOfBidiCharacterTest(t *testing.T) {
	var v leveller
	count := 0
	for n, line := range unicodeTest(t, "BidiCharacterTest.txt") {
		fields := strings.Split(line, ";")
		text := codePoints(t, strings.Fields(fields[0]))
		base := map[string]uint8{"0": 0, "1": 1, "2": autoLevel(text)}[fields[1]]
		if fmt.Sprint(base) != fields[2] {
			t.Fatalf("line %d, %U: paragraph level %d, want %s", n, text, base, fields[2])
		}
		count++
		if got := v.find(text, base); !levelsAre(got, strings.Fields(fields[3])) {
			t.Fatalf("line %d, %U: levels %v, want %s", n, text, got, fields[3])
		}
	}
	if count < 90_000 {
		t.Errorf("only %d cases", count)
	}
}

func codePoints(t *testing.T, hex []string) []rune {
	t.Helper()
	var text []rune
	for _, h := range hex {
		r, err := strconv.ParseUint(h, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, rune(r))
	}
	return text
}

// marksOf parses a line of a break test: code points between marks, ÷ where a break is allowed and × where it is not.
func marksOf(t *testing.T, line string) (text []rune, breaks []int) {
	t.Helper()
	for _, field := range strings.Fields(line) {
		switch field {
		case "×":
		case "÷":
			breaks = append(breaks, len(text))
		default:
			text = append(text, codePoints(t, []string{field})...)
		}
	}
	return text, breaks
}

// notAsTheAnnexSays lists the lines of the conformance files for which the library returns a different result, and
// why.
var notAsTheAnnexSays = map[string]string{
	"\U0001f02c\U0001f3ff": "rule LB30b for code points that are reserved for pictographs: no font has them",
}

func TestBreaks_AreThoseOfTheConformanceFiles(t *testing.T) {
	for _, c := range []struct {
		file  string
		least int
		of    func(text []rune) []int
	}{
		{"auxiliary/LineBreakTest.txt", 7_600, func(text []rune) (at []int) {
			for i, may := range Breaks(text) {
				if may {
					at = append(at, i)
				}
			}
			return at
		}},
		{"auxiliary/GraphemeBreakTest.txt", 600, func(text []rune) []int {
			var s segmenter.Segmenter
			s.Init(text)
			at := []int{0}
			for graphemes := s.GraphemeIterator(); graphemes.Next(); {
				at = append(at, graphemes.Grapheme().Offset+len(graphemes.Grapheme().Text))
			}
			return at
		}},
	} {
		count := 0
		for n, line := range unicodeTest(t, c.file) {
			text, want := marksOf(t, line)
			got := c.of(text)
			_, differs := notAsTheAnnexSays[string(text)]
			if slices.Equal(got, want) == differs {
				t.Errorf("%s, line %d, %U: breaks at %v, want %v; listed as different: %v", c.file, n, text, got, want, differs)
			}
			count++
		}
		if count < c.least {
			t.Errorf("%s: only %d cases, want more", c.file, count)
		}
	}
}
