package render

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/glasses/render/typeset"
)

// addFont adds a font from testdata for the duration of the test.
func addFont(t *testing.T, name string) fonts.Added {
	t.Helper()
	file := filepath.Join("fonts", "testdata", name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := fonts.Added{Name: name, SHA256: fonts.Hash(data), File: file}
	fonts.SetAdded([]fonts.Added{a}, func(a fonts.Added, err error) { t.Errorf("%s is ignored: %v", a.Name, err) })
	t.Cleanup(func() { fonts.SetAdded(nil, nil) })
	return a
}

const cherokee = "ᏣᎳᎩ"

func cherokeeView() (glasses.DeviceModel, glasses.View) {
	m, _ := glasses.Model(glasses.DefaultDeviceModel)
	return m, Clamp(m, glasses.View{Tree: &glasses.Node{Type: glasses.NodeText, Text: cherokee + " abc"}})
}

func TestAddedFont_DrawsWhatOursLack(t *testing.T) {
	m, v := cherokeeView()
	boxes := PNG(Draw(m, v))
	if len(Fit(m, v)) != 1 || AddedFonts(m, v) != nil {
		t.Fatalf("without the font: got findings %v, want one", Fit(m, v))
	}
	a := addFont(t, "cherokee-regular.ttf")
	if found := Fit(m, v); len(found) != 0 || Inspect(m, v).Texts[0].Visible != VisibleFull {
		t.Errorf("with the font: got findings %v, or the text is not visible", found)
	}
	drawn := PNG(Draw(m, v))
	if bytes.Equal(boxes, drawn) {
		t.Error("the font does not change the picture")
	}
	if used := AddedFonts(m, v); len(used) != 1 || used[0] != a {
		t.Errorf("got fonts %v, want only %v", used, a)
	}
	browser := m
	browser.WithoutAddedFonts = true
	if !bytes.Equal(PNG(Draw(browser, v)), boxes) || len(Fit(browser, v)) != 1 || AddedFonts(browser, v) != nil {
		t.Error("glasses without added fonts use an added font")
	}
	fonts.SetAdded(nil, nil)
	if !bytes.Equal(PNG(Draw(m, v)), boxes) {
		t.Error("the font is still used after its removal")
	}
}

// The digit zero of this OpenType font is a ring of cubic curves.
func TestAddedFont_DrawsCubicCurves(t *testing.T) {
	addFont(t, "cff.otf")
	var c glyphCache
	for f := range fonts.AddedFaces(false) {
		segments, err := f.Outlines.LoadGlyph(&c.buf, 1, 100<<6, nil)
		if err != nil {
			t.Fatal(err)
		}
		left, top, m := c.ras.glyph(segments)
		for at, want := range map[image.Point]uint8{{14, 40}: 0xff, {30, 40}: 0, {45, 30}: 0xff, {10, 75}: 0, {30,
			75}: 0xff} {
			if got := m.pix[(-at.Y-top)*m.w+at.X-left]; got != want {
				t.Errorf("got coverage %d at %v, want %d", got, at, want)
			}
		}
	}
}

// A font that fails while a text is drawn is no longer used, and its characters are missing.
func TestAddedFont_IsDroppedWhenDrawingPanics(t *testing.T) {
	m, v := cherokeeView()
	boxes := PNG(Draw(m, v))
	addFont(t, "cherokee-regular.ttf")
	for f := range fonts.AddedFaces(false) {
		f.Outlines, f.Shaper = nil, nil
	}
	dropped := ""
	fonts.SetAdded(fontsInUse(), func(a fonts.Added, _ error) { dropped = a.Name })
	Draw(m, v)
	if !bytes.Equal(PNG(Draw(m, v)), boxes) || dropped != "cherokee-regular.ttf" {
		t.Errorf("the dropped font is %q, or the font is still used", dropped)
	}
}

// fontsInUse returns the added fonts.
func fontsInUse() (list []fonts.Added) {
	for f := range fonts.AddedFaces(false) {
		list = append(list, *f.Added)
	}
	return list
}

// A glyph that exceeds the allowed area is replaced with the box for a missing character.
func TestAddedFont_BoundsWhatACellCovers(t *testing.T) {
	addFont(t, "cherokee-regular.ttf")
	var c glyphCache
	for f := range fonts.AddedFaces(false) {
		cell := typeset.Cell{Face: f, Glyphs: []typeset.Glyph{{ID: 3}, {ID: 3, X: 30 * f.Upem, Y: 30 * f.Upem}}}
		if g := c.cell(face{size: 20}, cell, []rune("Ꮳ"), 0, 10); !g.missing || g.w > 20 {
			t.Errorf("got a glyph of %d x %d pixels, missing %v; want the box of a missing character", g.w, g.h, g.missing)
		}
	}
}

// Texts can be drawn with every font that Check accepts.
func FuzzAddedFont(f *testing.F) {
	for _, name := range []string{"cherokee-regular.ttf", "cherokee-bold.woff", "cff.otf"} {
		data, err := os.ReadFile(filepath.Join("fonts", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	file := filepath.Join(f.TempDir(), "font")
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := fonts.Check(data); err != nil {
			return
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		fonts.SetAdded([]fonts.Added{{Name: "fuzzed", SHA256: fonts.Hash(data), File: file}}, func(_ fonts.Added, err error) {
			t.Log(err)
		})
		defer fonts.SetAdded(nil, nil)
		m, v := cherokeeView()
		PNG(Draw(m, v))
		Fit(m, v)
	})
}

// A removed font is released from memory.
func TestAddedFont_LeavesTheCachesWhenRemoved(t *testing.T) {
	m, v := cherokeeView()
	addFont(t, "cherokee-regular.ttf")
	Draw(m, v)
	held := func() bool {
		for key := range glyphs.cells {
			if key.face.Added != nil {
				return true
			}
		}
		return false
	}
	if !held() {
		t.Fatal("no cell of the added font is cached")
	}
	fonts.SetAdded(nil, nil)
	Draw(m, v)
	if held() {
		t.Error("the caches still hold the removed font")
	}
}
