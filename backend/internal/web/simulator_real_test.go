package web

import (
	"encoding/json"
	"image"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// realTest is a simulator page in a browser with emulated Bluetooth and an Even G1 in range.
type realTest struct {
	*pageTest
	radio  *fakebluez.Radio
	pair   *g1.Pair // number 27
	person *chromium.Chooser
}

// newRadio starts a radio for the browser.
func newRadio(t *testing.T, options fakebluez.Options) *fakebluez.Radio {
	t.Helper()
	startChromium(t)
	options.Bus = running.bus
	return fakebluez.Start(t, options)
}

func newRealTest(t *testing.T, more ...peripheral.Peripheral) *realTest {
	t.Helper()
	pair := g1.New(g1.Options{Channel: 27})
	radio := newRadio(t, fakebluez.Options{
		Peripherals: append([]peripheral.Peripheral{pair.Left(), pair.Right()}, more...),
	})
	s := newPageTest(t, "even_g1")
	t.Cleanup(func() {
		radio.Emulate(func(int64) {
			if v := pair.Violations(); len(v) > 0 {
				t.Errorf("the page broke the protocol of the glasses: %v", v)
			}
		})
	})
	return &realTest{s, radio, pair, chromium.NewChooser(s.ctx, t)}
}

// name returns the name that an arm advertises.
func (s *realTest) name(side g1.Side) string {
	adv, _ := g1.New(g1.Options{Channel: 27}).Arm(side).Advertisement()
	return adv.Name
}

// choose clicks a link's button and chooses a peripheral.
func (s *realTest) choose(link, name string) {
	s.t.Helper()
	button := `#real-links button[data-link="` + link + `"]`
	s.see(`document.querySelector('` + button + `')?.checkVisibility()`)
	s.do(chromium.Press(button))
	s.person.Pick(name)
	s.see(`document.querySelector("#real-problem").textContent || !document.querySelector('` + button +
		`').checkVisibility()`)
}

// wantFree waits until both arms are disconnected.
func (s *realTest) wantFree() {
	s.t.Helper()
	for end := time.Now().Add(chromium.StepLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !s.radio.Connected(s.pair.Left()) && !s.radio.Connected(s.pair.Right()) {
			return
		}
	}
	s.t.Error("an arm is still connected")
}

// useGlasses connects the pair.
func (s *realTest) useGlasses() {
	s.t.Helper()
	s.see(`!document.querySelector("#real-begin").disabled && document.querySelector("#real-begin").checkVisibility()`)
	s.do(chromium.Press("#real-begin"))
	s.choose("left", s.name(g1.Left))
	s.choose("right", s.name(g1.Right))
	s.seeConnected()
}

func (s *realTest) seeConnected() {
	s.t.Helper()
	s.see(`document.querySelectorAll("#real-links .dot.on").length === 2`)
}

// panels returns the pictures on both arms; a dark arm has nil.
func (s *realTest) panels() (shown [2]image.Image) {
	s.radio.Emulate(func(int64) {
		for _, side := range []g1.Side{g1.Left, g1.Right} {
			if picture, ok := s.pair.Picture(side); ok {
				shown[side] = picture
			}
		}
	})
	return shown
}

// wantPanels waits until both arms show the renderer's picture for the payload of a display.show; "" means a dark
// panel.
func (s *realTest) wantPanels(show string) {
	s.t.Helper()
	want := drawn(s.t, "even_g1", show)
	for end := time.Now().Add(chromium.StepLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if shown := s.panels(); isLit(shown[0], want) && isLit(shown[1], want) {
			return
		}
	}
	s.t.Fatalf("the arms do not show %q; the page shows:\n%s", show, s.text("body"))
}

// drawn returns the renderer's picture for the payload of a display.show, or nil for a dark panel.
func drawn(t *testing.T, model, show string) *image.NRGBA {
	t.Helper()
	if show == "" {
		return nil
	}
	m, _ := glasses.Model(model)
	return render.Draw(m, render.Show(m, glasses.View{Focus: -1}, treeOf(t, show)))
}

// isLit reports whether a panel of the glasses has the lit pixels of a picture. A nil picture means a dark panel.
func isLit(got image.Image, want *image.NRGBA) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			r, g, b, _ := want.At(x, y).RGBA()
			r2, g2, b2, _ := got.At(x, y).RGBA()
			if (r2|g2|b2 != 0) != (r|g|b != 0) {
				return false
			}
		}
	}
	return got.Bounds().Size() == want.Rect.Size()
}

