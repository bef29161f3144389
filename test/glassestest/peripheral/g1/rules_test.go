package g1

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

func TestArm_DropsWithoutHeartbeat(t *testing.T) {
	c := connect(t, Options{})
	beat := []byte{0x25, 0x06, 0x00, 0x01, 0x04, 0x01}
	for range 4 {
		c.now += 31_999
		c.ask(Left, beat, 0x25)
	}
	if got := c.values(Right); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("the right arm sent % X without heartbeats", got)
	}
	c.now += 32_000
	if got := c.values(Left); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("the left arm sent % X without heartbeats", got)
	}
	c.violations("right: no heartbeat", "left: no heartbeat")
	if _, ok := c.pair.Left().Advertisement(); !ok {
		t.Error("the arm does not advertise again")
	}
	c.open(Left)
	c.ask(Left, beat, 0x25)
}

func TestArm_IgnoresMalformedHeartbeat(t *testing.T) {
	c := connect(t, Options{})
	c.now = 20_000
	c.send(Left, 0x25, 0x06, 0x00, 0x01, 0x04, 0x02)
	c.send(Left, 0x25, 0x07, 0x00, 0x01, 0x04, 0x01)
	c.send(Left, 0x25, 0x01, 0x01)
	c.now = 32_000
	if got := c.values(Left); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("the left arm sent % X", got)
	}
}

func TestArm_RefusesTooLong(t *testing.T) {
	p := New(Options{})
	a := p.Left()
	if err := a.Connect(0, 23); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(0, WriteUUID, make([]byte, 20), true); err != nil {
		t.Errorf("20 bytes: %v", err)
	}
	if err := a.Write(0, WriteUUID, make([]byte, 21), true); !errors.Is(err, peripheral.ErrTooLong) {
		t.Errorf("21 bytes: %v", err)
	}
	if err := a.Write(0, WriteUUID, make([]byte, 21), false); err != nil {
		t.Errorf("21 bytes without a response: %v", err)
	}
	if n := p.Packets(Left); n != 1 {
		t.Errorf("%d packets received, want 1", n)
	}
	if err := p.Right().Connect(0, 517); err != nil || p.Right().Payload() != 248 {
		t.Errorf("payload %d with an MTU of 517: %v", p.Right().Payload(), err)
	}
}

func TestArm_CutsNotifications(t *testing.T) {
	p := New(Options{})
	a := p.Left()
	if err := errors.Join(a.Connect(0, 23), a.Write(0, WriteUUID, []byte{0x23, 0x74}, false)); err != nil {
		t.Fatal(err)
	}
	if got := a.Take(); got != nil {
		t.Errorf("%d values without a subscription", len(got))
	}
	if err := a.Subscribe(0, NotifyUUID, true); err != nil {
		t.Fatal(err)
	}
	_ = a.Write(300, WriteUUID, []byte{0x23, 0x74}, false)
	if got := a.Take(); len(got) != 1 || string(got[0].Value) != "net build time: 2024" {
		t.Errorf("got %+v", got)
	}
}

func TestArm_ChecksGATT(t *testing.T) {
	a := New(Options{}).Left()
	if err := a.Write(0, WriteUUID, []byte{0x18}, true); !errors.Is(err, peripheral.ErrNotConnected) {
		t.Errorf("write without a connection: %v", err)
	}
	if err := a.Pair(0); !errors.Is(err, peripheral.ErrNotConnected) {
		t.Errorf("bond without a connection: %v", err)
	}
	if err := a.Connect(0, 251); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(0, NotifyUUID, []byte{0x18}, false); !errors.Is(err, peripheral.ErrNotPermitted) {
		t.Errorf("write to the notifying characteristic: %v", err)
	}
	if err := a.Subscribe(0, WriteUUID, true); !errors.Is(err, peripheral.ErrNotPermitted) {
		t.Errorf("subscription to the written characteristic: %v", err)
	}
	if _, err := a.Read(0, "00002a19-0000-1000-8000-00805f9b34fb"); !errors.Is(err, peripheral.ErrNotFound) {
		t.Errorf("read of an unknown characteristic: %v", err)
	}
}

func TestArm_RequiresBond(t *testing.T) {
	c := connect(t, Options{RequireBond: true})
	a := c.pair.Left()
	if err := a.Write(0, WriteUUID, []byte{0x18}, true); !errors.Is(err, peripheral.ErrAuthentication) {
		t.Errorf("write without a bond: %v", err)
	}
	if err := a.Pair(0); err != nil {
		t.Fatal(err)
	}
	c.ask(Left, []byte{0x18}, 0x18, 0xC9)
}

