package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/test/chromium"
)

const menu = `{"tree":{"type":"column","gap":12,"padding":24,"children":[
	{"type":"text","text":"Trails near you","style":"title"},
	{"type":"text","text":"Pick one and look up.","style":"caption"},
	{"type":"list","gap":6,"grow":1,"overflow":"scroll","children":[
		{"type":"button","id":"ridge","text":"Ridge walk"},{"type":"button","id":"lake","text":"Round the lake"},
		{"type":"button","id":"mill","text":"Old mill"}]},
	{"type":"progress","value":40}]}}`

func (s *pageTest) showMenu() {
	s.t.Helper()
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		s.t.Fatalf("display.show: got error %+v, want none", r.Error)
	}
	s.see(`document.querySelector("#display").innerText.includes("Ridge walk")`)
}

// isConnected is true once the page's socket is open and its program runs.
const isConnected = `document.querySelector("#socket")?.textContent === "Connected"`

// pixels returns the canvas before scaling.
func (s *pageTest) pixels() []byte {
	s.t.Helper()
	text := eval[string](s,
		`(() => { const c = document.querySelector("#canvas"); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let t = ""; for (let i = 0; i < d.length; i += 8192) t += String.fromCharCode(...d.subarray(i, i + 8192)); return btoa(t); })()`)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// wantPixels compares the canvas with the output of the same renderer, run natively.
func (s *pageTest) wantPixels(model string, v glasses.View) {
	s.t.Helper()
	m, _ := glasses.Model(model)
	want := render.Draw(m, render.Clamp(m, v)).Pix
	if !s.becomes(want, s.pixels) {
		s.t.Errorf("%s: the canvas differs from the renderer's output", model)
	}
}

// becomes waits until pixels returns the wanted pixels, because a picture is drawn in the next animation frame.
func (s *pageTest) becomes(want []byte, pixels func() []byte) bool {
	s.t.Helper()
	for end := time.Now().Add(chromium.StepLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if bytes.Equal(pixels(), want) {
			return true
		}
	}
	return false
}

func treeOf(t *testing.T, show string) *glasses.Node {
	t.Helper()
	s, err := glasses.ParseShow([]byte(show))
	if err != nil {
		t.Fatal(err)
	}
	return &s.Tree
}

func TestSimulatorPage_ShowsWhatTheRendererDraws(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	s.wantPixels("rayban_display", glasses.View{Tree: treeOf(t, menu)})
	s.picture("menu")
	t.Logf("the page takes %.1f ms to draw 600x600 pixels", eval[float64](s,
		`(() => { const begin = performance.now(); for (let i = 0; i < 20; i++) glasses.picture(); return (performance.now() - begin) / 20; })()`))

	s.do(chromedp.Focus("#panel"), chromedp.KeyEvent(kb.ArrowDown)) // arrow down
	if p := string(s.next(glasses.TypeInput, "").Payload); !strings.Contains(p, `"navigate"`) ||
		!strings.Contains(p, `"lake"`) {
		t.Errorf("arrow down sent %s, want navigate with the target lake", p)
	}
	s.wantPixels("rayban_display", glasses.View{Tree: treeOf(t, menu), Focus: 1})
	s.see(`document.querySelector("#focus").textContent === "Focus: Round the lake"`)
	for key, want := range map[string]string{"\r": `"select"`, "\u001b": `"back"`, " ": `"tap"`} {
		s.do(chromedp.KeyEvent(key))
		if p := string(s.next(glasses.TypeInput, "").Payload); !strings.Contains(p, want) {
			t.Errorf("key %q sent %s, want the input of that key", key, p)
		}
	}
	s.do(chromedp.Click("#panel"))
	var in glasses.Input
	if err := json.Unmarshal(s.next(glasses.TypeInput, "").Payload, &in); err != nil || in.Kind != glasses.InputTap ||
		in.X < 290 || in.X > 310 {
		t.Errorf("a tap in the middle sent %+v, error %v; want x near 300", in, err)
	}

	for _, m := range glasses.Models() {
		if m.ID == "rayban_display" {
			continue
		}
		s.do(chromedp.Evaluate[chromedp.Void](`{ const d = document.querySelector("#device"); d.value = "` + m.ID +
			`"; d.dispatchEvent(new Event("change")); }`))
		var change glasses.DeviceChange
		if err := json.Unmarshal(s.next(glasses.TypeDevice, "").Payload, &change); err != nil ||
			change.DeviceModel.ID != m.ID {
			t.Errorf("the device frame has %+v, error %v; want the selected model", change, err)
		}
		s.see(`document.querySelector("#model-name").textContent === "` + m.Name + `"`)
		if m.Panel != nil {
			s.showMenu()
			s.wantPixels(m.ID, glasses.View{Tree: treeOf(t, menu)})
		}
	}
}

func TestSimulatorPage_KeepsStateOverReload(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	s.welcome.Display = json.RawMessage(menu)
	s.do(chromedp.Focus("#panel"), chromedp.KeyEvent(kb.ArrowDown), chromedp.Click("#tab-glasses"), chromedp.Click("#folded"),
		chromedp.Click(`[data-permission="camera"]`))
	s.next(glasses.TypePermission, "")
	s.welcome.Glasses.Hinge = glasses.HingeFolded // as the service does when it applies the event
	s.welcome.Glasses.Permissions[glasses.PartCamera] = glasses.PermissionDenied
	s.do(chromedp.Reload())
	s.see(isConnected + ` &&
		document.querySelector("#folded").checked`)
	s.see(`!document.querySelector('[data-permission="camera"]').checked && document.querySelector("#condition").innerText.startsWith("Folded")`)
	s.picture("folded")
	s.wantPixels("rayban_display", glasses.View{Focus: -1}) // folded glasses have a clear panel
	s.send(glasses.SimState, "ctl-1", struct{}{})
	r := s.result("ctl-1")
	if r.State == nil || r.State.Hinge != glasses.HingeFolded || r.View.Focus != 1 {
		t.Log(r.View, r.State)
		t.Errorf("after the reload: got %+v, want folded glasses with the second button focused", r)
	}
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); r.Error == nil ||
		r.Error.Code != glasses.CodeHingeClosed {
		t.Errorf("folded glasses answered %+v, want hinge_closed", r)
	}
}

