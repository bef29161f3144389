package realdevice

import (
	"context"
	"fmt"
	"image"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/plugins/internal/attachtest"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// visit is a user with the page of a session open in a real Chromium, which uses the Bluetooth of the world.
type visit struct {
	*world
	t       *testing.T
	glasses *attachtest.Pair
	tab     context.Context
	chooser *chromium.Chooser
}

// newVisit opens a session whose carrier is the browser, and opens its page.
func newVisit(t *testing.T, channels ...int) *visit {
	t.Helper()
	w := newWorld(t, fakebluez.Options{}, channels...)
	v := &visit{world: w, t: t, tab: chromium.OpenBluetooth(t, w.Address)}
	v.glasses = attachtest.Attach(t, w.client, &pluginv1.AttachOpen{
		DeviceModel: "even_g1", SessionId: "loc_visit", Via: viaBrowser,
	})
	v.chooser = chromium.NewChooser(v.tab, t)
	v.do(chromedp.Navigate(v.url()))
	return v
}

// url waits for the address of the page.
func (v *visit) url() string {
	return v.glasses.AwaitHardware(func(h *pluginv1.Hardware) bool { return h.GetConnectUrl() != "" }).GetConnectUrl()
}

func (v *visit) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	if err := chromium.Do(v.tab, steps...); err != nil {
		v.t.Fatal(err)
	}
}

// await waits until a JavaScript expression is true on the page.
func (v *visit) await(js string) {
	v.t.Helper()
	if !chromium.Eventually(v.tab, js) {
		text, err := chromium.Run(v.tab, chromedp.Evaluate[string]("document.body.innerText"))
		v.t.Fatalf("%s was not true in time; the page shows %s (%v)", js, text, err)
	}
}

// awaitText waits until a visible element of the page contains a text.
func (v *visit) awaitText(selector, text string) {
	v.t.Helper()
	v.await(fmt.Sprintf("(e => e?.offsetParent && e.innerText.includes(%q))(document.querySelector(%q))", text, selector))
}

// record makes the page record its texts, so that awaitRecorded also finds a text that is soon replaced.
func (v *visit) record() {
	v.t.Helper()
	v.await(`(window.recorded = "", new MutationObserver(() => { recorded += document.body.innerText; }).observe(
		document.body, { attributes: true, characterData: true, childList: true, subtree: true }), true)`)
}

func (v *visit) awaitRecorded(text string) {
	v.t.Helper()
	v.await(fmt.Sprintf("recorded.includes(%q)", text))
}

// connect clicks the button of an arm and chooses a device by name.
func (v *visit) connect(side emulated.Side, name string) {
	v.t.Helper()
	v.do(chromium.Press(fmt.Sprintf("[data-key=%s] button", side)))
	v.chooser.Pick(name)
}

func (v *visit) connectPair(pair *emulated.Pair) {
	v.t.Helper()
	v.connect(emulated.Left, v.nameOf(pair.Left()))
	v.connect(emulated.Right, v.nameOf(pair.Right()))
	v.glasses.AwaitHardware(isUpWithoutProblem)
}

func isUpWithoutProblem(h *pluginv1.Hardware) bool { return isUp(h) && h.GetProblem() == nil }

// setFaults replaces the faults of both arms.
func (v *visit) setFaults(f fakebluez.Faults) {
	v.SetFaults(v.pairs[0].Left(), f)
	v.SetFaults(v.pairs[0].Right(), f)
}

// picturesOnBoth checks that both arms show a picture.
func (v *visit) picturesOnBoth() {
	v.t.Helper()
	v.Emulate(func(int64) {
		for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
			if _, ok := v.pairs[0].Picture(side); !ok {
				v.t.Errorf("the %v arm shows no picture", side)
			}
		}
	})
}

// nameOf returns the name that an arm advertises.
func (w *world) nameOf(arm *emulated.Arm) (name string) {
	w.Emulate(func(int64) {
		adv, _ := arm.Advertisement()
		name = adv.Name
	})
	return name
}

