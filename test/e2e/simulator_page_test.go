//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/test/chromium"
)

// simulated is a session of a real backend: its page in a browser, an app on its socket, and the agent's API.
type simulated struct {
	t       *testing.T
	b       *remoteBackend
	token   string
	id      string
	url     string
	secret  string // of the app
	browser context.Context

	app *websocket.Conn
	// incoming receives every message for the app. A goroutine reads continuously, because the service drops an app that
	// answers no pings while the test waits for the page.
	incoming chan message
	heard    []appFrame
	sent     int
}

// message is the result of one read from the app's connection.
type message struct {
	kind websocket.MessageType
	data []byte
	err  error
}

// listen reads until the connection ends.
func (s *simulated) listen(app *websocket.Conn) {
	for {
		kind, data, err := app.Read(context.Background())
		select {
		case s.incoming <- message{kind, data, err}:
		case <-s.t.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

type appFrame struct {
	glasses.Frame
	body []byte
}

// newSimulated links an account, creates a session, opens its page and attaches an app. Without options, the page is in
// the browser that tests share.
func newSimulated(t *testing.T, model string, options ...chromedp.ExecAllocatorOption) *simulated {
	t.Helper()
	s := &simulated{t: t, b: startBackend(t, "")}
	code := issueCode(t, s.b)
	newPerson(t).approve(code.VerificationURL, "ada@example.org")
	status, body := code.poll(t, s.b)
	var linked struct{ AuthToken string }
	if err := json.Unmarshal([]byte(body), &linked); err != nil || linked.AuthToken == "" {
		t.Fatalf("poll for the token: got status %d %s, want a token", status, body)
	}
	s.token = linked.AuthToken
	var session struct{ SessionID, SessionURL, AppEndpoint string }
	s.call("POST", "/api/sessions", map[string]string{"project": "com.example.trails", "deviceModel": model}, &session)
	var minted struct{ AppSecret string }
	s.call("POST", "/api/sessions/"+session.SessionID+"/secrets", nil, &minted)
	s.id, s.url, s.secret = session.SessionID, session.SessionURL, minted.AppSecret

	s.browser = newBrowser(t, options...)
	run(t, s.browser, "sign in", chromedp.Navigate(s.url), chromium.Type("input[name=email]", "ada@example.org"),
		chromium.Type("input[name=password]", password), chromedp.Submit("input[name=email]"),
		until(`document.querySelector("#simulator")?.dataset.live === "yes"`))
	s.measure("cold")
	s.attach(session.AppEndpoint, minted.AppSecret)
	return s
}

func (s *simulated) call(method, path string, body, into any) {
	s.t.Helper()
	data, _ := json.Marshal(body)
	req, err := http.NewRequest(method, s.b.url+path, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode >= 300 {
		s.t.Fatalf("%s %s: got status %d (error %v), want success", method, path, resp.StatusCode, err)
	}
}

func (s *simulated) attach(endpoint, secret string) {
	s.t.Helper()
	app, _, err := websocket.Dial(s.t.Context(), endpoint, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	app.SetReadLimit(glasses.MaxBinary)
	s.app, s.incoming = app, make(chan message, 1000)
	var listening sync.WaitGroup
	listening.Go(func() { s.listen(app) })
	s.t.Cleanup(func() {
		app.CloseNow()
		listening.Wait()
	})
	s.send(glasses.TypeHello, glasses.Hello{Secret: secret, App: glasses.AppInfo{Name: "Trails"}})
	s.next(glasses.TypeWelcome, "")
}

func (s *simulated) send(typ string, payload any) string {
	s.t.Helper()
	s.sent++
	f, err := glasses.New(typ, fmt.Sprintf("app-%d", s.sent), time.Now().UnixMilli(), payload)
	if err != nil {
		s.t.Fatal(err)
	}
	data, _ := f.Encode()
	if err := s.app.Write(s.t.Context(), websocket.MessageText, data); err != nil {
		s.t.Fatal(err)
	}
	return f.ID
}

// next returns the next received frame of this type and, unless id is empty, with this id.
func (s *simulated) next(typ, id string) appFrame {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	for at := 0; ; at++ {
		for at >= len(s.heard) {
			var m message
			select {
			case m = <-s.incoming:
			case <-ctx.Done():
				m.err = ctx.Err()
			}
			if m.err != nil {
				s.t.Fatalf("no frame %s %s arrived: %v; the app received %v", typ, id, m.err, s.heard)
			}
			var f appFrame
			var err error
			if m.kind == websocket.MessageBinary {
				f.Frame, f.body, err = glasses.ParseBinary(m.data)
			} else {
				err = json.Unmarshal(m.data, &f.Frame)
			}
			if err != nil {
				s.t.Fatalf("the app received the invalid frame %q: %v", m.data[:min(200, len(m.data))], err)
			}
			s.heard = append(s.heard, f)
		}
		if f := s.heard[at]; f.Type == typ && (id == "" || f.ID == id) {
			s.heard = append(s.heard[:at:at], s.heard[at+1:]...)
			return f
		}
	}
}

func (s *simulated) result(id string) glasses.Result {
	s.t.Helper()
	r, err := glasses.ParseResult(s.next(glasses.TypeResult, id).Payload)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *simulated) must(r glasses.Result) glasses.Result {
	s.t.Helper()
	if !r.OK {
		s.t.Fatalf("command failed with %+v, want success", r.Error)
	}
	return r
}

const trails = `{"tree":{"type":"column","gap":12,"padding":24,"children":[{"type":"text","text":"Trails near you","style":"title"},
	{"type":"button","id":"ridge","text":"Ridge walk"},{"type":"button","id":"lake","text":"Round the lake"}]}}`

// wantCanvas compares the page's pixels with the trails view as drawn by the renderer in this process.
func (s *simulated) wantCanvas(model string, focus int) {
	s.t.Helper()
	show, err := glasses.ParseShow([]byte(trails))
	if err != nil {
		s.t.Fatal(err)
	}
	s.wantView(model, glasses.View{Tree: &show.Tree, Focus: focus})
}

// wantView compares the page's pixels with a view as drawn by the renderer in this process.
func (s *simulated) wantView(model string, view glasses.View) {
	s.t.Helper()
	m, _ := glasses.Model(model)
	want := render.Draw(m, render.Clamp(m, view)).Pix
	const read = `(() => { const c = document.querySelector("#canvas"); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let t = ""; for (let i = 0; i < d.length; i += 8192) t += String.fromCharCode(...d.subarray(i, i + 8192)); return btoa(t); })()`
	if !eventually(10*time.Second, func() bool {
		text, err := chromedp.Run(s.browser, chromedp.Evaluate[string](read))
		got, _ := base64.StdEncoding.DecodeString(text)
		return err == nil && bytes.Equal(got, want)
	}) {
		s.t.Errorf("%s, focus %d: the canvas differs from the renderer's picture", model, view.Focus)
	}
}

// The page acts as the glasses on the real backend: panel, inputs, another model, camera, a reload.
func TestSimulatorPage(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))))
	s.wantCanvas("rayban_display", 0)

	run(t, s.browser, "move and select", chromedp.Focus("#panel"), chromedp.KeyEvent(kb.ArrowDown),
		chromedp.KeyEvent("\r"))
	for _, want := range []string{`"navigate"`, `"select"`} {
		if p := string(s.next(glasses.TypeInput, "").Payload); !strings.Contains(p, want) ||
			!strings.Contains(p, `"target":"lake"`) {
			t.Errorf("want %s at target lake, got %s", want, p)
		}
	}
	s.wantCanvas("rayban_display", 1)
	tapPanel(t, s.browser)
	if p := string(s.next(glasses.TypeInput, "").Payload); !strings.Contains(p, `"tap"`) {
		t.Errorf("tap: got %s, want a tap", p)
	}
	photo := s.send(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})
	if img, err := jpeg.Decode(bytes.NewReader(s.next(glasses.TypeMedia, photo).body)); err != nil ||
		img.Bounds().Dx() != 320 {
		t.Errorf("photo of the fake camera: %v, want a JPEG 320 pixels wide", err)
	}
	if r := s.must(s.result(photo)); r.Media == nil || r.Media.Width != 320 {
		t.Errorf("media of the photo: got %+v, want a width of 320", r.Media)
	}

	run(t, s.browser, "fold, reload", chromedp.Click("#tab-glasses"), chromedp.Click("#folded"))
	s.next(glasses.TypeHinge, "")
	run(t, s.browser, "reload", chromedp.Reload(),
		until(`document.querySelector("#simulator")?.dataset.live === "yes" && document.querySelector("#folded").checked`))
	s.wantView("rayban_display", glasses.View{Focus: -1}) // folded glasses show nothing
	if r := s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))); r.Error == nil ||
		r.Error.Code != glasses.CodeHingeClosed {
		t.Errorf("folded glasses: got %+v, want hinge_closed", r)
	}

	const other = `{ const d = document.querySelector("#device"); d.value = "even_g1"; d.dispatchEvent(new Event("change")); document.querySelector("#folded").click() }`
	run(t, s.browser, "other glasses", chromedp.Evaluate[chromedp.Void](other))
	if p := string(s.next(glasses.TypeDevice, "").Payload); !strings.Contains(p, `"even_g1"`) {
		t.Errorf("device event: got %s, want even_g1", p)
	}
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))))
	s.wantCanvas("even_g1", 0)
	if r := s.result(s.send(glasses.TypeCameraPhoto, struct{}{})); r.Error == nil ||
		r.Error.Code != glasses.CodeUnsupported {
		t.Errorf("glasses without a camera: got %+v, want unsupported", r)
	}
	run(t, s.browser, "load again", chromedp.Navigate(s.url),
		until(`document.querySelector("#model-name")?.textContent === "Even G1"`))
	s.wantCanvas("even_g1", 0)
	s.measure("warm")
	s.wantPictureWithoutProgram("even_g1")
}