// tap makes the wearer tap an arm, and waits for the event.
func (s *realTest) tap(side g1.Side) {
	s.t.Helper()
	s.radio.Emulate(func(now int64) { s.pair.Tap(now, side) })
	if p := string(s.next(glasses.TypeInput, "").Payload); !strings.Contains(p, `"tap"`) ||
		!strings.Contains(p, side.String()) {
		s.t.Errorf("a tap on the %v arm sent %s", side, p)
	}
}

// A user connects both arms: an app's picture appears on them as on the page, the wearer's tap reaches the app, and
// after the return to the simulator the panel is dark and the arms are free.
func TestRealGlasses_TakeThePlaceOfTheSimulated(t *testing.T) {
	s := newRealTest(t)
	s.useGlasses()
	if p := s.nextLink(); p != glasses.LinkLost {
		t.Errorf("the first state of the link is %s, want lost until both arms are connected", p)
	}
	if p := s.nextLink(); p != glasses.LinkConnected {
		t.Errorf("the second state of the link is %s, want connected", p)
	}
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Fatalf("display.show: %+v", r.Error)
	}
	s.wantPanels(menu)
	s.wantPixels("even_g1", glasses.View{Tree: treeOf(t, menu)})
	s.tap(g1.Right)
	s.see(`document.querySelector("#real-links").innerText.includes("80 %")`)
	s.see(`document.querySelector("#controls").disabled && document.querySelector("#senses").hidden`)
	s.picture("real")
	s.send(glasses.SimFault, "ctl-1", glasses.Fault{Code: glasses.CodeBusy})
	if r := s.result("ctl-1"); r.Error == nil || !strings.HasPrefix(r.Error.Message, "real glasses cannot be told to") {
		t.Errorf("a fault: got %+v, want a refusal", r.Error)
	}
	s.do(chromium.Press("#real-end"))
	s.wantPanels("")
	s.see(`document.querySelector("#real-begin").checkVisibility() && !document.querySelector("#controls").disabled`)
	s.wantFree()
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Errorf("display.show on the simulator: %+v", r.Error)
	}
}

func (s *realTest) nextLink() string {
	s.t.Helper()
	var w glasses.StateWord
	if err := json.Unmarshal(s.next(glasses.TypeLink, "").Payload, &w); err != nil {
		s.t.Fatal(err)
	}
	return w.State
}

// The user chooses each arm in a list of the browser. Until both are chosen, apps notice no change. An unsuitable
// choice is refused with the next step.
func TestRealGlasses_AreChosenArmByArm(t *testing.T) {
	other := g1.New(g1.Options{Channel: 31})
	foreign, _ := other.Right().Advertisement() // before the radio uses it
	s := newRealTest(t, other.Right())
	says := func(text string) {
		t.Helper()
		s.see(`document.querySelector("#real-problem").textContent.includes(` + quoted(text) + `)`)
	}
	s.see(`document.querySelector("#real-begin").checkVisibility() && !document.querySelector("#real-begin").disabled`)
	s.do(chromium.Press("#real-begin"))
	s.see(`document.querySelector("#real-text").textContent.includes("open case")`)
	s.picture("real-choosing")
	s.do(chromium.Press(`#real-links button[data-link="left"]`))
	s.person.Cancel()
	says("No glasses were chosen, and nothing has changed. Press the button again")
	s.picture("real-cancelled")
	s.choose("left", s.name(g1.Right))
	says("is the right arm. Choose the left arm.")
	s.choose("left", s.name(g1.Left))
	s.choose("right", foreign.Name)
	says("“" + foreign.Name + "” and “" + s.name(g1.Left) + "” are arms of different pairs")
	s.do(chromium.Press("#real-end"))
	s.see(`document.querySelector("#real-begin").checkVisibility()`)
	if heard := s.types(); len(heard) > 0 {
		t.Errorf("the page sent %v before the glasses were chosen", heard)
	}
	if n := s.radio.Calls("Connect"); n > 0 {
		t.Errorf("the page connected %d times before both arms were chosen", n)
	}
	s.useGlasses()
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// A lost arm is reconnected without a click, and gets its picture again.
func TestRealGlasses_GetALostArmBack(t *testing.T) {
	s := newRealTest(t)
	s.useGlasses()
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Fatalf("display.show: %+v", r.Error)
	}
	connects := s.radio.Calls("Connect")
	for range 2 {
		s.nextLink() // lost, connected
	}
	s.radio.Drop(s.pair.Right())
	for _, want := range []string{glasses.LinkLossy, glasses.LinkConnected} {
		if got := s.nextLink(); got != want {
			t.Errorf("the link is %s, want %s", got, want)
		}
	}
	s.wantPanels(menu)
	if n := s.radio.Calls("Connect") - connects; n != 1 {
		t.Errorf("the page connected %d times, want once", n)
	}
}

