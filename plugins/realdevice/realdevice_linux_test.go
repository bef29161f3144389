package realdevice

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/plugins/internal/attachtest"
	"github.com/service-dev/service/plugins/internal/bluez"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// world is the adapter with a radio and emulated glasses.
type world struct {
	*fakebluez.Radio
	client pluginv1.TransportClient
	pairs  []*emulated.Pair
}

// newWorld starts a radio with pairs on the given channels in range.
func newWorld(t *testing.T, o fakebluez.Options, channels ...int) *world {
	t.Helper()
	w := &world{}
	for _, n := range channels {
		p := emulated.New(emulated.Options{Channel: n, Seed: uint64(n)})
		w.pairs = append(w.pairs, p)
		o.Peripherals = append(o.Peripherals, p.Left(), p.Right())
	}
	w.Radio = fakebluez.Start(t, o)
	w.client = serveAdapter(t, w.Radio)
	return w
}

func serveAdapter(t *testing.T, r *fakebluez.Radio) pluginv1.TransportClient {
	t.Helper()
	a := newAdapter(slog.New(slog.DiscardHandler), bluez.Options{Address: r.Address})
	a.scanTime = 2 * time.Second
	return attachtest.Serve(t, a)
}

func (w *world) attach(t *testing.T, name string) *attachtest.Pair {
	t.Helper()
	o := &pluginv1.AttachOpen{DeviceModel: "even_g1", SessionId: "loc_" + strings.ToLower(t.Name()) + name, Via: "bluez"}
	if name != "" {
		o.Pair = &pluginv1.Pair{Name: name}
	}
	return attachtest.Attach(t, w.client, o)
}

func isUp(h *pluginv1.Hardware) bool {
	for _, l := range h.GetLinks() {
		if l.GetState() != "up" {
			return false
		}
	}
	return len(h.GetLinks()) == 2
}

func hasProblem(code string) func(*pluginv1.Hardware) bool {
	return func(h *pluginv1.Hardware) bool { return h.GetProblem().GetCode() == code }
}

const hello = `{"tree":{"type":"text","text":"Hello over BlueZ"}}`

func TestAttach_ShowsAPictureOnBothArms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	p := w.attach(t, "")
	h := p.AwaitHardware(isUp)
	if h.GetPair().GetName() != "Even G1_27" || len(h.GetPair().GetLinks()) != 2 || h.GetCarrier() != "bluez" {
		t.Errorf("got the hardware %v, want the pair Even G1_27 over bluez", h)
	}
	p.Must(glasses.TypeDisplayShow, hello)
	w.Emulate(func(int64) {
		for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
			if _, ok := w.pairs[0].Picture(side); !ok {
				t.Errorf("the %v arm shows no picture", side)
			}
		}
		w.pairs[0].Tap(0, emulated.Right)
	})
	for f := p.Next(); f.Type != glasses.TypeInput; f = p.Next() {
	}
	p.End()
	w.Emulate(func(int64) {
		if _, ok := w.pairs[0].Picture(emulated.Left); ok {
			t.Error("the left arm still shows a picture after the session")
		}
		if v := w.pairs[0].Violations(); len(v) > 0 {
			t.Errorf("the adapter broke the protocol: %v", v)
		}
	})
}

func TestAttach_ReconnectsAnArmByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	p := w.attach(t, "")
	p.AwaitHardware(isUp)
	w.Drop(w.pairs[0].Left())
	p.AwaitHardware(func(h *pluginv1.Hardware) bool { return !isUp(h) })
	p.AwaitHardware(isUp)
	p.Must(glasses.TypeDisplayShow, hello)
}

func TestAttach_ExplainsWhatKeepsTheGlassesAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options fakebluez.Options
		pairs   []int
		code    string
	}{
		"no adapter":    {fakebluez.Options{WithoutAdapter: true}, []int{27}, "no_bluetooth"},
		"radio off":     {fakebluez.Options{PoweredOff: true}, []int{27}, "radio_off"},
		"not permitted": {fakebluez.Options{Denied: true}, []int{27}, "no_permission"},
		"two pairs":     {fakebluez.Options{}, []int{27, 31}, "several_in_range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.options, c.pairs...)
			p := w.attach(t, "").AwaitHardware(hasProblem(c.code)).GetProblem()
			if p.GetFixHint() == "" || p.GetMessage() == "" {
				t.Errorf("got %v, want a message and a next step", p)
			}
		})
	}
}

func TestAttach_TakesTheNamedPair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27, 31)
	h := w.attach(t, "Even G1_31").AwaitHardware(isUp)
	if got := h.GetPair().GetName(); got != "Even G1_31" {
		t.Errorf("got the pair %q, want Even G1_31", got)
	}
	if w.Connected(w.pairs[0].Left()) || w.Connected(w.pairs[0].Right()) {
		t.Error("an arm of the other pair is connected")
	}
}

