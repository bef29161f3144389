package driver_test

import (
	"encoding/json"
	"fmt"
	"image"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	emulatedframe "github.com/service-dev/service/test/glassestest/peripheral/frame"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// wantUnconfirmed checks the reason why the glasses have not confirmed their picture.
func wantUnconfirmed(t *testing.T, a *air, when, want string) {
	t.Helper()
	r := a.glasses.Control(a.now, glasses.SimState, json.RawMessage("{}"), nil)
	a.settle()
	if r.Unconfirmed != want {
		t.Errorf("%s: unconfirmed is %q, want %q", when, r.Unconfirmed, want)
	}
}

func TestG1_SaysWhichArmHasNotConfirmed(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	a.run(a.now + 1000)
	wantUnconfirmed(t, a, "a clear panel", "")
	id := a.send(glasses.TypeDisplayShow, tree("one"))
	wantUnconfirmed(t, a, "at once", "the left arm has not confirmed the picture yet, "+
		"the right arm has not confirmed the picture yet")
	a.wait(id)
	wantUnconfirmed(t, a, "after the answer", "")

	pair.SetFaults(a.now, emulated.Right, emulated.Faults{Mute: []byte{0x20}})
	id = a.send(glasses.TypeDisplayShow, tree("two"))
	a.run(a.now + 1500)
	wantUnconfirmed(t, a, "while the right arm is asked again", "the right arm has not confirmed the picture yet")
	a.wait(id)
	wantUnconfirmed(t, a, "after the failure", "the right arm did not acknowledge the picture")
	pair.SetFaults(a.now, emulated.Right, emulated.Faults{FailCRC: 10})
	a.wait(a.send(glasses.TypeDisplayShow, tree("three")))
	wantUnconfirmed(t, a, "after a refusal", "the right arm refused the picture")
	pair.SetFaults(a.now, emulated.Right, emulated.Faults{})
	a.wait(a.send(glasses.TypeDisplayClear, struct{}{}))
	wantUnconfirmed(t, a, "cleared", "")

	a.wait(a.send(glasses.TypeDisplayShow, tree("four")))
	pair.Drop(a.now, emulated.Left, 15_000)
	a.runWhile(60_000, func() bool { return a.linkState() == glasses.LinkConnected })
	wantUnconfirmed(t, a, "without the left arm", "the left arm is not connected")
	a.runWhile(60_000, func() bool { return a.linkState() != glasses.LinkConnected })
	a.run(a.now + 5000)
	wantUnconfirmed(t, a, "once the left arm is back and painted", "")

	a.glasses.ShowTest(a.now, driver.Panel{}, image.NewNRGBA(image.Rect(0, 0, 576, 136)))
	a.settle()
	a.run(a.now + 5000)
	wantUnconfirmed(t, a, "with a test picture", "the panel shows a test picture")
	a.glasses.EndTest(a.now, driver.Panel{})
	a.settle()
	a.run(a.now + 5000)
	wantUnconfirmed(t, a, "after the test picture", "")
}

func TestFrame_SaysThatItHasNotConfirmed(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		id := a.send(glasses.TypeDisplayShow, tree("one"))
		wantUnconfirmed(t, a, "at once", "the glasses have not confirmed the picture yet")
		a.wait(id)
		wantUnconfirmed(t, a, "after the answer", "")
		a.lossy = true
		d.Drop(5000)
		a.run(a.now + 100)
		wantUnconfirmed(t, a, "without a connection", "the glasses are not connected")
	})
}

// While a picture is being sent, the glasses report the view that both arms confirmed before it, if the panel still
// shows that view.
func TestG1_ReportsTheConfirmedView(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	a.run(a.now + 1000)
	next := 0
	want := func(when, want string) {
		t.Helper()
		next++
		id := a.send(glasses.TypeDisplayShow, tree(fmt.Sprint("later ", next)))
		r := a.glasses.Control(a.now, glasses.SimState, json.RawMessage("{}"), nil)
		a.settle()
		got := ""
		if r.Confirmed != nil && r.Confirmed.Tree != nil {
			got = r.Confirmed.Tree.Children[0].Text
		}
		if got != want {
			t.Errorf("%s: the confirmed view is %q, want %q", when, got, want)
		}
		a.wait(id)
	}
	a.wait(a.send(glasses.TypeDisplayShow, tree("one")))
	want("after a confirmed picture", "one")
	a.glasses.ShowTest(a.now, driver.Panel{}, image.NewNRGBA(image.Rect(0, 0, 576, 136)))
	a.settle()
	a.run(a.now + 5000)
	want("with a test picture", "")
	a.glasses.EndTest(a.now, driver.Panel{})
	a.settle()
	a.run(a.now + 5000)
	want("after the test picture", "later 2")
	pair.SetFaults(a.now, emulated.Right, emulated.Faults{FailCRC: 10})
	want("before a refusal", "later 3")
	pair.SetFaults(a.now, emulated.Right, emulated.Faults{})
	want("after a refusal", "")
	pair.Drop(a.now, emulated.Left, 15_000)
	a.runWhile(60_000, func() bool { return a.linkState() == glasses.LinkConnected })
	want("without the left arm", "")
	a.runWhile(60_000, func() bool { return a.linkState() != glasses.LinkConnected })
	want("when the left arm is back", "")
	want("after the next picture", "later 7")
}