func TestPair_RecordsGraveViolations(t *testing.T) {
	c := connect(t, Options{})
	for _, v := range [][]byte{
		{0x01, 10, 0}, {0x03, 0x0C}, {0x27, 0}, {0x47}, {0x17, 1}, {0x4B, 0}, {0x23, 0x6C}, {0x23},
	} {
		c.send(Right, v...)
	}
	c.send(Left, 0x23, 0x72)
	if got := c.values(Left); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("23 72 led to % X", got)
	}
	if n := len(c.pair.Grave()); n != 9 {
		t.Errorf("%d grave violations, want 9: %q", n, c.pair.Grave())
	}
	c.send(Right)
	c.send(Right, 0x18, 0)
	c.send(Right, 0x15, 0)
	if n, all := len(c.pair.Grave()), len(c.pair.Violations()); n != 9 || all != 12 {
		t.Errorf("%d grave violations of %d, want 9 of 12", n, all)
	}
}

func TestPair_RecordsUnorderedRequests(t *testing.T) {
	c := connect(t, Options{})
	c.send(Left, 0x18)
	c.send(Right, 0x18)
	c.send(Right, 0x18)
	c.violations("right: 18 before the left arm answered", "right: 18 again", "right: 18 before the left")
	c.now = 250
	c.send(Left, 0x18)
	c.values(Left)
	c.send(Right, 0x18)
	c.violations("", "", "")
}

func TestPair_ShowsText(t *testing.T) {
	c := connect(t, Options{})
	c.show(Left, file(136, corner))
	head := func(seq, total, current byte) []byte { return []byte{0x4E, seq, total, current, 0x71, 0, 0, 1, 1} }
	long := strings.Repeat("ä", 95)
	c.ask(Left, append(head(1, 2, 0), long...), 0x4E, 0xCB)
	c.now = 250 // the client has not received the answer
	c.ask(Left, append(head(1, 2, 0), long...), 0x4E, 0xCB)
	c.ask(Left, append(head(1, 2, 1), "end"...), 0x4E, 0xC9)
	if text, _ := c.pair.Text(Left); text != long+"end" {
		t.Errorf("text %q", text)
	}
	if _, ok := c.pair.Picture(Left); ok {
		t.Error("the picture is still shown")
	}
	c.violations()
	c.ask(Left, append(head(1, 3, 0), "a"...), 0x4E, 0xCB)
	c.ask(Left, append(head(1, 3, 1), "b"...), 0x4E, 0xCB)
	c.ask(Left, append(head(1, 3, 1), "b"...), 0x4E, 0xCB)
	c.ask(Left, append(head(1, 3, 2), "c"...), 0x4E, 0xC9)
	if text, _ := c.pair.Text(Left); text != "abc" {
		t.Errorf("text %q, want abc", text)
	}
	c.violations()
	c.ask(Left, append(head(1, 4, 0), "a"...), 0x4E, 0xCB)
	c.ask(Left, append(head(1, 4, 2), "c"...), 0x4E, 0xCA)
	c.ask(Left, append(head(2, 2, 1), "x"...), 0x4E, 0xCA)
	c.ask(Left, append(head(3, 0, 0), "x"...), 0x4E, 0xCA)
	c.ask(Left, append(head(4, 1, 0), make([]byte, 192)...), 0x4E, 0xCA)
	c.ask(Left, append(head(5, 1, 0), 0xC3), 0x4E, 0xC9)
	c.ask(Left, []byte{0x4E, 6, 1, 0, 0x70, 0, 0, 1, 1, 'x'}, 0x4E, 0xC9)
	c.ask(Left, []byte{0x4E, 6, 1, 0, 0x31, 0, 0, 1, 0, 'x'}, 0x4E, 0xC9)
	c.violations("does not follow", "does not follow", "does not follow", "of 201 bytes", "not UTF-8",
		"screen status 70", "status 31 and 0 pages")
}