// A single arm is not a pair, and is not completed by the arm of another pair.
func TestAttach_NeverMixesPairs(t *testing.T) {
	t.Parallel()
	one, other := emulated.New(emulated.Options{Channel: 27}), emulated.New(emulated.Options{Channel: 31})
	radio := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{one.Left(), other.Right()}})
	w := &world{Radio: radio, client: serveAdapter(t, radio)}
	h := w.attach(t, "").AwaitHardware(hasProblem("not_in_range"))
	if m := h.GetProblem().GetMessage(); !strings.Contains(m, "Even G1_") || !strings.Contains(m, "arm is not in range") {
		t.Errorf("got %q, want the arm that is missing", m)
	}
	if radio.Connected(one.Left()) || radio.Connected(other.Right()) {
		t.Error("an arm is connected")
	}
}

func TestAttach_OneSessionHasThePair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	first := w.attach(t, "")
	pair := first.AwaitHardware(isUp).GetPair()
	second := attachtest.Attach(t, w.client, &pluginv1.AttachOpen{DeviceModel: "even_g1", SessionId: "loc_second",
		Pair: pair})
	h := second.AwaitHardware(hasProblem("busy_elsewhere"))
	if m := h.GetProblem().GetMessage(); !strings.Contains(m, "loc_testattach_onesessionhasthepair") {
		t.Errorf("got %q, want the session that has the glasses", m)
	}
	first.End()
	second.AwaitHardware(isUp) // it connects by itself
}

func TestAttach_RefusesWhatRealGlassesCannotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{})
	for name, o := range map[string]*pluginv1.AttachOpen{
		"virtual time":          {DeviceModel: "even_g1", VirtualClock: true},
		"model without driver":  {DeviceModel: "rayban_display"},
		"model that is unknown": {DeviceModel: "none"},
	} {
		stream, err := w.client.Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Open{Open: o}}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); len(status.Convert(err).Details()) != 1 {
			t.Errorf("%s: got %v, want a refusal with a problem", name, err)
		}
	}
}

func TestScan_FindsPairs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27, 31)
	stream, err := w.client.Scan(t.Context(), &pluginv1.ScanRequest{Seconds: 2})
	if err != nil {
		t.Fatal(err)
	}
	complete := map[string]bool{}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		complete[m.GetName()] = m.GetDeviceModel() == "even_g1" && m.GetLinks()[0].GetFound() && m.GetLinks()[1].GetFound()
	}
	if len(complete) != 2 || !complete["Even G1_27"] || !complete["Even G1_31"] {
		got, _ := json.Marshal(complete)
		t.Errorf("got %s, want both pairs complete", got)
	}
}

// If remembered glasses are not in range, the problem names them without an address, which agents must not see.
func TestAttach_TellsNoAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{})
	o := &pluginv1.AttachOpen{DeviceModel: "even_g1", SessionId: "loc_away", Pair: &pluginv1.Pair{
		Name: "Even G1_27", Links: []*pluginv1.PairLink{{Key: "left", Address: "C0:FF:EE:00:00:01"},
			{Key: "right", Address: "C0:FF:EE:00:00:02"}},
	}}
	p := attachtest.Attach(t, w.client, o)
	h := p.AwaitHardware(func(h *pluginv1.Hardware) bool { return h.GetProblem() != nil })
	if text := h.GetProblem().String(); strings.Contains(text, "C0:FF") || h.GetProblem().GetFixHint() == "" {
		t.Errorf("got %s, want a problem without an address", text)
	}
	for text, want := range map[string]string{
		`"Frame AB" (C0:FF:EE:00:00:01) is busy`: `"Frame AB" is busy`,
		"C0:FF:EE:00:00:01 is not in range":      "the device is not in range",
	} {
		if got := withoutAddresses(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// A remembered pair that the user did not choose does not prevent the use of another one while it is not in range. A
// session waits for a pair that the user named.
func TestAttach_TakesAnotherPairForOneThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	away := &pluginv1.Pair{Name: "Even G1_99", Inverted: true, OrOther: true, Links: []*pluginv1.PairLink{
		{Key: "left", Address: "C0:FF:EE:00:00:01"}, {Key: "right", Address: "C0:FF:EE:00:00:02"},
	}}
	open := &pluginv1.AttachOpen{DeviceModel: "even_g1", SessionId: "loc_any", Pair: away}
	p := attachtest.Attach(t, w.client, open)
	h := p.AwaitHardware(isUp)
	if got := h.GetPair(); got.GetName() != "Even G1_27" || got.GetInverted() || got.GetOrOther() {
		t.Errorf("got the pair %v, want Even G1_27 with settings of its own, and no other from now on", got)
	}
	p.End()
	away.OrOther = false
	h = attachtest.Attach(t, w.client, open).AwaitHardware(hasProblem("not_in_range"))
	if got := h.GetPair().GetName(); got != "Even G1_99" {
		t.Errorf("got the pair %q, want the one that was named", got)
	}
}

// Two pairs with the same name cannot be told apart before they are connected, so neither is used.
func TestAttach_RefusesTwoPairsOfOneName(t *testing.T) {
	t.Parallel()
	one, other := emulated.New(emulated.Options{Channel: 27}), emulated.New(emulated.Options{Channel: 27, Unit: 1})
	radio := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{
		one.Left(), other.Right(), one.Right(), other.Left(),
	}})
	w := &world{Radio: radio, client: serveAdapter(t, radio)}
	p := w.attach(t, "Even G1_27")
	h := p.AwaitHardware(hasProblem("several_in_range"))
	if m := h.GetProblem(); !strings.Contains(m.GetMessage(), "two pairs") || !strings.Contains(m.GetFixHint(), "case") {
		t.Errorf("got %v, want two pairs of one name and what to do", m)
	}
	p.End()
	known := &pluginv1.Pair{Name: "Even G1_27"}
	for _, arm := range []*emulated.Arm{other.Left(), other.Right()} {
		key := []string{"left", "right"}[len(known.Links)]
		radio.Emulate(func(int64) {
			adv, _ := arm.Advertisement()
			known.Links = append(known.Links, &pluginv1.PairLink{Key: key, Address: adv.Address})
		})
	}
	attachtest.Attach(t, w.client, &pluginv1.AttachOpen{DeviceModel: "even_g1", SessionId: "loc_known",
		Pair: known}).AwaitHardware(isUp)
	if !radio.Connected(other.Left()) || !radio.Connected(other.Right()) || radio.Connected(one.Left()) {
		t.Error("the pair whose addresses are known is not the one that is connected")
	}
}

