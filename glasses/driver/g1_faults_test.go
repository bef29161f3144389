package driver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	emulated "github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// With values lost, repeated or late and an arm disconnecting at any time, every command has one result, no value is
// written to a disconnected arm (air checks it), no forbidden packet is sent (the emulator records it), and both arms
// show the last picture once the faults are over.
func TestG1_SurvivesFaults(t *testing.T) {
	seeds := repetitions(40, 1000)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			surviveG1(t, uint64(seed))
		})
	}
}

func surviveG1(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 15))
	faults := func() emulated.Faults {
		return emulated.Faults{
			LoseAck: r.Float64() * 0.2, DuplicateAck: r.Float64() * 0.2, DelayAck: r.Float64() * 0.3,
			DelayMs: r.Int64N(4000), LosePacket: r.Float64() * 0.01, Drop: r.Float64() * 0.005, AwayMs: r.Int64N(20_000),
			FailCRC: r.IntN(3),
		}
	}
	a, pair := g1Air(t, emulated.Options{Seed: seed, AnswerTime: r.Int64N(30), AirTime: r.Int64N(20)})
	a.random, a.mtu = r, 203+r.IntN(517-203+1)
	a.writeMs, a.notifyMs = 1+r.Int64N(20), 1+r.Int64N(20)
	a.waitConnected()
	a.lossy, a.lose, a.repeat = true, r.Float64()*0.02, r.Float64()*0.05
	pair.SetFaults(a.now, emulated.Left, faults())
	pair.SetFaults(a.now, emulated.Right, faults())
	survive(t, a, 6000, func() { pair.DoubleTap(a.now, emulated.Side(r.IntN(2))) }, func() {
		pair.SetFaults(a.now, emulated.Left, emulated.Faults{})
		pair.SetFaults(a.now, emulated.Right, emulated.Faults{})
	})
	wantPicture(t, pair, tree("the last"))
}

// survive sends random commands with random pauses during faults, and then shows the last picture without faults.
func survive(t *testing.T, a *air, pause int64, gesture, heal func()) {
	t.Helper()
	r := a.random
	var ids []string
	for n := range 15 {
		switch r.IntN(6) {
		case 0:
			ids = append(ids, a.send(glasses.TypeDisplayClear, struct{}{}))
		case 1:
			gesture()
		default:
			ids = append(ids, a.send(glasses.TypeDisplayShow, tree(fmt.Sprint("picture ", n))))
		}
		a.run(a.now + r.Int64N(pause))
	}
	a.lose, a.repeat = 0, 0
	heal()
	healthy := func() bool {
		return a.linkState() == glasses.LinkConnected && !slices.ContainsFunc(ids, func(id string) bool {
			_, n := a.result(id)
			return n != 1
		})
	}
	if !a.runWhile(90_000, func() bool { return !healthy() }) { // reconnection waits up to 30 s
		t.Fatalf("after the faults the link is %q, want connected and one result of each of %v: %+v %v", a.linkState(), ids,
			a.glasses.Links(), a.notes)
	}
	a.run(a.now + 5000)
	if res := a.wait(a.send(glasses.TypeDisplayShow, tree("the last"))); !res.OK || !healthy() {
		t.Fatalf("after the faults: got %+v, want ok and no second result", res)
	}
}

func TestG1_NamesTheArmThatDoesNotAnswer(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	pair.SetFaults(a.now, emulated.Right, emulated.Faults{Mute: []byte{0x20}})
	r := a.wait(a.send(glasses.TypeDisplayShow, tree("half")))
	if r.Error == nil || r.Error.Code != glasses.CodeTimeout || !strings.Contains(r.Error.Message, "right arm") {
		t.Fatalf("got %+v, want a timeout that names the right arm", r)
	}
	if _, ok := pair.Picture(emulated.Left); !ok {
		t.Error("the left arm shows nothing, want the picture")
	}
	pair.SetFaults(a.now, emulated.Right, emulated.Faults{})
	whole := tree("whole")
	if r := a.wait(a.send(glasses.TypeDisplayShow, whole)); !r.OK {
		t.Fatalf("once the arm answers: got %+v, want ok", r.Error)
	}
	wantPicture(t, pair, whole)
}

func TestG1_RepaintsAnArmThatComesBack(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	pair.SetFaults(a.now, emulated.Left, emulated.Faults{DropAfterPackets: pair.Packets(emulated.Left) + 30, AwayMs: 3000})
	show := tree("whole on both")
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Fatalf("got %+v, want ok after the arm is back", r.Error)
	}
	wantPicture(t, pair, show)
	if got := fmt.Sprint(a.events(glasses.TypeLink)); !strings.Contains(got, glasses.LinkLossy) {
		t.Errorf("got link events %s, want lossy among them", got)
	}
}