func TestSimulatorPage_TakesPictures(t *testing.T) {
	s := newPageTest(t, "rayban_display", withCamera)
	if state := s.text("#camera-state"); state != "Off" {
		t.Errorf("before any app used the camera its state is %q, want Off", state)
	}
	id := s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})
	r := s.result(id)
	if !r.OK || r.Media == nil {
		t.Fatalf("photo: %+v", r.Error)
	}
	media := s.next(glasses.TypeMedia, id)
	img, err := jpeg.Decode(bytes.NewReader(media.body))
	if err != nil || img.Bounds().Dx() != 320 || r.Media.Bytes != len(media.body) {
		t.Errorf("photo: got error %v, %+v; want a JPEG 320 pixels wide", err, r.Media)
	}
	if state := s.text("#camera-state"); state != "Live" {
		t.Errorf("while it takes pictures the camera's state is %q, want Live", state)
	}
	s.picture("camera")
	m, _ := glasses.Model("brilliant_halo")
	s.sendBinary(glasses.SimCamera, "ctl-1", render.PNG(render.Draw(m, glasses.View{Focus: -1})))
	s.result("ctl-1")
	s.see(`!document.querySelector("#covered").hidden`)
	if r := s.result(s.command(glasses.TypeCameraPhoto, struct{}{})); !r.OK || r.Media.Width != 256 ||
		r.Media.Height != 256 {
		t.Errorf("with a picture set by an agent: got %+v, want its 256 by 256 pixels", r)
	}
	s.send(glasses.SimCamera, "ctl-2", struct{}{})
	s.result("ctl-2")
	s.see(`document.querySelector("#covered").hidden`)
	clip := s.command(glasses.TypeCameraVideo, glasses.Video{DurationMs: 600, FPS: 10, Width: 160})
	if r := s.result(clip); !r.OK || r.Media.MIME != "video/x-motion-jpeg" || r.Media.DurationMs != 600 {
		t.Errorf("clip: got %+v", r)
	}
	if body := s.next(glasses.TypeMedia, clip).body; bytes.Count(body, []byte{0xff, 0xd8, 0xff}) != 6 {
		t.Errorf("the clip has %d frames, want 6", bytes.Count(body, []byte{0xff, 0xd8, 0xff}))
	}
	s.result(s.command(glasses.TypeVideoStart, glasses.VideoStart{FPS: 10, Width: 160}))
	for range 3 {
		if _, err := jpeg.Decode(bytes.NewReader(s.next(glasses.TypeVideoFrame, "").body)); err != nil {
			t.Error(err)
		}
	}
	s.result(s.command(glasses.TypeVideoStop, struct{}{}))
	s.see(`document.querySelector("#camera-state").textContent === "Off"`)
}

