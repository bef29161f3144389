package typeset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-text/typesetting/harfbuzz"
	"github.com/go-text/typesetting/language"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/render/fonts/packs"
)

// shaping holds the options of one hb-shape call, whose lines all have the same font, direction, script and language.
type shaping struct {
	face     *fonts.Face
	rtl      bool
	script   language.Script
	language string
}

// hbGlyph is a glyph in the output of hb-shape.
type hbGlyph struct {
	G, Cl, DX, DY, AX, AY int
}

// mixtures returns seeded texts composed of parts of other texts, with numbers, punctuation and directional controls
// in between.
func mixtures(texts []string, n int) []string {
	random := rand.New(rand.NewPCG(14, 45))
	between := []string{" ", " 12:30 ", ", ", " (", ") ", "\u2067",
		"\u2066", "\u2069", "\u202b", "\u202c", "-", "\u200d", " ٤٢ ", "!"}
	all := make([]string, n)
	for i := range all {
		var b strings.Builder
		for range 2 + random.IntN(4) {
			part := []rune(texts[random.IntN(len(texts))])
			from := random.IntN(len(part))
			b.WriteString(string(part[from:min(len(part), from+1+random.IntN(24))]))
			b.WriteString(between[random.IntN(len(between))])
		}
		all[i] = b.String()
	}
	return all
}

func TestGlyphs_AreThoseOfHarfBuzz(t *testing.T) {
	hb, err := exec.LookPath("hb-shape")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("hb-shape is missing: cannot check the shaping (apt-get install libharfbuzz-bin)")
		}
		t.Skip("SKIPPED: hb-shape is missing: apt-get install libharfbuzz-bin")
	}
	groups := map[shaping]map[string]bool{}
	texts := corpus(t)
	var setter Typesetter
	for i, text := range append(texts, mixtures(texts, 2000)...) {
		for _, it := range setter.itemsOf(text, Options{Bold: i%2 == 1, Auto: true}) {
			if it.face == nil {
				continue
			}
			key := shaping{it.face, it.level%2 == 1, it.script, string(setter.language())}
			if groups[key] == nil {
				groups[key] = map[string]bool{}
			}
			groups[key][string(setter.text[it.from:it.to])] = true
		}
	}
	dir := t.TempDir()
	count := 0
	for _, key := range slices.SortedFunc(maps.Keys(groups), compareShapings) {
		lines := slices.Sorted(maps.Keys(groups[key]))
		count += len(lines)
		want := hbShape(t, hb, fontFile(t, dir, key.face), key, lines)
		for i, line := range lines {
			if got := ownShape(key, line); !slices.Equal(got, want[i]) {
				t.Errorf("%s %s rtl=%v %q: %+q\n got %v\nwant %v",
					key.face.Name, key.script, key.rtl, key.language, line, got, want[i])
			}
		}
	}
	t.Logf("%d texts of %d fonts, scripts and directions", count, len(groups))
}

func compareShapings(a, b shaping) int {
	return cmp.Or(cmp.Compare(a.face.Name, b.face.Name), cmp.Compare(a.script, b.script),
		cmp.Compare(a.language, b.language))
}

// itemsOf returns the items of the first paragraph of a text. The typesetter keeps the paragraph.
func (t *Typesetter) itemsOf(text string, o Options) []item {
	text, _, _ = strings.Cut(text, "\n")
	t.Cells([]rune(text), o)
	return t.items
}

// ownShape shapes a line alone, without any text around it.
func ownShape(key shaping, line string) []hbGlyph {
	t := Typesetter{text: []rune(line), shaper: harfbuzz.NewBuffer(), options: Options{Language: key.language}}
	it := item{to: len(t.text), script: key.script, face: key.face}
	if key.rtl {
		it.level = 1
	}
	b := t.glyphs(it)
	all := make([]hbGlyph, len(b.Info))
	for i, g := range b.Info {
		p := b.Pos[i]
		all[i] = hbGlyph{int(g.Glyph), g.Cluster, int(p.XOffset), int(p.YOffset), int(p.XAdvance), int(p.YAdvance)}
	}
	return all
}

// fontFile writes a font to a file that hb-shape can read.
func fontFile(t *testing.T, dir string, f *fonts.Face) string {
	t.Helper()
	file := filepath.Join(dir, f.Name+".ttf")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	ttf := map[string][]byte{"Go Regular": goregular.TTF, "Go Bold": gobold.TTF}[f.Name]
	if ttf == nil {
		var err error
		if ttf, err = packs.Read(f.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, ttf, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// hbShape shapes lines with HarfBuzz.
func hbShape(t *testing.T, hb, font string, key shaping, lines []string) [][]hbGlyph {
	t.Helper()
	direction := "--direction=ltr"
	if key.rtl {
		direction = "--direction=rtl"
	}
	args := []string{"--output-format=json", "--no-glyph-names", "--font-file=" + font, "--text-file=-",
		"--script=" + key.script.String(), direction}
	if key.language != "" {
		args = append(args, "--language="+key.language)
	}
	if key.face.Primary {
		args = append(args, "--features=-kern")
	}
	c := exec.Command(hb, args...)
	c.Env = []string{"LC_ALL=C.UTF-8"}
	c.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	printed := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	if len(printed) != len(lines) {
		t.Fatalf("%s: got %d lines of output for %d lines of input", fmt.Sprint(c.Args), len(printed), len(lines))
	}
	all := make([][]hbGlyph, len(lines))
	for i, p := range printed {
		if err := json.Unmarshal(p, &all[i]); err != nil {
			t.Fatalf("%v: %s", err, p)
		}
	}
	return all
}

// corpus returns texts in many languages.
func corpus(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../testdata/languages/articles.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"e\u0301 ệ̃ ᾧ Ѣ", "뷁 क्षत्रिय ক্ষ น้ำ שָׁלוֹם أحرارًا", "✓ ★ → ☎ 🙂 👍🏽 👩‍👩‍👧 ❤️"}
	for _, translation := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		texts = append(texts, strings.Split(translation, "\n")[1:]...)
	}
	return texts
}