// wantPictureWithoutProgram checks that the page shows the panel before its program has loaded, and which point of
// loading it has reached.
func (s *simulated) wantPictureWithoutProgram(model string) {
	s.t.Helper()
	block := func(patterns ...*network.BlockPattern) {
		if _, err := chromedp.Call(s.browser, network.SetBlockedURLs,
			network.SetBlockedURLsParams{URLPatterns: patterns}); err != nil {
			s.t.Fatal(err)
		}
	}
	block(&network.BlockPattern{URLPattern: "*://*:*/assets/simulator.wasm*", Block: true})
	run(s.t, s.browser, "load without the program", chromedp.Navigate(s.url))
	s.wantCanvas(model, 0)
	run(s.t, s.browser, "be neither live nor blank",
		until(`performance.getEntriesByName("first-picture").length && document.querySelector("#idle").hidden &&
			!performance.getEntriesByName("live-panel").length && document.querySelector("#simulator").dataset.live === "no"`))
	block()
}

// measure logs how fast the page loaded and how many bytes it transferred.
func (s *simulated) measure(cache string) {
	run(s.t, s.browser, "see the first picture", until(`performance.getEntriesByName("first-picture").length`))
	text, err := chromedp.Run(s.browser, chromedp.Evaluate[string](`JSON.stringify({
		firstPictureMs: Math.round(performance.getEntriesByName("first-picture")[0].startTime),
		program: performance.getEntriesByType("resource").filter(r => r.name.includes(".wasm")).map(r => [r.encodedBodySize, r.decodedBodySize]),
	})`))
	s.t.Logf("page, %s cache: %s %v", cache, text, err)
}