func TestSimulatorPage_Hears(t *testing.T) {
	s := newPageTest(t, "rayban_display", withCamera)
	s.result(s.command(glasses.TypeAudioStart, glasses.AudioStart{SampleRate: 16000}))
	s.see(`document.querySelector("#microphone-state").textContent === "Live"`)
	loud := false
	for end := time.Now().Add(chromium.StepLimit); !loud && time.Now().Before(end); { // it beeps once a second
		chunk := s.next(glasses.TypeAudioChunk, "")
		if len(chunk.body) != 3200 {
			t.Fatalf("a chunk has %d bytes, want 3200", len(chunk.body))
		}
		loud = loud || len(bytes.Trim(chunk.body, "\x00")) > 0
	}
	if !loud {
		t.Error("the beeps of the fake microphone are silent")
	}
	s.result(s.command(glasses.TypeAudioStop, struct{}{}))
	s.see(`document.querySelector("#microphone-state").textContent === "Off"`)

	s.result(s.command(glasses.TypePhrasesAnnounce, glasses.Announce{Phrases: []string{"next page", "stop"}}))
	s.see(`document.querySelectorAll("#phrases button").length === 2`)
	s.do(chromedp.Click("#phrases button"))
	s.see(`!document.querySelector("#notice").hidden`) // no app listens yet
	s.result(s.command(glasses.TypeTranscriptionStart, struct{}{}))
	s.see(`document.querySelector("#say-state").textContent === "The app listens."`)
	s.do(chromedp.Click("#phrases button"))
	if p := string(s.next(glasses.TypeTranscript, "").Payload); !strings.Contains(p, `"next page"`) ||
		!strings.Contains(p, `"final":true`) {
		t.Errorf("the phrase sent %s, want a final transcript of it", p)
	}
	s.do(chromium.Type("#say-text", "turn left\r"))
	if p := string(s.next(glasses.TypeTranscript, "").Payload); !strings.Contains(p, `"turn left"`) {
		t.Errorf("the typed text sent %s, want a transcript of it", p)
	}
	s.do(chromedp.Evaluate[chromedp.Void](`window.SpeechRecognition = class { start() { setTimeout(() => this.onresult({ resultIndex: 0,
		results: [Object.assign([{ transcript: " go home ", confidence: 0.87 }], { isFinal: true })] })); } abort() {} }`), chromedp.Click("#ears"))
	if p := string(s.next(glasses.TypeTranscript, "").Payload); !strings.Contains(p, `"go home"`) ||
		!strings.Contains(p, `"confidence":87`) {
		t.Errorf("the recognised text sent %s, want a transcript with confidence 87", p)
	}
	id := s.command(glasses.TypeSpeechSay, glasses.Say{Text: "Turn left now"})
	s.result(id)
	s.see(`document.querySelector("#caption").textContent === "Turn left now"`)
	s.picture("voice")
	if p := string(s.next(glasses.TypeSpeech, "").Payload); !strings.Contains(p, id) {
		t.Errorf("the speech frame has %s, want the command's ID", p)
	}
}

// The headless browser itself denies access to the camera.
func TestSimulatorPage_CameraRefused(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	if r := s.result(s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})); r.Error == nil ||
		r.Error.Code != glasses.CodePermissionDenied {
		t.Errorf("without permission: got %+v, want permission_denied", r)
	}
	s.see(`document.querySelector("#camera-state").textContent === "Refused" && document.querySelector("#camera-help").innerText.includes("test picture")`)
	s.picture("refused")
	s.do(chromedp.Click("#tab-senses"), chromedp.Click("input[value=test]"))
	if r := s.result(s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})); !r.OK || r.Media.Width != 320 {
		t.Errorf("the test picture: got %+v, want a photo 320 pixels wide", r)
	}
}

// A dead socket is soon no longer shown as live (within three seconds on an idle machine), and the page reconnects.
func TestSimulatorPage_DetectsDeadSocket(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
	begin := time.Now()
	s.see(`document.querySelector("#socket").dataset.state !== "up"`)
	t.Logf("the page showed the connection as live for %v after its last message", time.Since(begin))
	s.do(chromedp.Click("#panel"))
	s.mu.Lock()
	s.mute = false
	s.mu.Unlock()
	s.see(`document.querySelector("#socket").dataset.state === "up"`)
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Errorf("after the reconnection: got error %+v, want none", r.Error)
	}
}