// The user switches Bluetooth off and on again while the glasses stream sound and show a picture. The session reports
// it, the stream ends, and the glasses reconnect by themselves with the picture.
func TestAttach_ComesBackWithTheRadio(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	p := w.attach(t, "")
	p.AwaitHardware(isUp)
	p.Must(glasses.TypeDisplayShow, hello)
	p.Must(glasses.TypeAudioStart, `{"sampleRate":16000}`)
	w.Emulate(func(now int64) { w.pairs[0].Speak(now, make([]byte, 2000)) })
	w.SetPowered(false)
	h := p.AwaitHardware(hasProblem("radio_off"))
	if hint := h.GetProblem().GetFixHint(); isUp(h) || hint == "" {
		t.Errorf("got %v, want glasses that are down and a next step", h)
	}
	w.SetPowered(true)
	p.AwaitHardware(isUp)
	p.Must(glasses.TypeAudioStart, `{"sampleRate":16000}`) // it would fail with busy if the stream were still running
	p.Must(glasses.TypeDisplayShow, hello)
	w.Emulate(func(int64) {
		for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
			if _, ok := w.pairs[0].Picture(side); !ok {
				t.Errorf("the %v arm shows no picture", side)
			}
		}
		if v := w.pairs[0].Grave(); len(v) > 0 {
			t.Errorf("the adapter sent what it must not: %v", v)
		}
	})
}

// The host's panel settings sent while the arms are being connected apply to the pair that is found meanwhile.
func TestAttach_HearsOfThePanelWhileItConnects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	p := w.attach(t, "Even G1_27")
	for rows := range int32(136) {
		p.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Panel{Panel: &pluginv1.PairPanel{Rows: rows}}})
	}
	h := p.AwaitHardware(func(h *pluginv1.Hardware) bool { return isUp(h) && h.GetPair().GetRows() == 135 })
	if len(h.GetPair().GetLinks()) != 2 {
		t.Errorf("got the pair %v, want the addresses that were found", h.GetPair())
	}
}

// A session that is attached again waits until its earlier glasses are released, and then gets the same pair.
func TestAttach_ContinuesASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakebluez.Options{}, 27)
	first := w.attach(t, "")
	pair := first.AwaitHardware(isUp).GetPair()
	second := attachtest.Attach(t, w.client, &pluginv1.AttachOpen{
		DeviceModel: "even_g1", SessionId: "loc_" + strings.ToLower(t.Name()), Pair: pair,
	})
	first.End()
	second.AwaitHardware(isUp)
	second.Must(glasses.TypeDisplayShow, hello)
}

// The test runs alone, because it limits the time of each answer.
func TestAttach_ConformsToTheProtocol(t *testing.T) {
	w := newWorld(t, fakebluez.Options{}, 27)
	p := w.attach(t, "")
	p.AwaitHardware(isUp)
	w.Emulate(func(now int64) { w.pairs[0].Speak(now, make([]byte, 20_000)) })
	p.Conforms(t, "even_g1")
}
