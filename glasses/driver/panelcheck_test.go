package driver_test

import (
	"image"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/g1"
	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/internal/problem"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// begin starts a check of the panel and runs until it asks a question or ends.
func (a *air) begin(known driver.Panel) *panelcheck.Check {
	a.t.Helper()
	check := panelcheck.Begin(a.now, a.glasses, known)
	a.tested = func(t driver.Tested) { check.Tested(a.now, t) }
	a.drain()
	a.runCheck(check)
	return check
}

func (a *air) runCheck(check *panelcheck.Check) {
	a.t.Helper()
	if !a.runWhile(60_000, func() bool { return check.Step() == panelcheck.Showing }) {
		a.t.Fatalf("the test picture was not answered; notes %v", a.notes)
	}
}

// say answers the check's questions.
func (a *air) say(check *panelcheck.Check, isUpright, hasBorder bool) {
	a.t.Helper()
	check.Answer(a.now, isUpright, hasBorder)
	a.drain()
	a.runCheck(check)
	a.run(a.now + 5000) // the next picture is on the panel
}

// wantLit compares the pictures of the arms with a picture. On an inverted panel, lit and dark pixels are swapped.
func wantLit(t *testing.T, pair *emulated.Pair, want image.Image, isInverted bool) {
	t.Helper()
	for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
		got, ok := pair.Picture(side)
		if !ok {
			t.Fatalf("the %v arm shows nothing", side)
		}
		if got.Bounds().Size() != want.Bounds().Size() {
			t.Fatalf("the %v arm got a picture of %v, want %v", side, got.Bounds().Size(), want.Bounds().Size())
		}
		for y := range want.Bounds().Dy() {
			for x := range want.Bounds().Dx() {
				r, g, b, _ := got.At(x, y).RGBA()
				wr, wg, wb, _ := want.At(x, y).RGBA()
				if isLit := r+g+b > 0 != isInverted; isLit != (wr+wg+wb > 0) {
					t.Fatalf("the %v arm: pixel %d,%d differs", side, x, y)
				}
			}
		}
	}
}

func TestPanelCheck_FindsTheWayThatIsRight(t *testing.T) {
	for name, right := range map[string]driver.Panel{
		"as documented": {}, "inverted": {Inverted: true}, "lower": {Rows: 135}, "both": {Inverted: true, Rows: 135},
	} {
		t.Run(name, func(t *testing.T) {
			a, pair := g1Air(t, emulated.Options{})
			a.waitConnected()
			show := tree("Shown by an app")
			if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
				t.Fatalf("got %+v, want ok", r.Error)
			}
			check := a.begin(driver.Panel{})
			if check.Step() != panelcheck.Asking {
				t.Fatalf("got step %s, want %s", check.Step(), panelcheck.Asking)
			}
			wantLit(t, pair, panelcheck.Picture(a.glasses.Model(), 0), false)
			a.say(check, !right.Inverted, right.Rows == 0)
			if right != (driver.Panel{}) {
				if check.Step() != panelcheck.AskingAgain {
					t.Fatalf("got step %s, want %s", check.Step(), panelcheck.AskingAgain)
				}
				wantLit(t, pair, panelcheck.Picture(a.glasses.Model(), right.Rows), right.Inverted)
				a.say(check, true, true)
			}
			if check.Step() != panelcheck.Right || check.Panel() != right {
				t.Errorf("got %s with %+v, want %s with %+v", check.Step(), check.Panel(), panelcheck.Right, right)
			}
			want := drawn(t, "even_g1", show)
			if right.Rows > 0 {
				want, _ = want.SubImage(image.Rect(0, 0, want.Rect.Dx(), right.Rows)).(*image.NRGBA)
			}
			wantLit(t, pair, want, right.Inverted)
		})
	}
}

func TestPanelCheck_KeepsWhatIsKnown(t *testing.T) {
	known := driver.Panel{Inverted: true}
	for name, end := range map[string]func(*air, *panelcheck.Check){
		"wrong both ways": func(a *air, c *panelcheck.Check) { a.say(c, false, true); a.say(c, false, true) },
		"cancelled":       func(a *air, c *panelcheck.Check) { c.Cancel(a.now); a.drain(); a.run(a.now + 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			a, pair := g1Air(t, emulated.Options{})
			a.glasses.SetPanel(a.now, known)
			a.drain()
			a.waitConnected()
			check := a.begin(known)
			end(a, check)
			if check.Step() != panelcheck.Wrong || check.Panel() != known {
				t.Errorf("got %s with %+v, want %s with %+v", check.Step(), check.Panel(), panelcheck.Wrong, known)
			}
			show := tree("Still inverted")
			if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
				t.Fatalf("got %+v, want ok", r.Error)
			}
			wantLit(t, pair, drawn(t, "even_g1", show), true)
		})
	}
}

// A show during the check is answered, and its picture is on the panel afterwards.
func TestPanelCheck_IsNotDisturbedByApps(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	check := a.begin(driver.Panel{})
	show := tree("Meanwhile")
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Fatalf("got %+v, want ok", r.Error)
	}
	wantLit(t, pair, panelcheck.Picture(a.glasses.Model(), 0), false)
	a.say(check, true, true)
	wantPicture(t, pair, show)
}

func TestPanelCheck_EndsWithTheConnection(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	check := a.begin(driver.Panel{})
	a.peers[g1.Right].Disconnect(a.now)
	a.later.Add(a.now, func() { a.down(g1.Right, problem.CodeLost) })
	a.run(a.now + 100)
	if check.Step() != panelcheck.Lost {
		t.Errorf("got step %s, want %s", check.Step(), panelcheck.Lost)
	}
	a.waitConnected()
	for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
		if _, ok := pair.Picture(side); ok {
			t.Errorf("the %v arm shows a picture, but no app showed one", side)
		}
	}
}

func TestPanelCheck_WithoutConnection(t *testing.T) {
	a, _ := g1Air(t, emulated.Options{})
	if check := a.begin(driver.Panel{}); check.Step() != panelcheck.Lost {
		t.Errorf("got step %s, want %s", check.Step(), panelcheck.Lost)
	}
}
