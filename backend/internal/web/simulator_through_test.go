package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/test/chromium"
)

// slide sets a slider like a user who drags it.
func (s *pageTest) slide(id string, value int) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const e = document.querySelector("#%s"); e.value = %d; e.dispatchEvent(new Event("input")); }`, id, value)))
}

func (s *pageTest) pick(id, value string) {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const e = document.querySelector("#%s"); e.value = %q; e.dispatchEvent(new Event("change")); }`, id, value)))
}

// composite returns the pixels of the see-through view, after all pending drawing is done.
func (s *pageTest) composite() *image.NRGBA {
	s.t.Helper()
	s.do(chromedp.Evaluate[chromedp.Void](`window.drawn = 0; requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = 1; }))`))
	s.see("window.drawn === 1")
	return decodePNG(s.t, s.pngOf("#composite"))
}

// photo returns a picture with every shade of every colour.
func photo(r image.Rectangle) *image.NRGBA {
	img := image.NewNRGBA(r)
	for y := range r.Dy() {
		for x := range r.Dx() {
			img.SetNRGBA(x, y, color.NRGBA{uint8(x), uint8(y), uint8(x*7 + y*13), 255})
		}
	}
	return img
}

// wantBlend compares pixels with min(255, scene*ambient + panel*brightness), which it computes itself, with the light
// in percent. Each pixel of panel is drawn as k by k pixels; the top left corner of the panel is at the given point.
func wantBlend(t *testing.T, what string, got, scene, panel *image.NRGBA, at image.Point, k, ambient, brightness int) {
	t.Helper()
	if got.Rect != scene.Rect {
		t.Fatalf("%s: got %v pixels, want %v", what, got.Rect, scene.Rect)
	}
	place := image.Rect(0, 0, panel.Rect.Dx()*k, panel.Rect.Dy()*k).Add(at)
	wrong := 0
	for i := range got.Pix {
		if i%4 == 3 { // alpha
			continue
		}
		want := int(scene.Pix[i]) * ambient
		if p := image.Pt(i%got.Stride/4, i/got.Stride); p.In(place) {
			p = p.Sub(at).Div(k)
			want += int(panel.Pix[p.Y*panel.Stride+4*p.X+i%4]) * brightness
		}
		want = min(255, (want+50)/100)
		if d := int(got.Pix[i]) - want; d > 1 || d < -1 {
			if wrong++; wrong <= 3 {
				t.Errorf("%s: at %d, %d the value is %d, want %d", what, i%got.Stride/4, i/got.Stride, got.Pix[i], want)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d values differ from the sum of scene and panel", what, wrong)
	}
}

// place returns the position of the panel in the see-through view.
func (s *pageTest) place() image.Point {
	s.t.Helper()
	at := eval[[]float64](s, `(() => { const p = document.querySelector("#panel").getBoundingClientRect(), f = document.querySelector("#composite").getBoundingClientRect(); return [p.left - f.left, p.top - f.top]; })()`)
	return image.Pt(int(math.Round(at[0])), int(math.Round(at[1])))
}

func TestSimulatorThrough_AddsThePanelToTheScene(t *testing.T) {
	// In these windows, a pixel of the panel is a whole number of page pixels.
	for model, height := range map[string]int64{"even_g1": 800, "brilliant_halo": 900, "rayban_display": 1450} {
		t.Run(model, func(t *testing.T) {
			s := newPageTest(t, model)
			s.do(chromedp.EmulateViewport(1280, height))
			s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
			view := glasses.View{Tree: treeOf(t, callScreen)}
			s.wantPixels(model, view)
			panel := render.Draw(mustModel(t, model), view)
			s.do(chromedp.Click("#view-through"))
			s.see(`document.querySelector("#view-through").ariaPressed === "true" && document.querySelector("#composite").checkVisibility() && document.querySelector("#brightness").checkVisibility()`)
			s.composite() // once the new size is settled
			s.see(`Number.isInteger(document.querySelector("#panel").getBoundingClientRect().width / document.querySelector("#canvas").width)`)
			k := eval[int](s, `document.querySelector("#panel").getBoundingClientRect().width / document.querySelector("#canvas").width`)
			s.pick("scene", "file")
			s.see(`document.querySelector("#scene-state").textContent === "Choose a picture."`)
			s.load(photo(image.Rect(0, 0, 10, 10)))
			scene := photo(s.composite().Rect) // has the size of the view, so that it is not scaled
			s.load(scene)
			for _, light := range [][2]int{{100, 100}, {70, 100}, {35, 55}, {100, 0}} {
				s.slide("ambient", light[0])
				s.slide("brightness", light[1])
				wantBlend(t, fmt.Sprintf("ambient %d, brightness %d", light[0], light[1]), s.composite(), scene, panel, s.place(),
					k, light[0], light[1])
			}
			s.slide("brightness", 90)
			s.wantPageShows(s.composite())
			s.wantPixels(model, view) // the panel itself is unchanged
		})
	}
}

// load gives the page a picture of the user's own for the scene.
func (s *pageTest) load(scene *image.NRGBA) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "own.png")
	if err := os.WriteFile(file, render.PNG(scene), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.do(chromedp.Evaluate[chromedp.Void](`{ const bitmap = window.createImageBitmap; window.loaded = false;
		window.createImageBitmap = async (from) => { const made = await bitmap(from); setTimeout(() => { window.loaded = true; }); return made; }; }`),
		chromedp.SetUploadFiles("#scene-file", []string{file}))
	s.see(`window.loaded && document.querySelector("#scene-state").textContent === ""`)
}

func TestSimulatorThrough_HasBuiltInScenes(t *testing.T) {
	s := newPageTest(t, "even_g1")
	s.do(chromedp.EmulateViewport(1280, 800))
	s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
	view := glasses.View{Tree: treeOf(t, callScreen)}
	s.wantPixels("even_g1", view)
	panel := render.Draw(mustModel(t, "even_g1"), view)
	s.do(chromedp.Click("#view-through"))
	s.see(`document.querySelector("#composite").checkVisibility()`)
	var before []byte
	for _, id := range []string{"street", "office", "night", "snow"} {
		s.pick("scene", id)
		s.slide("ambient", 100)
		s.slide("brightness", 0)
		alone := s.composite()
		if bytes.Equal(alone.Pix, before) {
			t.Errorf("the scene %s is the one before it", id)
		}
		before = alone.Pix
		s.slide("ambient", 65)
		s.slide("brightness", 90)
		wantBlend(t, id, s.composite(), alone, panel, s.place(), 1, 65, 90)
	}
}

// wantPageShows compares the browser's painting of the see-through view with the view's pixels. The page draws a line
// around the edge of the panel.
func (s *pageTest) wantPageShows(want *image.NRGBA) {
	s.t.Helper()
	data, err := chromium.Run(s.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		s.t.Fatal(err)
	}
	got := decodePNG(s.t, data)
	box := eval[[]float64](s, `(() => { const b = document.querySelector("#composite").getBoundingClientRect(), p = document.querySelector("#panel").getBoundingClientRect();
		return [b.left, b.top, p.left - b.left, p.top - b.top, p.width, p.height]; })()`)
	from := image.Pt(int(math.Round(box[0])), int(math.Round(box[1])))
	inside := image.Rect(int(box[2]), int(box[3]), int(box[2]+box[4]), int(box[3]+box[5])).Inset(2)
	isRound := eval[string](s, `document.querySelector("#panel").dataset.shape`) == glasses.ShapeRound
	centre := inside.Min.Add(inside.Max).Div(2)
	wrong := 0
	for y := inside.Min.Y; y < inside.Max.Y; y++ {
		for x := inside.Min.X; x < inside.Max.X; x++ {
			if d := image.Pt(x, y).Sub(centre); isRound && d.X*d.X+d.Y*d.Y > inside.Dx()*inside.Dx()/4 {
				continue
			}
			a, b := got.PixOffset(from.X+x, from.Y+y), want.PixOffset(x, y)
			for c := range 3 {
				if d := int(got.Pix[a+c]) - int(want.Pix[b+c]); d > 1 || d < -1 {
					wrong++
				}
			}
		}
	}
	if wrong > 0 {
		s.t.Errorf("%d values on the screen differ from the see-through view", wrong)
	}
}

func TestSimulatorThrough_ScreenshotSavesWhatIsSeen(t *testing.T) {
	s := newPageTest(t, "even_g1")
	s.do(chromedp.EmulateViewport(1280, 800))
	s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(callScreen)))
	s.wantPixels("even_g1", glasses.View{Tree: treeOf(t, callScreen)})
	s.see(`document.querySelector("#screenshot").title === "Save the panel's pixels as a PNG"`)
	s.do(chromedp.Click("#view-through"))
	s.see(`document.querySelector("#screenshot").title === "Save the panel in its scene as a PNG"`)
	want := s.composite()
	s.do(chromedp.Click("#zoom-in"), chromedp.Click("#zoom-in")) // not part of the picture
	s.catchFiles()
	s.do(chromedp.Click("#screenshot"))
	s.see("window.shot")
	data, err := base64.StdEncoding.DecodeString(eval[string](s, "window.shot"))
	if err != nil {
		t.Fatal(err)
	}
	got := decodePNG(t, data)
	if !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("the screenshot of %v differs from what was seen, %v", got.Rect, want.Rect)
	}
	s.do(chromedp.Click("#view-opaque"))
	s.see(`!document.querySelector("#composite").checkVisibility() && getComputedStyle(document.querySelector("#canvas")).visibility === "visible"`)
	if !bytes.Equal(pixelsOf(t, s.pngOf("#canvas")), render.Draw(mustModel(t, "even_g1"),
		glasses.View{Tree: treeOf(t, callScreen)}).Pix) {
		t.Error("the opaque view does not show the panel's pixels")
	}
}

