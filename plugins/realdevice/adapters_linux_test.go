package realdevice

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// newTwoAdapters starts a radio with two adapters and a pair of glasses in range of the second one and, if both is
// set, of the first one.
func newTwoAdapters(t *testing.T, o fakebluez.Options, both bool) *world {
	t.Helper()
	pair := emulated.New(emulated.Options{Channel: 27, Seed: 27})
	arms := []peripheral.Peripheral{pair.Left(), pair.Right()}
	if both {
		o.Peripherals = arms
	}
	o.More = []fakebluez.AdapterOptions{{Peripherals: arms}}
	w := &world{Radio: fakebluez.Start(t, o), pairs: []*emulated.Pair{pair}}
	w.client = serveAdapter(t, w.Radio)
	return w
}

func TestAttach_UsesTheAdapterThatHearsTheGlasses(t *testing.T) {
	t.Parallel()
	for name, both := range map[string]bool{"the second one": false, "both": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwoAdapters(t, fakebluez.Options{}, both)
			p := w.attach(t, "")
			p.AwaitHardware(isUp)
			p.Must(glasses.TypeDisplayShow, hello)
		})
	}
}

// If the adapter that is connected to the glasses is unplugged, the other one takes over.
func TestAttach_SurvivesTheLossOfAnAdapter(t *testing.T) {
	t.Parallel()
	w := newTwoAdapters(t, fakebluez.Options{}, true)
	p := w.attach(t, "")
	p.AwaitHardware(isUp)
	p.Must(glasses.TypeDisplayShow, hello)
	w.SetAdapter(false)
	p.AwaitHardware(func(h *pluginv1.Hardware) bool { return !isUp(h) })
	p.AwaitHardware(isUp)
	p.Must(glasses.TypeDisplayShow, hello)
}

func TestAttach_NamesTheAdapters(t *testing.T) {
	t.Parallel()
	w := newTwoAdapters(t, fakebluez.Options{PoweredOff: true}, false)
	w.SetPoweredOf(1, false)
	p := w.attach(t, "Even G1_99")
	h := p.AwaitHardware(hasProblem("radio_off")).GetProblem()
	text := h.GetMessage() + " " + h.GetFixHint()
	if !strings.Contains(text, "hci0 is switched off, hci1 is switched off") ||
		!strings.Contains(text, "bluetoothctl power on") {
		t.Errorf("got %q, want both adapters and what to do", text)
	}
	w.SetPowered(true)
	h = p.AwaitHardware(hasProblem("not_in_range")).GetProblem()
	if text := h.GetMessage(); !strings.Contains(text, "(searched with hci0; hci1 is ") {
		t.Errorf("got %q, want the adapters that were used and that were not", text)
	}
}
