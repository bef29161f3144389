package realdevice

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// The page and the host report each mistake that a user can make, with the next step.
func TestPage_SaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27, 31)
	v.do(chromedp.Click("[data-key=left] button"))
	v.chooser.Cancel()
	v.awaitText("[data-key=left] .note", "No glasses were chosen")
	v.glasses.AwaitHardware(hasProblem("cancelled"))

	v.connect(emulated.Left, v.nameOf(v.pairs[0].Right()))
	v.awaitText("[data-key=left] .note", "is the right arm")
	v.connect(emulated.Left, v.nameOf(v.pairs[0].Left()))
	v.awaitText("[data-key=left] .name", v.nameOf(v.pairs[0].Left()))
	v.connect(emulated.Right, v.nameOf(v.pairs[1].Right()))
	v.awaitText("[data-key=right] .note", "belong to different pairs")
	v.glasses.AwaitHardware(func(h *pluginv1.Hardware) bool {
		m := h.GetProblem().GetMessage()
		return strings.Contains(m, v.nameOf(v.pairs[0].Left())) && strings.Contains(m, v.nameOf(v.pairs[1].Right()))
	})
	v.SetFaults(v.pairs[0].Right(), fakebluez.Faults{AbortConnects: 1})
	v.record()
	v.connect(emulated.Right, v.nameOf(v.pairs[0].Right()))
	v.awaitRecorded("The glasses do not answer")
	v.glasses.AwaitHardware(isUp) // it reconnects by itself
	if v.Connected(v.pairs[1].Right()) {
		t.Error("an arm of the other pair is connected")
	}
}

// When the user switches Bluetooth off, the page reports that instead of glasses that do not answer, and reconnects
// the glasses by itself once Bluetooth is on again. If there is no Bluetooth at all, the page reports it before the
// user chooses a device.
func TestPage_SaysThatBluetoothIsOff(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	v.connectPair(v.pairs[0])
	v.SetPowered(false)
	v.awaitText("[data-key=left] .note", "Bluetooth is switched off")
	v.glasses.AwaitHardware(func(h *pluginv1.Hardware) bool { return !isUp(h) })
	v.SetPowered(true)
	v.glasses.AwaitHardware(isUp)
	v.glasses.Must(glasses.TypeDisplayShow, hello)
	v.picturesOnBoth()
	v.SetAdapter(false)
	v.do(chromedp.Reload())
	v.awaitText("[data-key=left] .note", "finds no Bluetooth on this computer")
	v.glasses.AwaitHardware(hasProblem("no_bluetooth"))
}

// If the services disappear during a write, Chromium stops answering the page, which says so. The reloaded page offers
// to connect the glasses again. The test does not connect them, because Chromium sometimes keeps the attempt of the
// page before until it is restarted.
func TestPage_SaysThatItMustBeReloaded(t *testing.T) {
	t.Parallel()
	v := newVisit(t, 27)
	v.connectPair(v.pairs[0])
	v.setFaults(fakebluez.Faults{HangWrites: true})
	before := v.Calls("WriteValue")
	v.glasses.Start(glasses.TypeDisplayShow, hello)
	for v.Calls("WriteValue") == before {
		v.await("true")
	}
	v.SetPowered(false)
	v.awaitText("[data-key=left] .note", "Reload the page")
	v.glasses.AwaitHardware(hasProblem("browser_stuck"))
	v.SetPowered(true)
	v.setFaults(fakebluez.Faults{})
	v.do(chromedp.Reload())
	v.awaitText("[data-key=left] button", "Connect left arm")
	v.glasses.AwaitHardware(hasProblem("not_chosen"))
}
