package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/draw"
	"image/png"
	"os"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
)

// callScreen is the tree of the renderer's golden picture "button".
const callScreen = `{"tree":{"type":"column","gap":8,"children":[{"type":"text","text":"Take the call?"},
	{"type":"row","gap":12,"children":[{"type":"button","id":"yes","text":"Accept","colour":"#a3ce27"},
	{"type":"button","id":"no","text":"Decline"}]}]}}`

func TestSimulatorZoom_WholeMultiplesWithGrid(t *testing.T) {
	for _, model := range []string{"rayban_display", "even_g1", "brilliant_frame"} {
		t.Run(model, func(t *testing.T) {
			s := newPageTest(t, model)
			s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
			s.wantPixels(model, glasses.View{Tree: treeOf(t, callScreen)})
			want := s.pixels()
			const zoom = `(() => { const c = document.querySelector("#canvas"), b = c.getBoundingClientRect(); return b.width / c.width === b.height / c.height ? b.width / c.width : 0; })()`
			last := eval[float64](s, zoom)
			for eval[bool](s, `document.querySelector("#zoom-in").ariaDisabled !== "true"`) {
				s.do(chromedp.Click("#zoom-in"))
				got := eval[float64](s, zoom)
				if got != float64(int(got)) || got <= last {
					t.Errorf("zoom in from %v: got %v, want a larger whole multiple", last, got)
				}
				if grid := s.grid(); grid != (got >= 4) {
					t.Errorf("at zoom %v: got grid %v, want it from 4", got, grid)
				}
				last = got
			}
			if last < 4 {
				t.Errorf("the largest zoom is %v, want 4 or more", last)
			}
			s.picture("zoom-" + model)
			if !bytes.Equal(s.pixels(), want) {
				t.Error("zoom and grid changed the pixels of the panel")
			}
			s.see(`document.querySelector("#lens").scrollWidth > document.querySelector("#lens").clientWidth`)
			s.do(chromedp.Click("#zoom-fit"))
			s.see(`document.querySelector("#zoom-fit").ariaPressed === "true" && document.querySelector("#lens").scrollWidth <= document.querySelector("#lens").clientWidth`)
		})
	}
}

// grid reports whether the page draws a grid with one cell for each pixel of the panel.
func (s *pageTest) grid() bool {
	s.t.Helper()
	return eval[bool](s, `(() => { const g = getComputedStyle(document.querySelector("#panel"), "::after"), c = document.querySelector("#canvas");
		const pixel = c.getBoundingClientRect().width / c.width + "px";
		return g.content !== "none" && g.backgroundImage.includes("gradient") && g.backgroundSize.startsWith(pixel + " " + pixel); })()`)
}

func TestSimulatorZoom_ScreenshotEqualsGolden(t *testing.T) {
	for _, model := range []string{"rayban_display", "even_g1", "brilliant_halo"} {
		t.Run(model, func(t *testing.T) {
			s := newPageTest(t, model)
			s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
			s.wantPixels(model, glasses.View{Tree: treeOf(t, callScreen)})
			for range 5 { // neither zoom nor grid is part of the picture
				s.do(chromedp.Click("#zoom-in"))
			}
			s.catchFiles()
			s.do(chromedp.Click("#screenshot"))
			s.see("window.shot && window.shotName")
			if name := eval[string](s, "window.shotName"); !regexp.MustCompile(`^` + pageTestSession +
				`-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\.png$`).MatchString(name) {
				t.Errorf("the file is named %q, want the session and the time", name)
			}
			data, err := base64.StdEncoding.DecodeString(eval[string](s, "window.shot"))
			if err != nil {
				t.Fatal(err)
			}
			golden, err := os.ReadFile("../../../glasses/render/testdata/" + model + "/button.png")
			if err != nil {
				t.Fatal(err)
			}
			wantSamePicture(t, data, golden)
		})
	}
}

// catchFiles makes the page keep a file that it saves, in base64, and its name, instead of downloading it.
func (s *pageTest) catchFiles() {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](`{ const make = URL.createObjectURL.bind(URL);
		URL.createObjectURL = (file) => { const reader = new FileReader(); reader.onload = () => { window.shot = reader.result.split(",")[1]; }; reader.readAsDataURL(file); return make(file); };
		HTMLAnchorElement.prototype.click = function () { window.shotName = this.download; }; }`))
}

func wantSamePicture(t *testing.T, got, want []byte) {
	t.Helper()
	a, b := decodePNG(t, got), decodePNG(t, want)
	if a.Rect != b.Rect {
		t.Fatalf("the picture has %v pixels, want %v", a.Rect, b.Rect)
	}
	for i := range b.Pix {
		if at := i / 4; a.Pix[i] != b.Pix[i] {
			t.Fatalf("pixel %d, %d differs: got %v, want %v", at%b.Rect.Dx(), at/b.Rect.Dx(), a.Pix[4*at:4*at+4],
				b.Pix[4*at:4*at+4])
		}
	}
}

func decodePNG(t *testing.T, data []byte) *image.NRGBA {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	rgba := image.NewNRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(rgba, rgba.Rect, img, img.Bounds().Min, draw.Src)
	return rgba
}

func pixelsOf(t *testing.T, data []byte) []byte { return decodePNG(t, data).Pix }
