package render

import (
	"encoding/json"
	"image"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/fonts"
	_ "github.com/service-dev/service/glasses/render/fonts/packs"
	"github.com/service-dev/service/glasses/render/typeset"
)

// hostileTexts returns texts that only an attacker would write, each about as long as a frame allows.
func hostileTexts() map[string]string {
	return map[string]string{
		"marks above a letter":           "x" + strings.Repeat("\u0301", 10000),
		"marks that no font has":         "x" + strings.Repeat("\U0001e136", 9000),
		"marks above and below":          strings.Repeat("ệ"+strings.Repeat("\u0323\u0302", 60), 120),
		"vowels of one consonant":        "क" + strings.Repeat("ा", 10000),
		"Hebrew points":                  "ש" + strings.Repeat("\u05b8\u05c1", 9000),
		"nested isolates":                strings.Repeat("\u2067", 1000) + "abc שלום 12" + strings.Repeat("\u2069", 1000),
		"nested embeddings":              strings.Repeat("\u202b", 1000) + "abc שלום 12" + strings.Repeat("\u202c", 1000),
		"overrides that never end":       strings.Repeat("\u202eab\u202dשל", 1500),
		"characters without a width":     strings.Repeat("\u200b\u200d\u2060\ufeff", 4500) + "x",
		"joined emoji":                   strings.Repeat("👩\u200d", 8000),
		"Han":                            strings.Repeat("漢字語文", 5200),
		"Thai":                           strings.Repeat("ที่น้ำ", 3000),
		"a word of a right-to-left text": strings.Repeat("ب", 30000),
		"line feeds":                     strings.Repeat("ب\n", 15000),
	}
}

// hostileFrame returns the payload of a frame with the text.
func hostileFrame(tb testing.TB, style, text string) []byte {
	tb.Helper()
	tree := glasses.Node{Type: glasses.NodeColumn, Overflow: glasses.OverflowScroll, Children: []glasses.Node{
		{Type: glasses.NodeText, ID: "text", Style: style, Text: text},
		{Type: glasses.NodeButton, ID: "ok", Text: "OK"}}}
	payload, err := json.Marshal(glasses.Show{Tree: tree})
	if err != nil || len(payload) > glasses.MaxFrame {
		tb.Fatalf("%d bytes, %v", len(payload), err)
	}
	return payload
}

// maxMaskBytes limits the masks of the glyphs of a scene.
const maxMaskBytes = 1 << 20

// showHostile performs every operation that a panel performs with a payload, and checks the amount of work.
func showHostile(t *testing.T, name string, payload []byte) {
	show, bad := glasses.ParseShow(payload)
	if bad != nil {
		return
	}
	for _, id := range []string{"rayban_display", "even_g1"} {
		m, _ := glasses.Model(id)
		v := Show(m, glasses.View{Focus: -1}, &show.Tree)
		s, _ := laidOut(m, v)
		masks := map[*glyph]bool{}
		bytes := 0
		s.walk(func(b *box, _, _ image.Rectangle) {
			if b.text == nil {
				return
			}
			if runes := len([]rune(b.n.Text)); len(b.text.glyphs) > 2*runes || len(b.text.lines) > 2*runes+1 {
				t.Errorf("%s, %s: too many glyphs (%d) or lines (%d)", name, id, len(b.text.glyphs), len(b.text.lines))
			}
			for _, g := range b.text.glyphs {
				if !masks[g] {
					masks[g] = true
					bytes += len(g.pix)
				}
			}
		})
		s.paint(image.NewNRGBA(s.area), nil)
		s.inspect()
		perPixel := s.painted / (m.Panel.Width * m.Panel.Height)
		if bytes > maxMaskBytes || perPixel > maxPaintedPerPixel {
			t.Errorf("%s, %s: too many bytes of masks (%d) or paintings per pixel (%d)", name, id, bytes, perPixel)
		}
		Draw(m, v)
		Fit(m, v)
		Navigate(m, v, "down")
	}
}

func TestHostileTexts_AreBoundedWork(t *testing.T) {
	for name, text := range hostileTexts() {
		runes := []rune(text)
		showHostile(t, name, hostileFrame(t, glasses.StyleLarge, string(runes[:len(runes)/hostileShare])))
	}
}

// A cell with many marks is large, so limiting the number of cells is not enough.
func TestHostileTexts_CachedCellsAreBounded(t *testing.T) {
	var c glyphCache
	letter := typeset.Cell{Face: fonts.Primary(false)}
	for i := range maxCellBytes / 10000 {
		c.cell(face{size: 20}, letter, make([]rune, 5000), 0, i)
	}
	if c.bytes > maxCellBytes || len(c.cells) == 0 || len(c.cells) > maxCellBytes/20000 {
		t.Errorf("%d cells of %d bytes in total are cached, want some within the limit", len(c.cells), c.bytes)
	}
}

// A letter with a tall stack of marks stays on its line.
func TestHostileTexts_MarksDoNotMoveTheirLetter(t *testing.T) {
	for _, m := range glasses.Models() {
		s, ok := newScreen(m)
		if !ok {
			continue
		}
		lowest := func(text string) int {
			img := Draw(m, glasses.View{Focus: -1, Tree: &glasses.Node{Type: glasses.NodeText, Text: text}})
			for i := len(img.Pix) - 4; i >= 0; i -= 4 {
				if img.Pix[i+1] > 0 {
					return i / img.Stride
				}
			}
			return -1
		}
		plain, piled := lowest("x"), lowest("x"+strings.Repeat("\u0301", 10000))
		if plain < 0 || piled < plain || piled > plain+s.body.maxShift() {
			t.Errorf("%s: the letter ends at %d alone and at %d with marks, want about the same", m.ID, plain, piled)
		}
	}
}

// JSON may contain an unpaired surrogate, which is not a character.
func TestHostileTexts_LoneSurrogatesAreRefusedOrReplaced(t *testing.T) {
	for _, half := range []string{`\ud83d`, `\ude42`, `\ud83d\ud83d`, `\ude42\ud83d`} {
		show, bad := glasses.ParseShow([]byte(`{"tree":{"type":"text","text":"a` + half + `b"}}`))
		if bad == nil && !strings.Contains(show.Tree.Text, "\ufffd") {
			t.Errorf("%s became %q, want U+FFFD or an error", half, show.Tree.Text)
		}
		showHostile(t, half, []byte(`{"tree":{"type":"text","text":"a`+half+`b"}}`))
	}
}

func FuzzHostileTexts(f *testing.F) {
	for _, text := range hostileTexts() {
		f.Add(text[:min(len(text), 60)], uint16(10), "")
	}
	f.Add(`\ud83d`, uint16(1), glasses.StyleLarge)
	f.Fuzz(func(t *testing.T, text string, times uint16, style string) {
		times = min(times, uint16(2000/(len(text)+1)))
		raw, err := json.Marshal(strings.Repeat(text, int(times)))
		if err != nil {
			t.Fatal(err)
		}
		showHostile(t, "fuzz", []byte(`{"tree":{"type":"text","text":`+string(raw)+`}}`))
		showHostile(t, "raw", []byte(`{"tree":{"type":"text","style":"`+style+`","text":"`+text+`"}}`))
	})
}
