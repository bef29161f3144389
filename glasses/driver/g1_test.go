package driver_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/g1"
	"github.com/service-dev/service/test/glassestest/peripheral"
	emulatedframe "github.com/service-dev/service/test/glassestest/peripheral/frame"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// g1Air connects the driver to an emulated pair.
func g1Air(t *testing.T, o emulated.Options) (*air, *emulated.Pair) {
	t.Helper()
	if o.Channel == 0 {
		o.Channel = 27
	}
	pair := emulated.New(o)
	a := newAir(t, "even_g1", g1.New(driver.Panel{}), map[string]peripheral.Peripheral{
		g1.Left: pair.Left(), g1.Right: pair.Right(),
	})
	t.Cleanup(func() {
		v := pair.Violations()
		if a.lossy {
			v = pair.Grave() // lost packets look like a wrong sequence
		}
		if len(v) > 0 {
			t.Errorf("the driver broke the protocol: %.500q", v)
		}
	})
	return a, pair
}

// wantPicture checks the pictures on both arms.
func wantPicture(t *testing.T, pair *emulated.Pair, show glasses.Show) {
	t.Helper()
	for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
		got, ok := pair.Picture(side)
		if !ok {
			t.Errorf("the %v arm shows no picture", side)
			continue
		}
		if err := samePixels(got, drawn(t, "even_g1", show)); err != nil {
			t.Errorf("the %v arm: %v", side, err)
		}
	}
}

// A page does not know the MTU that the browser and the peripheral agreed on.
func TestDrivers_WorkWithoutKnowingTheMTU(t *testing.T) {
	one, pair := g1Air(t, emulated.Options{})
	other, frame := frameAir(t, "brilliant_frame", emulatedframe.Options{})
	show := tree("Hello from a page")
	for _, a := range []*air{one, other} {
		a.hideMTU = true
		a.waitConnected()
		if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
			t.Fatalf("%s: got %+v, want ok", a.glasses.Model().ID, r.Error)
		}
	}
	wantPicture(t, pair, show)
	wantFramePicture(t, frame, drawn(t, "brilliant_frame", show))
}

func TestG1_ShowsWhatTheSimulatorShows(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	show := tree("Hello from the air")
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Fatalf("got %+v, want ok", r.Error)
	}
	wantPicture(t, pair, show)
	if r := a.wait(a.send(glasses.TypeDisplayClear, struct{}{})); !r.OK {
		t.Fatalf("clear: got %+v, want ok", r.Error)
	}
	for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
		if _, ok := pair.Picture(side); ok {
			t.Errorf("the %v arm still shows a picture after clear", side)
		}
	}
}

func TestG1_StaysConnectedWhileIdle(t *testing.T) {
	a, _ := g1Air(t, emulated.Options{})
	a.waitConnected()
	a.run(a.now + 10*60_000)
	if got := a.linkState(); got != glasses.LinkConnected || len(a.events(glasses.TypeLink)) != 2 {
		t.Errorf("after ten minutes: notes %v, got link %q and events %v, want one lost and one connected", a.notes, got,
			a.events(glasses.TypeLink))
	}
}

func TestG1_ReportsTheWearersInputs(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	show := tree("Tap me")
	a.wait(a.send(glasses.TypeDisplayShow, show))
	pair.Tap(a.now, emulated.Right)
	a.run(a.now + 10)
	pair.DoubleTap(a.now, emulated.Left)
	a.run(a.now + 10)
	got := a.events(glasses.TypeInput)
	if len(got) != 2 || !strings.Contains(got[0], `"kind":"tap"`) || !strings.Contains(got[0], `"side":"right"`) ||
		!strings.Contains(got[1], `"kind":"doubleTap"`) {
		t.Errorf("got inputs %v, want a tap on the right and a double tap on the left", got)
	}
	if _, ok := pair.Picture(emulated.Left); ok {
		t.Fatal("the emulator still shows the picture after a double tap")
	}
	a.run(a.now + 5000)
	wantPicture(t, pair, show) // the driver shows it again
}
