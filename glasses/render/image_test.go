package render_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media/exiftest"
	"github.com/service-dev/service/glasses/render"
)

func picture(data []byte) glasses.Node {
	return glasses.Node{Type: glasses.NodeImage, Data: base64.StdEncoding.EncodeToString(data)}
}

func encoded(t testing.TB, w, h int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewPaletted(image.Rect(0, 0, w, h), palette.Plan9)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// claim returns a PNG whose header declares a different size than its pixels have.
func claim(t testing.TB, w, h uint32) []byte {
	data := encoded(t, 8, 8)
	for i := range 4 {
		data[16+i], data[20+i] = byte(w>>(24-8*i)), byte(h>>(24-8*i))
	}
	sum := crc32.ChecksumIEEE(data[12:29])
	for i := range 4 {
		data[29+i] = byte(sum >> (24 - 8*i))
	}
	return data
}

func jpegOf(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewRGBA(image.Rect(0, 0, 20, 10)), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCheckImages(t *testing.T) {
	column := func(nodes ...glasses.Node) glasses.Node {
		return glasses.Node{Type: glasses.NodeColumn, Children: nodes}
	}
	for name, c := range map[string]struct {
		tree glasses.Node
		says string // part of the refusal; empty if accepted
	}{
		"none":         {tree: column()},
		"png":          {tree: column(picture(gradient(10, 10)))},
		"jpeg":         {tree: column(picture(jpegOf(t)))},
		"4 megapixels": {tree: picture(encoded(t, 2048, 2048))},
		"more":         {picture(encoded(t, 2048, 2049)), "tree.data: the pictures of the tree"},
		"more together": {column(picture(encoded(t, 2000, 2000)), picture(encoded(t, 1000, 1000))),
			"tree.children[1].data: the pictures of the tree"},
		"claims to be huge": {picture(claim(t, 1<<15, 1<<15)), "4194304"},
		"claims a bit more": {picture(claim(t, 9, 9)), "must be a readable PNG or JPEG"},
		"cut": {column(column(picture(gradient(90, 90)[:200]))),
			"tree.children[0].children[0].data must be"},
		"no picture": {picture([]byte("GIF89a")), "must be a readable PNG or JPEG"},
		"not base64": {glasses.Node{Type: glasses.NodeImage, Data: "%"}, "must be a readable PNG or JPEG"},
	} {
		err := render.CheckImages(c.tree)
		if (err == nil) != (c.says == "") || err != nil && (err.Code != glasses.CodeBadPayload ||
			!strings.Contains(err.Message, c.says)) {
			t.Errorf("%s: got error %v, want %q", name, err, c.says)
		}
		render.Draw(panels()[0], glasses.View{Tree: &c.tree}) // draws something even if the image is refused
	}
}

func TestPicturesKeepTheirProportionsAndMeanColour(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	for name, c := range map[string]struct {
		w, h, width, height int
		want                image.Point
	}{
		"own size": {w: 50, h: 30, want: image.Pt(50, 30)}, "width": {w: 50, h: 30, width: 25, want: image.Pt(25, 15)},
		"height":   {w: 50, h: 30, height: 60, want: image.Pt(100, 60)},
		"both":     {w: 50, h: 30, width: 100, height: 30, want: image.Pt(50, 30)},
		"too wide": {w: 1200, h: 300, want: image.Pt(600, 150)},
		"too high": {w: 300, h: 1200, want: image.Pt(150, 600)},
	} {
		white := image.NewGray(image.Rect(0, 0, c.w, c.h))
		for i := range white.Pix {
			white.Pix[i] = 200
		}
		var data bytes.Buffer
		if err := png.Encode(&data, white); err != nil {
			t.Fatal(err)
		}
		node := picture(data.Bytes())
		node.Width, node.Height = c.width, c.height
		tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{node}}
		img := render.Draw(m, glasses.View{Tree: &tree})
		var lit image.Rectangle
		for y := range 600 {
			for x := range 600 {
				if px := img.NRGBAAt(x, y); px.R != 0 {
					lit = lit.Union(image.Rect(x, y, x+1, y+1))
					if px.R != 200 || px.G != 200 || px.B != 200 {
						t.Fatalf("%s: got %v at %d,%d, want grey 200", name, px, x, y)
					}
				}
			}
		}
		if lit.Size() != c.want || lit.Min != (image.Point{}) {
			t.Errorf("%s: %v, want %v", name, lit, c.want)
		}
	}
}

// A picture is upright on a panel, as in a browser, and its layout uses the upright size.
func TestPictures_AreUpright(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	for o := 1; o <= 8; o++ {
		for kind, file := range map[string][]byte{"JPEG": exiftest.JPEG(binary.LittleEndian, o),
			"PNG": exiftest.PNG(binary.BigEndian, o)} {
			node := picture(file)
			node.Width = 2 * exiftest.Width
			tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{node}}
			if err := render.CheckImages(tree); err != nil {
				t.Errorf("%s with orientation %d: %v", kind, o, err)
			}
			img := render.Draw(m, glasses.View{Tree: &tree})
			if err := exiftest.CheckUpright(img, image.Rect(0, 0, 2*exiftest.Width, 2*exiftest.Height)); err != nil {
				t.Errorf("%s with orientation %d: %v", kind, o, err)
			}
		}
	}
}

