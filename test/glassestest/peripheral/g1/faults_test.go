package g1

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

func TestFaults_MuteAnswers(t *testing.T) {
	c := connect(t, Options{FaultsRight: Faults{Mute: []byte{0x18}}})
	c.ask(Left, []byte{0x18}, 0x18)
	c.send(Right, 0x18)
	if got := c.values(Right); got != nil {
		t.Errorf("the muted arm sent % X", got)
	}
	c.ask(Right, []byte{0x25, 1}, 0x25)
}

func TestFaults_ChangeAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		faults   Faults
		at0, at9 int // answers after 0 and 9 ms
	}{
		"lose":      {Faults{LoseAck: 1}, 0, 0},
		"duplicate": {Faults{DuplicateAck: 1}, 2, 0},
		"delay":     {Faults{DelayAck: 1, DelayMs: 9}, 0, 1},
		"late":      {Faults{Late: map[byte]int64{0x18: 9}}, 0, 1},
		"late else": {Faults{Late: map[byte]int64{0x20: 9}}, 1, 0},
		"none":      {Faults{}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, Options{FaultsLeft: test.faults})
			c.send(Left, 0x18)
			at0 := len(c.values(Left))
			c.now = 9
			if at9 := len(c.values(Left)); at0 != test.at0 || at9 != test.at9 {
				t.Errorf("%d and %d answers, want %d and %d", at0, at9, test.at0, test.at9)
			}
		})
	}
}

func TestFaults_FailCRC(t *testing.T) {
	c := connect(t, Options{FaultsLeft: Faults{FailCRC: 2}})
	bmp := file(136, corner)
	for range 2 {
		c.upload(Left, bmp)
		c.send(Left, crcOf(bmp)...)
		if got := c.values(Left); len(got) != 1 || got[0][5] != 0xCA {
			t.Errorf("CRC answered with % X", got)
		}
	}
	c.show(Left, bmp)
	c.violations()
}

// Packets that the radio lost are not violations of the client.
func TestFaults_LosePacket(t *testing.T) {
	c := connect(t, Options{FaultsLeft: Faults{LosePacket: 0.05}, Seed: 3})
	bmp := file(136, corner)
	c.upload(Left, bmp)
	c.send(Left, crcOf(bmp)...)
	if got := c.values(Left); len(got) != 1 || got[0][5] != 0xCA {
		t.Errorf("CRC answered with % X", got)
	}
	c.pair.SetFaults(0, Left, Faults{})
	c.show(Left, bmp)
	c.violations()
}

func TestFaults_DropAfterPackets(t *testing.T) {
	c := connect(t, Options{FaultsRight: Faults{DropAfterPackets: 30, AwayMs: 3000}})
	for i, p := range packets(file(136, corner))[:30] {
		if got := c.values(Right); got != nil {
			t.Fatalf("% X before packet %d", got, i)
		}
		c.send(Right, p...)
	}
	if got := c.values(Right); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("got % X after 30 packets", got)
	}
	a := c.pair.Right()
	if err := a.Connect(0, 251); !errors.Is(err, peripheral.ErrUnreachable) {
		t.Errorf("connection to a silent arm: %v", err)
	}
	if at, ok := a.Next(); !ok || at != 3000 {
		t.Errorf("next step at %d, %v", at, ok)
	}
	if _, ok := a.Advertisement(); ok {
		t.Error("the arm advertises at once")
	}
	c.now = 3000
	a.Tick(3000)
	if _, ok := a.Advertisement(); !ok {
		t.Error("the arm does not advertise again")
	}
	c.open(Right)
	c.show(Right, file(136, corner))
	c.violations()
}

func TestFaults_DropAt(t *testing.T) {
	c := connect(t, Options{FaultsLeft: Faults{DropAt: 700, AwayMs: -1}})
	c.show(Left, file(136, corner))
	c.now = 699
	if got := c.values(Left); got != nil {
		t.Errorf("% X before 700 ms", got)
	}
	c.now = 1_000_000
	if got := c.values(Left); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("got % X", got)
	}
	if _, ok := c.pair.Picture(Left); ok {
		t.Error("the panel shows a picture without a connection")
	}
	if _, ok := c.pair.Left().Advertisement(); ok {
		t.Error("the arm advertises although it is away for ever")
	}
}

func TestPair_IsOccupiedByPhone(t *testing.T) {
	c := connect(t, Options{})
	c.pair.Occupy(5, true)
	if got := c.values(Left); len(got) != 1 || string(got[0]) != "dropped" {
		t.Errorf("got % X", got)
	}
	if err := c.pair.Left().Connect(6, 251); !errors.Is(err, peripheral.ErrBusy) {
		t.Errorf("connection to an arm that a phone took: %v", err)
	}
	c.pair.Occupy(7, false)
	c.open(Left)
}