func TestSimulatorThrough_SurvivesAReload(t *testing.T) {
	s := newPageTest(t, "brilliant_halo")
	s.do(chromedp.Focus("#view-opaque"), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter)) // by keyboard alone
	s.see(`document.activeElement.id === "view-through" && document.querySelector("#see-through").checkVisibility()`)
	s.do(chromedp.Focus("#scene"), chromedp.KeyEvent("N"))
	s.see(`document.querySelector("#scene").value === "night"`)
	s.do(chromedp.Focus("#ambient"), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	s.see(`document.querySelector("#ambient-level").textContent === "10 %"`)
	before := s.composite()
	s.do(chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#composite").checkVisibility()`)
	s.see(`document.querySelector("#scene").value === "night" && document.querySelector("#ambient").value === "10"`)
	s.result(s.command(glasses.TypeDisplayClear, struct{}{}))
	if !bytes.Equal(s.composite().Pix, before.Pix) {
		t.Error("after a reload, the view differs")
	}

	dir := t.TempDir()
	notes, own := filepath.Join(dir, "notes.png"), filepath.Join(dir, "own.png")
	blue := image.NewNRGBA(image.Rect(0, 0, 40, 30))
	draw.Draw(blue, blue.Rect, image.NewUniform(color.NRGBA{0, 0, 255, 255}), image.Point{}, draw.Src)
	for name, data := range map[string][]byte{notes: []byte("notes"), own: render.PNG(blue)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.pick("scene", "file")
	s.do(chromedp.SetUploadFiles("#scene-file", []string{notes}))
	s.see(`document.querySelector("#scene-state").textContent.startsWith("The browser cannot read this file")`)
	s.do(chromedp.SetUploadFiles("#scene-file", []string{own}))
	s.see(`document.querySelector("#scene-state").textContent === ""`)
	s.do(chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#scene").value === "file" && document.querySelector("#scene-state").textContent === ""`)
	if c := s.composite().NRGBAAt(3, 3); c.R > 5 || c.G > 5 || c.B < 20 || c.B > 31 { // at 10 % ambient light
		t.Errorf("after a reload, the person's blue picture is %v", c)
	}
	s.picture("through-own")
	s.do(chromedp.Evaluate[chromedp.Void](`sessionStorage.setItem("simulator see-through", "{broken")`), chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#view-opaque").ariaPressed === "true" &&
		!document.querySelector("#composite").checkVisibility()`)

	// Glasses without a display have no see-through view.
	s.do(chromedp.Click("#view-through"))
	s.pick("device", "system_audio")
	s.see(`!document.querySelector("#view-through").checkVisibility() && !document.querySelector("#composite").checkVisibility() && !document.querySelector("#see-through").checkVisibility()`)
}

// tracks counts the live tracks of the webcams that the page has opened.
const tracks = `window.opened.flatMap((o) => o.getTracks()).filter((t) => t.readyState === "live").length`

func TestSimulatorThrough_WebcamOnlyOnChoice(t *testing.T) {
	s := newPageTest(t, "brilliant_halo", withCamera)
	count := chromedp.Evaluate[chromedp.Void](`{ window.opened = []; const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
		navigator.mediaDevices.getUserMedia = async (what) => { const stream = await open(what); window.opened.push(stream); return stream; }; }`)
	s.do(count, chromedp.Click("#view-through"))
	alone := s.composite()
	if n := eval[int](s, "window.opened.length"); n != 0 {
		t.Errorf("the see-through view opened %d webcams before anybody chose one", n)
	}
	s.pick("scene", "webcam")
	s.see(tracks + " === 1")
	s.see(`document.querySelector("#scene-state").textContent === ""`)
	for first := s.composite(); bytes.Equal(first.Pix, alone.Pix) || bytes.Equal(s.composite().Pix, first.Pix); first = s.composite() {
		if s.ctx.Err() != nil {
			t.Fatal("the view does not follow the webcam")
		}
	}
	s.picture("through-webcam")
	for name, leave := range map[string]func(){
		"the opaque view": func() { s.do(chromedp.Click("#view-opaque")) },
		"another scene":   func() { s.pick("scene", "snow") },
		"no display":      func() { s.pick("device", "system_audio") },
	} {
		s.pick("device", "brilliant_halo")
		s.do(chromedp.Click("#view-through"))
		s.pick("scene", "webcam")
		s.see(tracks + " === 1")
		t.Logf("leave for %s", name)
		leave()
		s.see(tracks + " === 0")
	}
	s.pick("device", "brilliant_halo")
	s.do(chromedp.Click("#view-through"))
	s.pick("scene", "webcam")
	s.see(tracks + " === 1")
	s.do(chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#scene").value === "street" && document.querySelector("#composite").checkVisibility()`)
}

// The headless browser itself denies access to the camera.
func TestSimulatorThrough_WebcamRefused(t *testing.T) {
	s := newPageTest(t, "brilliant_halo")
	s.do(chromedp.Click("#view-through"))
	s.pick("scene", "snow")
	snow := s.composite()
	s.pick("scene", "webcam")
	s.see(`document.querySelector("#scene-state").checkVisibility() && document.querySelector("#scene-state").textContent.startsWith("The browser refuses the camera")`)
	s.see(`document.querySelector("#scene").value === "snow"`)
	s.do(chromedp.EmulateViewport(1280, 800))
	if got := s.composite(); got.Rect == snow.Rect && !bytes.Equal(got.Pix, snow.Pix) {
		t.Error("a refused webcam does not fall back to the scene before it")
	}
	s.picture("through-refused")
}

// Pictures for review: each scene with each kind of panel.
func TestSimulatorThrough_Pictures(t *testing.T) {
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS is not set")
	}
	for model, scene := range map[string]string{"rayban_display": "street", "even_g2": "office", "brilliant_halo": "night", "even_g1": "snow"} {
		s := newPageTest(t, model)
		s.showMenu()
		s.do(chromedp.Click("#view-through"))
		s.pick("scene", scene)
		s.picture("through-" + scene)
	}
}
