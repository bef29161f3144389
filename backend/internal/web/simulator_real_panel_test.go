package web

import (
	"encoding/json"
	"image"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// A user answers the two questions on the page. The browser keeps the answer for this pair, so that the pictures are
// right immediately the next time.
func TestRealGlasses_CheckTheirPanel(t *testing.T) {
	s := newRealTest(t)
	s.useGlasses()
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Fatalf("display.show: %+v", r.Error)
	}
	m, _ := glasses.Model("even_g1")
	s.do(chromium.Press("#real-panel [data-do=begin]"))
	s.seePanelSay("Look through them")
	s.wantArms("the test picture", func(got image.Image) bool { return isLit(got, panelcheck.Picture(m, 0)) })
	s.say("yes", "no")
	s.seePanelSay("Look once more")
	s.wantArms("the lower test picture", func(got image.Image) bool { return isLit(got, panelcheck.Picture(m, 135)) })
	s.picture("panel-check")
	s.say("yes", "yes")
	s.seePanelSay("remembered for Even G1_27")
	low := func(got image.Image) bool { return isLit(got, cropped(drawn(t, "even_g1", menu), 135)) }
	s.wantArms("the app's picture with 135 rows", low)

	s.do(chromium.Press("#real-end"))
	s.wantPanels("")
	s.wantFree()
	s.useGlasses()
	if r := s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu))); !r.OK {
		t.Fatalf("display.show after the return: %+v", r.Error)
	}
	s.wantArms("the app's picture with 135 rows after the return", low)
	s.seePanelSay("Pictures were right on Even G1_27")
}

func (s *realTest) seePanelSay(text string) {
	s.t.Helper()
	data, _ := json.Marshal(text)
	s.see(`(e => e.checkVisibility() && e.innerText.includes(` + string(data) +
		`))(document.querySelector("#real-panel .panel-check-say"))`)
}

// say answers both questions about the test picture.
func (s *realTest) say(upright, border string) {
	s.t.Helper()
	s.do(chromedp.Click("#real-panel [name=upright][value=" + upright + "]"))
	s.do(chromedp.Click("#real-panel [name=border][value=" + border + "]"))
	s.do(chromium.Press("#real-panel [type=submit]"))
}

// wantArms waits until both arms show a picture.
func (s *realTest) wantArms(what string, isWanted func(image.Image) bool) {
	s.t.Helper()
	for end := time.Now().Add(chromium.StepLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		shown := s.panels()
		if shown[g1.Left] != nil && shown[g1.Right] != nil && isWanted(shown[g1.Left]) && isWanted(shown[g1.Right]) {
			return
		}
	}
	s.t.Fatalf("the arms do not show %s; the page shows:\n%s", what, s.text("body"))
}

func cropped(img *image.NRGBA, rows int) *image.NRGBA {
	return img.SubImage(image.Rect(0, 0, img.Rect.Dx(), rows)).(*image.NRGBA)
}