func TestG1_RefusesWhileAnArmIsAway(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	pair.Drop(a.now, emulated.Left, -1)
	a.run(a.now + 10)
	begin := a.now
	r := a.wait(a.send(glasses.TypeDisplayShow, tree("right only")))
	if r.Error == nil || r.Error.Code != glasses.CodeNotConnected || !strings.Contains(r.Error.Message, "left arm") {
		t.Fatalf("got %+v, want not_connected that names the left arm", r)
	}
	if waited := a.now - begin; waited < 9_000 || waited > 11_000 {
		t.Errorf("it waited %d ms, want about 10 s", waited)
	}
}

// Of many pictures sent at once, the panel shows the first and the last; each show has its result.
func TestG1_SendsTheLatestOfManyPictures(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{AirTime: 20})
	a.waitConnected()
	var ids []string
	for n := range 40 {
		ids = append(ids, a.send(glasses.TypeDisplayShow, tree(fmt.Sprint("picture ", n))))
		a.run(a.now + 25)
	}
	last := a.wait(ids[39])
	superseded := 0
	for _, id := range ids {
		r, n := a.result(id)
		if n != 1 || !r.OK {
			t.Errorf("show %s: got %d results, the last %+v", id, n, r)
		}
		if r.Superseded {
			superseded++
		}
	}
	if last.Superseded || superseded < 30 {
		t.Errorf("%d of 40 were superseded, the last: %v; want most of them, and not the last", superseded, last.Superseded)
	}
	wantPicture(t, pair, tree("picture 39"))
	if n := len(pair.Pictures(emulated.Left)); n > 8 {
		t.Errorf("the left arm got %d pictures, want few", n)
	}
}

func TestG1_ResendsAPictureWithAWrongChecksumOnce(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	pair.SetFaults(a.now, emulated.Left, emulated.Faults{FailCRC: 1})
	show := tree("second try")
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Fatalf("one wrong checksum: got %+v, want ok", r.Error)
	}
	wantPicture(t, pair, show)
	pair.SetFaults(a.now, emulated.Left, emulated.Faults{FailCRC: 100})
	r := a.wait(a.send(glasses.TypeDisplayShow, tree("never")))
	if r.Error == nil || r.Error.Code != glasses.CodePlatform || !strings.Contains(r.Error.Message, "left arm") {
		t.Errorf("wrong checksums: got %+v, want platform_error that names the left arm", r)
	}
}

func TestG1_KeepsItsHeadWhenThePeripheralDoesNot(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	for range 200 {
		for _, value := range emulated.Hostile() {
			pair.Inject(a.now, emulated.Left, value)
			pair.Inject(a.now, emulated.Right, value)
		}
		a.run(a.now + 1)
	}
	show := tree("still here")
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Fatalf("got %+v, want ok", r.Error)
	}
	a.run(a.now + 5000)
	wantPicture(t, pair, show)
}

// Broken glasses report 5,000 gestures per second for two seconds. Each is an event. The picture, which every double
// tap closes, is sent again only once.
func TestG1_SurvivesAFloodOfGestures(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	show := tree("still here")
	a.wait(a.send(glasses.TypeDisplayShow, show))
	writes := a.writes
	const each = 5000
	for range each {
		pair.Inject(a.now, emulated.Left, []byte{0xF5, 0x01})
		pair.DoubleTap(a.now, emulated.Right)
		if a.now%2 == 0 {
			pair.Inject(a.now, emulated.Right, []byte{0xF5, 0x1E})
			pair.Inject(a.now, emulated.Right, []byte{0xF5, 0x1F})
		}
		a.run(a.now + int64(a.random.IntN(2)))
	}
	a.run(a.now + 10_000)
	wantPicture(t, pair, show)
	if n := len(a.events(glasses.TypeInput)); n != 2*each {
		t.Errorf("got %d inputs of %d gestures", n, 2*each)
	}
	if n := a.writes - writes; n > 2000 {
		t.Errorf("%d values were written to the arms, want few pictures", n)
	}
}

func TestG1_SilentModeIsTheWearersChoice(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	show := tree("later")
	a.wait(a.send(glasses.TypeDisplayShow, show))
	pair.TripleTap(a.now, emulated.Right)
	a.run(a.now + 10)
	r := a.wait(a.send(glasses.TypeDisplayShow, tree("now")))
	if r.Error == nil || r.Error.Code != glasses.CodeDisabledByUser {
		t.Fatalf("in silent mode: got %+v, want disabled_by_user", r)
	}
	pair.TripleTap(a.now, emulated.Right)
	a.run(a.now + 10)
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Errorf("after silent mode: got %+v, want ok", r.Error)
	}
	wantPicture(t, pair, show)
}