// Switched-off Bluetooth is reported on each arm, and the glasses reconnect once it is on again.
func TestRealGlasses_SayThatBluetoothIsOff(t *testing.T) {
	s := newRealTest(t)
	s.useGlasses()
	s.radio.SetPowered(false)
	for _, link := range []string{"left", "right"} {
		s.see(`document.querySelector('#real-links button[data-link="` + link + `"]').parentElement.innerText.includes(
			"Bluetooth is switched off. Switch it on")`)
	}
	s.picture("real-off")
	s.radio.SetPowered(true)
	s.seeConnected()
}

// Browsers slow down the timers of a hidden tab to one a minute, and the glasses disconnect after half a minute without
// a heartbeat. In this test, the page's timers are therefore disabled, and the page's clock runs four times as fast.
func TestRealGlasses_HearHeartbeatsFromAHiddenTab(t *testing.T) {
	s := newRealTest(t)
	const throttled = `Worker.prototype.postMessage = () => {}; { const now = Date.now, begin = now();
		Date.now = () => begin + 4 * (now() - begin); }`
	s.beforeScripts(throttled)
	s.do(chromedp.Reload())
	s.useGlasses()
	chromium.Tab(s.ctx, t, chromedp.WithNewWindow(false)) // in front of the page
	s.see(`document.hidden`)
	heard := func() (left, right int) {
		s.radio.Emulate(func(int64) { left, right = s.pair.Heartbeats(g1.Left), s.pair.Heartbeats(g1.Right) })
		return left, right
	}
	for end := time.Now().Add(30 * time.Second); min(heard()) < 4; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			left, right := heard()
			t.Fatalf("the arms heard %d and %d heartbeats, want 4", left, right)
		}
	}
}

// A reload ends the browser's connections. The page then reports this and keeps apps waiting; one click for each arm
// reconnects the glasses.
func TestRealGlasses_AreChosenAgainAfterAReload(t *testing.T) {
	s := newRealTest(t)
	s.useGlasses()
	for range 2 {
		s.nextLink() // lost, connected
	}
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Fatalf("display.show: %+v", r.Error)
	}
	received := func() (n int) {
		s.radio.Emulate(func(int64) { n = s.pair.Packets(g1.Left) })
		return n
	}
	before := received()
	s.do(chromedp.Reload())
	s.see(`document.querySelector("#real-text").textContent.includes("The page was reloaded")`)
	if received() == before {
		t.Error("the page did not leave the glasses when it was reloaded")
	}
	if got := s.nextLink(); got != glasses.LinkLost {
		t.Errorf("after the reload the link is %s, want lost", got)
	}
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); r.Error == nil ||
		r.Error.Code != glasses.CodeNotConnected {
		t.Errorf("display.show without glasses: got %+v, want not_connected", r)
	}
	s.choose("right", s.name(g1.Right))
	s.choose("left", s.name(g1.Left))
	s.seeConnected()
	if got := s.nextLink(); got != glasses.LinkConnected {
		t.Errorf("with both arms the link is %s, want connected", got)
	}
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Fatalf("display.show: %+v", r.Error)
	}
	s.wantPanels(menu)
}

// The panel is cleared when the session ends, and when another page replaces this one.
func TestRealGlasses_AreClearedAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(s *realTest){
		"session closed": func(s *realTest) {
			s.mu.Lock()
			socket := s.page
			s.mu.Unlock()
			_ = socket.Close(4410, "the session is over")
		},
		"other page": func(s *realTest) { s.send(glasses.TypeRole, "", glasses.Role{Active: false}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newRealTest(t)
			s.useGlasses()
			if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
				t.Fatalf("display.show: %+v", r.Error)
			}
			s.wantPanels(menu)
			end(s)
			s.wantPanels("")
			s.see(`document.querySelector("#real-begin").disabled`)
			s.wantFree()
		})
	}
}

// In a browser without Web Bluetooth, such as Chromium on Linux without its flag, the page names browsers that have it.
func TestRealGlasses_NeedWebBluetooth(t *testing.T) {
	s := newPageTest(t, "even_g1")
	s.beforeScripts("delete Navigator.prototype.bluetooth")
	s.do(chromedp.Reload())
	s.see(`document.querySelector("#real-text").textContent.includes("Chrome or Edge")`)
	s.see(`!document.querySelector("#real-begin").checkVisibility()`)
	s.command(glasses.SimDevice, glasses.DeviceChoice{DeviceModel: "rayban_display"})
	s.see(`document.querySelector("#real-text").textContent.includes("Brilliant Halo")`)
}