func TestPair_StreamsMicrophone(t *testing.T) {
	c := connect(t, Options{})
	c.ask(Left, []byte{0x0E, 1}, 0x0E, 0xCA, 1)
	c.violations("the microphone is in the right arm")
	sound := bytes.Repeat([]byte{1, 2, 3, 4, 5}, 90) // 450 bytes
	c.pair.Speak(c.now, sound)
	c.ask(Right, []byte{0x0E, 1}, 0x0E, 0xC9, 1)
	c.ask(Right, []byte{0x0E, 1}, 0x0E, 0xC9, 1)
	c.now += 99
	if got := c.values(Right); got != nil {
		t.Errorf("% X before 100 ms", got)
	}
	c.now++
	c.want(Right, append([]byte{0xF1, 0}, sound[:200]...)...)
	c.now += 1000
	c.want(Right, append([]byte{0xF1, 1}, sound[200:400]...)...)
	c.pair.Speak(c.now, sound)
	c.ask(Right, []byte{0x0E, 0}, 0x0E, 0xC9, 0)
	c.now += 1000
	if got := c.values(Right); got != nil || c.pair.Microphone() {
		t.Errorf("% X after the microphone was switched off", got)
	}
	c.ask(Right, []byte{0x0E, 1}, 0x0E, 0xC9, 1)
	c.now += 100
	c.want(Right, append([]byte{0xF1, 0}, sound[400:]...)...)
	c.pair.Drop(c.now, Right, 0)
	if c.pair.Microphone() {
		t.Error("the microphone is on without a connection")
	}
}

func TestPair_SendsEvents(t *testing.T) {
	c := connect(t, Options{})
	p := c.pair
	for _, test := range []struct {
		do   func()
		side Side
		want []byte
		dark bool
	}{
		{func() { p.Tap(c.now, Left) }, Left, []byte{0xF5, 1}, false},
		{func() { p.DoubleTap(c.now, Right) }, Right, []byte{0xF5, 0}, true},
		{func() { p.TripleTap(c.now, Left) }, Left, []byte{0xF5, 4}, true},
		{func() { p.TripleTap(c.now, Left) }, Left, []byte{0xF5, 5}, true},
		{func() { p.Hold(c.now, Left, true) }, Left, []byte{0xF5, 0x17}, false},
		{func() { p.Hold(c.now, Left, false) }, Left, []byte{0xF5, 0x18}, false},
		{func() { p.HeadUp(c.now, true) }, Right, []byte{0xF5, 2}, false},
		{func() { p.HeadUp(c.now, false) }, Right, []byte{0xF5, 3}, false},
		{func() { p.Dashboard(c.now, Right, true) }, Right, []byte{0xF5, 0x1E}, true},
		{func() { p.Dashboard(c.now, Right, false) }, Right, []byte{0xF5, 0x1F}, true},
		{func() { p.Wear(c.now, true) }, Left, []byte{0xF5, 6}, false},
		{func() { p.Wear(c.now, false) }, Left, []byte{0xF5, 7}, false},
		{func() { p.InCase(c.now, true) }, Left, []byte{0xF5, 8}, true},
		{func() { p.InCase(c.now, false) }, Left, []byte{0xF5, 0x0B}, true},
		{func() { p.Charging(c.now, true) }, Right, []byte{0xF5, 9, 1}, false},
		{func() { p.Battery(c.now, Right, 42) }, Right, []byte{0xF5, 0x0A, 42}, false},
		{func() { p.CaseBattery(c.now, 7) }, Right, []byte{0xF5, 0x0F, 7}, false},
	} {
		c.show(Left, file(136, corner))
		c.show(Right, file(136, corner))
		test.do()
		c.want(test.side, test.want...)
		c.values(1 - test.side)
		if _, lit := p.Picture(Left); lit == test.dark && !p.silent {
			t.Errorf("after % X the picture is shown: %v", test.want, lit)
		}
		c.now += 1000
	}
	c.ask(Right, []byte{0x2C, 1}, 0x2C, 0x66, 42)
	p.Debug(c.now, Left, "quiet")
	c.send(Left, 0xF4, 1)
	p.Debug(c.now, Left, "loud")
	c.want(Left, append([]byte{0xF4}, "loud\x00"...)...)
	c.violations()
}

func TestPair_IsDarkWhileSilent(t *testing.T) {
	c := connect(t, Options{})
	c.pair.TripleTap(0, Right)
	c.values(Right)
	c.show(Left, file(136, corner))
	if _, ok := c.pair.Picture(Left); ok {
		t.Error("a silent panel shows a picture")
	}
	c.ask(Left, []byte{0x2B}, 0x2B, 0x69, 0x0C)
}

func TestHostile_ReachesTheClient(t *testing.T) {
	c := connect(t, Options{})
	for _, v := range Hostile() {
		c.pair.Inject(0, Left, v)
	}
	got := c.values(Left)
	if !slices.EqualFunc(got, Hostile(), bytes.Equal) {
		t.Errorf("%d values, want %d unchanged", len(got), len(Hostile()))
	}
	for range 20_000 {
		c.pair.Tap(0, Left)
	}
	if n := len(c.values(Left)); n != 16_384 {
		t.Errorf("%d events are kept, want 16384", n)
	}
}