// While the wearer looks at the glasses' own dashboard, pictures of apps are not shown; they appear again once it is
// closed.
func TestG1_DashboardIsTheWearersChoice(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{})
	a.waitConnected()
	show := tree("later")
	if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
		t.Fatalf("before the dashboard: got %+v, want ok", r.Error)
	}
	dashboard := func(open bool) {
		pair.Dashboard(a.now, emulated.Right, open)
		a.run(a.now) // the emulator sends it
		a.run(a.now + 5000)
	}
	dashboard(true)
	r := a.wait(a.send(glasses.TypeDisplayShow, tree("now")))
	if r.Error == nil || r.Error.Code != glasses.CodeDisabledByUser || !strings.Contains(r.Error.Message, "dashboard") {
		t.Fatalf("with the dashboard open: got %+v, want disabled_by_user that names it", r)
	}
	a.run(a.now + 5000)
	for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
		if _, ok := pair.Picture(side); ok {
			t.Errorf("a picture covers the dashboard on the %v arm", side)
		}
	}
	dashboard(false)
	next := tree("next")
	if r := a.wait(a.send(glasses.TypeDisplayShow, next)); !r.OK {
		t.Errorf("after the dashboard: got %+v, want ok", r.Error)
	}
	wantPicture(t, pair, next)
}

func TestG1_IsClearedWhenTheSessionEnds(t *testing.T) {
	for _, after := range []int64{0, 100, 5000} { // while the picture is being sent, and once it is shown
		a, pair := g1Air(t, emulated.Options{AirTime: 5})
		a.waitConnected()
		a.send(glasses.TypeDisplayShow, tree("gone soon"))
		a.run(a.now + after)
		a.glasses.Close(a.now)
		a.drain()
		if !a.runWhile(3000, func() bool { return !a.glasses.Closed() }) {
			t.Fatalf("closed after %d ms: the glasses were not left within 3 s", after)
		}
		for _, side := range []emulated.Side{emulated.Left, emulated.Right} {
			if _, ok := pair.Picture(side); ok {
				t.Errorf("closed after %d ms: the %v arm still shows a picture", after, side)
			}
		}
	}
}

// Only controls that stand in for the wearer work on real glasses.
func TestGlasses_CannotBeToldWhatToDo(t *testing.T) {
	a, _ := g1Air(t, emulated.Options{})
	a.waitConnected()
	for typ, payload := range map[string]any{
		glasses.SimFault:  glasses.Fault{Code: glasses.CodeTimeout},
		glasses.SimDevice: glasses.DeviceChoice{DeviceModel: "even_g2"},
		glasses.SimState:  glasses.StatePatch{Worn: new(bool)}, glasses.SimMotion: glasses.Motion{},
	} {
		if r := a.wait(a.send(typ, payload)); r.Error == nil || r.Error.Code != glasses.CodeUnsupported {
			t.Errorf("%s: got %+v, want unsupported", typ, r)
		}
	}
	for typ, payload := range map[string]any{
		glasses.SimInput: glasses.Input{Kind: glasses.InputTap}, glasses.SimState: struct{}{},
	} {
		if r := a.wait(a.send(typ, payload)); !r.OK {
			t.Errorf("%s: got %+v, want ok", typ, r.Error)
		}
	}
}

// A link that the driver drops because of a small MTU is reopened at growing intervals, and its problem is reported.
func TestG1_SaysThatTheMTUIsTooSmall(t *testing.T) {
	a, _ := g1Air(t, emulated.Options{})
	a.mtu = 23
	a.run(120_000)
	if n := len(a.notes); n < 2 || n > 30 {
		t.Errorf("got %d notes in two minutes, want a few", n)
	}
	if got := a.glasses.Links()[0].Problem; got != problem.CodeSmallMTU {
		t.Errorf("got the problem %q, want %q", got, problem.CodeSmallMTU)
	}
}

func TestG1_IsPausedInItsCase(t *testing.T) {
	a, pair := g1Air(t, emulated.Options{AirTime: 20})
	a.waitConnected()
	id := a.send(glasses.TypeDisplayShow, tree("on its way"))
	a.run(a.now + 100)
	pair.InCase(a.now, true)
	a.settle()
	if r := a.wait(id); r.Error == nil || r.Error.Code != glasses.CodePaused {
		t.Errorf("a picture on its way: got %+v, want paused", r)
	}
	if r := a.wait(a.send(glasses.TypeDisplayClear, struct{}{})); r.Error == nil {
		t.Errorf("in the case: got %+v, want a refusal", r)
	}
}