func TestSimulatorPage_LogAndFaults(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.showMenu()
	s.do(chromedp.Evaluate[chromedp.Void](`{ document.querySelector("#tab-faults").click();
		document.querySelector("#fault-command").value = "camera.photo"; document.querySelector("#fault-code").value = "busy"; document.querySelector("#faults").requestSubmit(); }`))
	s.next(glasses.TypeFault, "")
	s.see(`document.querySelector("#fault-list").innerText.includes("busy, once more")`)
	if r := s.result(s.command(glasses.TypeCameraPhoto, struct{}{})); r.Error == nil || r.Error.Code != glasses.CodeBusy {
		t.Errorf("with a fault: got %+v, want busy", r)
	}
	s.command("com.example.score", map[string]int{"points": 3})
	s.see(`document.querySelectorAll("#log > li").length === 6`)
	s.picture("log")
	// A screen reader announces the count when the user asks for it, not on every event.
	s.see(`document.querySelector("#log-count").ariaLive === "off"`)
	s.do(chromedp.Click(`.filter[data-chip="errors"]`))
	s.see(`document.querySelector("#log-count").ariaLive === "polite" && document.querySelectorAll("#log > li").length === 2 && document.querySelector("#log-count").textContent === "2 of 6 events"`)
	s.do(chromedp.Click(`.filter[data-chip="errors"]`), chromium.Type("#search", "points"))
	s.see(`document.querySelectorAll("#log > li").length === 1`)
	s.do(chromedp.Evaluate[chromedp.Void](`const make = URL.createObjectURL.bind(URL);
		URL.createObjectURL = (file) => { file.text().then((text) => { window.saved = text; }); return make(file); };`), chromedp.Click("#export"))
	s.see(`JSON.parse(window.saved).type === "com.example.score"`)

	s.do(chromedp.Evaluate[chromedp.Void](`{ const e = document.querySelector("#search"); e.value = ""; e.dispatchEvent(new Event("input")); }`))
	for i := range 600 {
		s.row(glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipCustom, Type: "com.example.many",
			ID: fmt.Sprint("many-", i), Sender: glasses.SenderApp, Payload: json.RawMessage("{}")})
	}
	const atEnd = `(() => { const l = document.querySelector("#log"); return l.scrollTop + l.clientHeight >= l.scrollHeight - 2; })()`
	s.see(`document.querySelector("#log-count").textContent === "606 events" && document.querySelectorAll("#log > li").length < 150 && ` + atEnd)
	s.do(chromedp.EmulateViewport(390, 844), chromedp.Click("#tab-log"))
	s.see(atEnd)
	s.do(chromedp.Evaluate[chromedp.Void](`{ const l = document.querySelector("#log");
		l.addEventListener("scroll", () => { window.scrolled = true; }, { once: true }); l.scrollTop = 100; }`))
	s.see("window.scrolled")
	s.command(glasses.TypeDisplayClear, struct{}{})
	s.see(`document.querySelector("#log-count").textContent === "608 events" && !` + atEnd)
}

func TestSimulatorPage_WithoutItsProgram(t *testing.T) {
	s := newPageTest(t, "rayban_display", withoutProgram)
	s.see(`document.querySelector("#no-program").innerText.includes("make wasm")`)
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); r.Error == nil ||
		r.Error.Code != glasses.CodePlatform {
		t.Errorf("without the program: got %+v, want a platform error", r)
	}
}

// If SCREENSHOTS is set, the test also saves other models and the dark scheme for review.
func TestSimulatorPage_OtherModel(t *testing.T) {
	s := newPageTest(t, "system_audio")
	s.see(`document.querySelector("#no-panel").innerText.includes("no display") && document.querySelector("#panel").hidden`)
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); r.Error == nil ||
		r.Error.Code != glasses.CodeUnsupported {
		t.Errorf("without a panel: got %+v, want unsupported", r)
	}
	s.picture("system_audio")
	if os.Getenv("SCREENSHOTS") == "" {
		return
	}
	for _, model := range []string{"even_g1", "even_g2", "brilliant_frame", "brilliant_halo", "android_xr_display"} {
		s := newPageTest(t, model)
		s.showMenu()
		s.picture(model)
	}
	dark := newPageTest(t, "rayban_display")
	dark.scheme("dark")
	dark.showMenu()
	dark.picture("dark")
}