func TestPage_ConnectsAPairWithTwoClicks(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	v.awaitText("h1", "Even G1")
	v.connectPair(v.pairs[0])
	v.awaitText("#done", "Even G1_27 are connected")
	if h := v.glasses.Hardware; h.GetPair().GetName() != "Even G1_27" || h.GetCarrier() != "browser" ||
		h.GetConnectUrl() != "" || h.GetProblem() != nil {
		t.Errorf("got the hardware %v, want the pair Even G1_27 over the browser", h)
	}
	v.glasses.Must(glasses.TypeDisplayShow, hello)
	v.picturesOnBoth()
	v.Emulate(func(now int64) { v.pairs[0].Tap(now, emulated.Right) })
	for f := v.glasses.Next(); f.Type != glasses.TypeInput; f = v.glasses.Next() {
	}
	v.glasses.End()
	v.awaitText("main", "The session has ended")
	v.Emulate(func(int64) {
		if _, ok := v.pairs[0].Picture(emulated.Left); ok {
			t.Error("the left arm still shows a picture after the session")
		}
		if broken := v.pairs[0].Violations(); len(broken) > 0 {
			t.Errorf("the adapter broke the protocol: %v", broken)
		}
	})
}

// A lost arm reconnects by itself, and the page shows the progress. After a reload of the page, the session
// continues, and one click per arm connects it again.
func TestPage_SurvivesALostArmAndAReload(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	v.connectPair(v.pairs[0])
	v.record()
	v.Drop(v.pairs[0].Left())
	v.awaitRecorded("The connection to the glasses was lost")
	v.glasses.AwaitHardware(func(h *pluginv1.Hardware) bool { return !isUp(h) })
	v.glasses.AwaitHardware(isUp)
	v.awaitText("[data-key=left] .state", "connected")
	v.glasses.Must(glasses.TypeDisplayShow, hello)
	v.picturesOnBoth()

	v.do(chromedp.Reload())
	h := v.glasses.AwaitHardware(func(h *pluginv1.Hardware) bool { return h.GetProblem().GetCode() == "not_chosen" })
	if h.GetPair().GetName() != "Even G1_27" {
		t.Errorf("got the pair %v, want the one of before", h.GetPair())
	}
	v.awaitText("[data-key=left] button", "Connect left arm")
	v.connectPair(v.pairs[0])
	v.glasses.Must(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"after the reload"}}`)
}

// The user answers the two questions about the test picture on the page. The pictures change immediately, the host
// receives the answer, and apps continue with the picture that they showed.
func TestPage_ChecksThePanel(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	v.connectPair(v.pairs[0])
	v.awaitText("#panel", "A test picture and two questions")
	v.glasses.Must(glasses.TypeDisplayShow, hello)
	before := v.picture()
	v.do(chromium.Press("#panel [data-do=begin]"))
	v.awaitText("#panel", "Look through them")
	test := v.picture()
	if test.Bounds().Dy() != 136 {
		t.Errorf("the test picture has %d rows, want 136", test.Bounds().Dy())
	}
	v.say("no", "no")
	v.awaitText("#panel", "Look once more")
	if again := v.picture(); again.Bounds().Dy() != 135 || again.At(300, 60) == test.At(300, 60) {
		t.Errorf("the second test picture has %d rows, want 135 and light and dark swapped", again.Bounds().Dy())
	}
	v.say("yes", "yes")
	v.awaitText("#panel", "remembered for Even G1_27")
	h := v.glasses.AwaitHardware(func(h *pluginv1.Hardware) bool { return h.GetPanel() != nil })
	if p := h.GetPanel(); !p.GetInverted() || p.GetRows() != 135 || !p.GetChecked() {
		t.Errorf("the host got %v, want inverted, 135 rows, checked", p)
	}
	v.awaitPicture(func(now image.Image) bool { // the app's picture with the right settings
		return now.Bounds().Dy() == 135 && now.At(0, 0) != before.At(0, 0)
	})
	v.glasses.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Panel{Panel: &pluginv1.PairPanel{}}})
	v.awaitPicture(func(now image.Image) bool { return now.Bounds().Dy() == 136 && now.At(0, 0) == before.At(0, 0) })
	v.awaitText("#panel", "A test picture and two questions")
}

// say answers both questions about the test picture.
func (v *visit) say(upright, border string) {
	v.t.Helper()
	v.do(chromedp.Click("#panel [name=upright][value=" + upright + "]"))
	v.do(chromedp.Click("#panel [name=border][value=" + border + "]"))
	v.do(chromium.Press("#panel [type=submit]"))
}

// awaitPicture waits until the left arm shows a picture for which isWanted returns true; go test limits the wait.
func (v *visit) awaitPicture(isWanted func(image.Image) bool) {
	v.t.Helper()
	for !isWanted(v.picture()) {
		v.await("true")
	}
}

// picture returns the picture on the left arm.
func (v *visit) picture() (img image.Image) {
	v.t.Helper()
	v.Emulate(func(int64) {
		var ok bool
		if img, ok = v.pairs[0].Picture(emulated.Left); !ok {
			v.t.Fatal("the left arm shows no picture")
		}
	})
	return img
}

// Sessions do not take each other's glasses, whichever carrier they use. Glasses that are no longer chosen on the
// page become available.
func TestPage_SharesGlassesWithOtherSessions(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27, 31)
	v.connect(emulated.Right, v.nameOf(v.pairs[0].Right()))
	v.awaitText("[data-key=right] .name", v.nameOf(v.pairs[0].Right()))
	other := v.attach(t, "Even G1_27")
	h := other.AwaitHardware(hasProblem("busy_elsewhere"))
	if m := h.GetProblem().GetMessage(); !strings.Contains(m, "loc_visit") {
		t.Errorf("got %q, want the session with the page", m)
	}
	v.connect(emulated.Right, v.nameOf(v.pairs[1].Right()))
	other.AwaitHardware(isUp) // it connects by itself
	v.connect(emulated.Left, v.nameOf(v.pairs[1].Left()))
	v.glasses.AwaitHardware(isUpWithoutProblem)
	last := v.attach(t, "Even G1_31")
	last.AwaitHardware(hasProblem("busy_elsewhere"))
	v.do(chromedp.Navigate("about:blank"))
	last.AwaitHardware(isUp)
}

func TestPage_HasOneTab(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	address, _, _ := strings.Cut(v.url(), "#")
	v.connectPair(v.pairs[0])
	first := v.tab
	second, _ := chromium.Tab(first, t, chromedp.WithNewWindow(false))
	v.tab = second
	v.do(chromedp.Navigate(address))
	v.awaitText("main", "Another tab has the glasses")
	v.chooser = chromium.NewChooser(second, t)
	v.do(chromedp.Click("#take"))
	v.awaitText("[data-key=left] button", "Connect left arm")
	v.tab = first
	v.awaitText("main", "Another tab has taken the glasses")
	v.glasses.AwaitHardware(hasProblem("not_chosen"))
	v.tab = second
	v.connectPair(v.pairs[0])
	v.glasses.Must(glasses.TypeDisplayShow, hello)
}

// The arms disconnect after 32 s without a heartbeat. Browsers slow down the timers of a hidden page, but the
// heartbeats do not depend on them.
func TestPage_KeepsTheGlassesAliveInAHiddenTab(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	v.connectPair(v.pairs[0])
	chromium.Tab(v.tab, t, chromedp.WithNewWindow(false)) // in front of the page
	v.await("document.hidden")
	beats := 2
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		beats = 5 // takes more than 32 s
	}
	for left, right := 0, 0; left < beats || right < beats; time.Sleep(100 * time.Millisecond) {
		v.await("document.hidden")
		v.Emulate(func(int64) {
			left, right = v.pairs[0].Heartbeats(emulated.Left), v.pairs[0].Heartbeats(emulated.Right)
		})
	}
	v.glasses.Must(glasses.TypeDisplayShow, hello)
	v.picturesOnBoth()
	v.Emulate(func(int64) {
		if broken := v.pairs[0].Violations(); len(broken) > 0 {
			t.Errorf("the adapter broke the protocol: %v", broken)
		}
	})
}

// After a browser without Web Bluetooth was used, the address still works in another browser.
func TestPage_SendsThePersonToAnotherBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	v := &visit{world: w, t: t, tab: chromium.OpenBluetooth(t, w.Address, chromedp.Flag("disable-blink-features", "WebBluetooth"))}
	v.glasses = attachtest.Attach(t, w.client, &pluginv1.AttachOpen{
		DeviceModel: "even_g1", SessionId: "loc_visit", Via: viaBrowser,
	})
	url := v.url()
	v.do(chromedp.Navigate(url))
	v.do(chromedp.WaitVisible("#address"))
	v.awaitText("main", "This browser cannot use Bluetooth")
	v.await(fmt.Sprintf("document.querySelector('#address').value === %q", url))
}

// A page that hung may answer an earlier request late, so that the service requests a link that is already open. The
// page must answer, because the service waits for it.
func TestBluetooth_AnswersForALinkThatIsOpen(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	answer, err := chromium.Run(v.tab, chromedp.Evaluate[string](`import("/bluetooth.js").then(({ Bluetooth }) => {
		const events = [];
		const bluetooth = new Bluetooth((e) => events.push(e.kind));
		bluetooth.links.set("left", { input: {}, opening: null });
		bluetooth.open("left");
		return events.join();
	})`, chromedp.EvalAwaitPromise))
	if err != nil || answer != "up" {
		t.Errorf("got the events %q (error %v), want up", answer, err)
	}
}