func FuzzImage(f *testing.F) {
	f.Add(gradient(20, 12), 10, 0)
	f.Add(jpegOf(f), 0, 4000)
	f.Add(exiftest.JPEG(binary.LittleEndian, 6), 60, 0)
	f.Add(claim(f, 1<<15, 1<<15), 0, 0)
	f.Add([]byte("\xff\xd8\xff\xe0"), 1, 1)
	f.Fuzz(func(t *testing.T, data []byte, width, height int) {
		node := picture(data)
		node.Width, node.Height = width&4095, height&4095
		_ = render.CheckImages(node)
		for _, m := range panels() {
			img := render.Draw(m, glasses.View{Tree: &node})
			if img.Rect.Dx() != m.Panel.Width || img.Rect.Dy() != m.Panel.Height {
				t.Fatal(img.Rect)
			}
		}
	})
}

// Transparent and black pixels light no pixel of a panel, and dithering does not change colours that a panel has.
func TestPictures_KeepBlackAndThePanelsOwnColours(t *testing.T) {
	const side = 64
	fills := map[string]color.NRGBA{"transparent": {}, "transparent white": {R: 255, G: 255, B: 255},
		"black": {A: 255}}
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			continue
		}
		for name, fill := range fills {
			if got := colours(t, m, side, fill); got[color.NRGBA{A: 255}] != side*side {
				t.Errorf("%s, a picture that is %s: %v, want every pixel black", m.ID, name, got)
			}
		}
	}
	m, _ := glasses.Model("brilliant_frame")
	noise := color.NRGBA{R: 2, G: 1, B: 2, A: 255} // such as black has in a JPEG
	if got := colours(t, m, side, noise); got[color.NRGBA{A: 255}] != side*side {
		t.Errorf("almost black: %v, want every pixel black", got)
	}
	for _, c := range render.FramePalette() {
		own := color.NRGBA{c[0], c[1], c[2], 255}
		if got := colours(t, m, side, own); got[own] != side*side {
			t.Errorf("a picture in the panel's colour %v is drawn as %v", own, got)
		}
	}
}

// colours returns the colours that a panel shows for a square of one colour, with the number of pixels of each.
func colours(t *testing.T, m glasses.DeviceModel, side int, fill color.NRGBA) map[color.NRGBA]int {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, side, side))
	draw.Draw(img, img.Rect, image.NewUniform(fill), image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	tree := picture(out.Bytes())
	// Centred by two growing texts without words, so that the picture is inside a round panel, too.
	space := func() glasses.Node { return glasses.Node{Type: glasses.NodeColumn, Grow: 1} }
	row := glasses.Node{Type: glasses.NodeRow, Children: []glasses.Node{space(), tree, space()}}
	column := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{space(), row, space()}}
	shown := render.Draw(m, glasses.View{Tree: &column})
	empty := shown.Rect.Dx()*shown.Rect.Dy() - side*side
	found := map[color.NRGBA]int{}
	for y := range shown.Rect.Dy() {
		for x := range shown.Rect.Dx() {
			found[shown.NRGBAAt(x, y)]++
		}
	}
	for c, n := range found { // except the black around the picture
		if c.R == 0 && c.G == 0 && c.B == 0 {
			delete(found, c)
			if n > empty {
				found[color.NRGBA{A: 255}] = n - empty
			}
		}
	}
	return found
}
