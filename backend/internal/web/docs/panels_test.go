package docs

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	manual "github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	_ "github.com/service-dev/service/glasses/render/fonts/packs" // every script
)

var update = flag.Bool("update", false, "draw the pictures of the documentation's display trees again")

// TestPanels_AreThoseOfTheRenderer draws every display tree of the documentation and compares pixels.
func TestPanels_AreThoseOfTheRenderer(t *testing.T) {
	block := regexp.MustCompile("(?s)(?:^|\n)```json ([a-z -]+)\n(.*?)\n```")
	want := map[string]bool{}
	for _, p := range manual.Pages() {
		for _, m := range block.FindAllStringSubmatch(p.Markdown, -1) {
			picture := draws(t, m[1], m[2])
			if picture == nil {
				continue
			}
			file := panelName(m[2])
			want[file] = true
			if *update {
				store(t, file, picture)
				continue
			}
			_, data := panelOf(m[2])
			got, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatalf("%s: %s: %v; run this test with -update and build again", p.ID, file, err)
			}
			plain := image.NewNRGBA(got.Bounds())
			draw.Draw(plain, plain.Rect, got, image.Point{}, draw.Src)
			if !bytes.Equal(plain.Pix, picture.Pix) {
				t.Errorf("%s: %s is not what the renderer draws; run this test with -update", p.ID, file)
			}
		}
	}
	files, err := filepath.Glob("panels/*.png")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if want[filepath.Base(file)] {
			continue
		}
		if !*update {
			t.Errorf("no display tree belongs to %s", file)
		} else if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
	if len(want) < 12 {
		t.Errorf("the documentation has %d display trees, want at least 12", len(want))
	}
}

// draws returns the picture of the first display.show in a code block, or nil.
func draws(t *testing.T, kind, code string) *image.NRGBA {
	t.Helper()
	for line := range strings.Lines(code) {
		f, err := glasses.Parse([]byte(strings.TrimSpace(line)))
		if err != nil || f.Type != glasses.TypeDisplayShow {
			continue
		}
		show, err := glasses.ParseShow(f.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(kind, everyModel) {
			return render.Sheet(glasses.Models(), &show.Tree)
		}
		model, _ := glasses.Model("rayban_display")
		return render.Draw(model, render.Show(model, glasses.View{}, &show.Tree))
	}
	return nil
}

// store writes a picture with as few colours as possible.
func store(t *testing.T, file string, picture *image.NRGBA) {
	t.Helper()
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, paletted(picture)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("panels", file), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// paletted returns the same pixels with a palette if 256 colours suffice.
func paletted(picture *image.NRGBA) image.Image {
	small := image.NewPaletted(picture.Rect, nil)
	index := map[[4]byte]uint8{}
	for i := 0; i < len(picture.Pix); i += 4 {
		colour := [4]byte(picture.Pix[i : i+4])
		at, known := index[colour]
		if !known {
			if len(index) == 256 {
				return picture
			}
			at = uint8(len(index))
			index[colour] = at
			small.Palette = append(small.Palette, picture.NRGBAAt(i/4%picture.Rect.Dx(), i/4/picture.Rect.Dx()))
		}
		small.Pix[i/4] = at
	}
	return small
}