func TestPair_TakesAirTime(t *testing.T) {
	c := connect(t, Options{AirTime: 30, AnswerTime: 10})
	bmp := file(136, corner)
	for _, v := range slices.Concat(packets(bmp), [][]byte{{0x20, 0x0D, 0x0E}, crcOf(bmp)}) {
		c.send(Left, v...)
	}
	c.now = 53*30 + 9
	c.want(Left, 0x20, 0xC9)
	if shown := c.pair.Pictures(Left); len(shown) != 1 || shown[0].Began != 30 || shown[0].At != 53*30 {
		t.Errorf("pictures %+v", shown)
	}
	c.now++
	c.want(Left, 0x16)
	for range 1025 {
		c.send(Left, 0x18)
	}
	if v := c.pair.Violations(); len(v) != 1 {
		t.Errorf("violations %q", v)
	}
}

// The same seed leads to the same session.
func TestFaults_AreDeterministic(t *testing.T) {
	run := func(seed uint64) (got []any) {
		faults := Faults{LoseAck: 0.2, DuplicateAck: 0.2, DelayAck: 0.3, DelayMs: 70, LosePacket: 0.01, Drop: 0.005}
		c := connect(t, Options{Seed: seed, FaultsLeft: faults, FaultsRight: faults})
		bmp := file(136, corner)
		for range 10 {
			for _, s := range []Side{Left, Right} {
				for _, v := range slices.Concat(packets(bmp), [][]byte{{0x20, 0x0D, 0x0E}, crcOf(bmp)}) {
					_ = c.pair.Arm(s).Connect(c.now, 251)
					_ = c.pair.Arm(s).Subscribe(c.now, NotifyUUID, true)
					_ = c.pair.Arm(s).Write(c.now, WriteUUID, v, false)
					got = append(got, c.values(s))
					c.now += 7
				}
			}
		}
		return append(got, c.pair.Violations())
	}
	if !reflect.DeepEqual(run(1), run(1)) {
		t.Error("two sessions with seed 1 differ")
	}
	if reflect.DeepEqual(run(1), run(2)) {
		t.Error("sessions with seeds 1 and 2 are equal")
	}
}

// FuzzArm_Write splits the input into packets: a byte for the length, the time before the packet and the arm, and
// then the packet.
func FuzzArm_Write(f *testing.F) {
	join := func(values ...[]byte) (all []byte) {
		for _, v := range values {
			all = append(append(all, byte(len(v)), 1), v...)
		}
		return all
	}
	bmp := file(136, corner)
	f.Add(join(slices.Concat(packets(bmp), [][]byte{{0x20, 0x0D, 0x0E}, crcOf(bmp)})...))
	f.Add(join([]byte{0x4E, 1, 2, 0, 0x71, 0, 0, 1, 1, 'a'}, []byte{0x4E, 1, 2, 1, 0x71, 0, 0, 1, 1, 'b'}))
	f.Add(join([]byte{0x25, 6, 0, 1, 4, 1}, []byte{0x0E, 1}, []byte{0x23, 0x72}, []byte{0x2C, 1}, []byte{0xF4, 1}))
	f.Fuzz(func(t *testing.T, input []byte) {
		p := New(Options{AirTime: 1, FaultsLeft: Faults{DelayAck: 0.5, DelayMs: 50, Drop: 0.01}})
		p.Speak(0, make([]byte, 1000))
		now := int64(0)
		for len(input) >= 2 {
			size, at := int(input[0]), input[1]
			value := input[2:][:min(size, len(input)-2)]
			input = input[2+len(value):]
			now += int64(at)
			a := p.Arm(Side(at & 1))
			_ = a.Connect(now, 251)
			_ = a.Subscribe(now, NotifyUUID, true)
			_ = a.Write(now, WriteUUID, value, at&2 == 0)
			if at&4 == 0 {
				a.Take()
			}
		}
		p.tick(now + 100_000)
		for _, a := range p.arms {
			if upload, text, out := len(a.upload.data), len(a.words.data), len(a.Take()); upload > 256*chunk ||
				text > 256*maxText || out > 16_386 {
				t.Errorf("an arm holds %d bytes of a picture, %d of a text and %d outputs, want at most %d, %d and %d",
					upload, text, out, 256*chunk, 256*maxText, 16_386)
			}
		}
	})
}
