package render_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// translation is the first article of the Universal Declaration of Human Rights in a language.
type translation struct{ tag, direction, name, heading, article string }

func translations(t testing.TB) []translation {
	t.Helper()
	data, err := os.ReadFile("testdata/languages/articles.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []translation
	for _, part := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		lines := strings.Split(part, "\n")
		words := strings.SplitN(lines[0], " ", 3)
		if len(lines) != 3 || len(words) != 3 {
			t.Fatalf("not a translation: %q", part)
		}
		all = append(all, translation{words[0], words[1], words[2], lines[1], lines[2]})
	}
	return all
}

// view returns a view of the translation on a model, starting at its beginning.
func (l translation) view(m glasses.DeviceModel) glasses.View {
	tree := column(glasses.Node{Type: glasses.NodeText, Style: glasses.StyleTitle, Text: l.heading}, text(l.article))
	tree.Language = l.tag
	return render.Clamp(m, glasses.View{Tree: &tree})
}

func TestLanguages_TheCorpusIsComposedAndCoversEveryDirection(t *testing.T) {
	directions := map[string]int{}
	for _, l := range translations(t) {
		directions[l.direction]++
		if !norm.NFC.IsNormalString(l.heading + l.article) {
			t.Errorf("%s is not in normalisation form C", l.name)
		}
	}
	if directions["ltr"] < 40 || directions["rtl"] < 7 || len(directions) != 2 {
		t.Errorf("unexpected numbers of languages by direction: %v", directions)
	}
}

// TestLanguages_LookAsTheyDid compares the picture of each language on each model with its tile on the model's sheet.
func TestLanguages_LookAsTheyDid(t *testing.T) {
	all := translations(t)
	for _, m := range panels() {
		file := filepath.Join("testdata", "languages", m.ID+".png")
		drawn := make([]*image.NRGBA, len(all))
		for i, l := range all {
			v := l.view(m)
			drawn[i] = drawCase(m, l.name, v)
			missing := ""
			for _, text := range render.Inspect(m, v).Texts {
				missing += text.Missing
			}
			if missing != "" {
				t.Errorf("%s, %s: no font has %s", m.ID, l.name, missing)
			}
		}
		if *update {
			writeSheet(t, file, drawn)
		}
		sheet := readSheet(t, file)
		for i, picture := range drawn {
			if !sheet.has(i, picture) {
				t.Errorf("%s: %s differs; run with -update and look at it", file, all[i].name)
			}
		}
	}
}

// sheetColumns is the number of pictures per row of a sheet, and sheetGap the width of the line between two pictures,
// in pixels.
const sheetColumns, sheetGap = 6, 2

// tile returns the position of picture i on a sheet. All pictures have the same bounds.
func tile(i int, bounds image.Rectangle) image.Rectangle {
	column, row := i%sheetColumns, i/sheetColumns
	return bounds.Add(image.Pt(column*(bounds.Dx()+sheetGap), row*(bounds.Dy()+sheetGap)))
}

// writeSheet writes pictures of the same size, with at most 256 colours in total, as one picture.
func writeSheet(t *testing.T, file string, pictures []*image.NRGBA) {
	t.Helper()
	var palette color.Palette
	known := map[color.NRGBA]bool{}
	var bounds image.Rectangle
	for i, picture := range pictures {
		bounds = bounds.Union(tile(i, picture.Rect))
		for p := range picture.Pix {
			if at := picture.Pix[p:]; p%4 == 0 && !known[color.NRGBA{at[0], at[1], at[2], at[3]}] {
				c := color.NRGBA{at[0], at[1], at[2], at[3]}
				known[c], palette = true, append(palette, c)
			}
		}
	}
	sheet := image.NewPaletted(bounds, palette)
	for i := range sheet.Pix { // the lines between the pictures
		sheet.Pix[i] = 1
	}
	for i, picture := range pictures {
		draw.Draw(sheet, tile(i, picture.Rect), picture, image.Point{}, draw.Src)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, sheet); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sheet is a golden file that contains many pictures.
type sheet struct{ *image.Paletted }

func readSheet(t *testing.T, file string) sheet {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return sheet{img.(*image.Paletted)}
}

// has reports whether picture i of the sheet equals the given picture.
func (s sheet) has(i int, picture *image.NRGBA) bool {
	place := tile(i, picture.Rect)
	if !place.In(s.Rect) {
		return false
	}
	colours := make([][4]byte, len(s.Palette))
	for i, c := range s.Palette {
		r, g, b, a := c.RGBA()
		colours[i] = [4]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)}
	}
	width := picture.Rect.Dx()
	var above, wantedAbove []byte
	for y := range picture.Rect.Dy() {
		want := s.Pix[s.PixOffset(place.Min.X, place.Min.Y+y):][:width]
		got := picture.Pix[y*picture.Stride:][:4*width]
		if y > 0 && bytes.Equal(got, above) && bytes.Equal(want, wantedAbove) {
			continue
		}
		above, wantedAbove = got, want
		for x := range width {
			if colours[want[x]] != [4]byte(got[4*x:]) {
				return false
			}
		}
	}
	return true
}
