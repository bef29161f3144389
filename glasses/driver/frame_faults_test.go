package driver_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	emulatedframe "github.com/service-dev/service/test/glassestest/peripheral/frame"
)

// With values lost or repeated and the link dropped at any time, every command has one result, no value that changes
// stored settings is sent (the emulator records it), and the panel shows the last picture once the faults are over.
func TestFrame_SurvivesFaults(t *testing.T) {
	seeds := repetitions(3, 150) // per model
	bothModels(t, func(t *testing.T, model string) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(seed), 16))
				a, d := frameAir(t, model, emulatedframe.Options{
					HookTime: 1 + r.IntN(30), REPLTime: 1 + r.IntN(30), NotifyTime: 1 + r.IntN(40),
				})
				a.random, a.lossy, a.writeMs, a.notifyMs = r, true, 1+r.Int64N(20), 1+r.Int64N(20)
				a.mtu = min(185+r.IntN(517-185+1), d.MaxMTU())
				a.lose, a.repeat = r.Float64()*0.02, r.Float64()*0.05
				a.waitConnected()
				survive(t, a, 3000, func() {
					d.Tap(a.now, "single")
					if r.IntN(2) == 0 {
						d.Drop(r.Int64N(10_000))
					}
				}, func() {})
				wantFramePicture(t, d, drawn(t, model, tree("the last")))
			})
		}
	})
}

// Pictures are still shown after a program ignored the break signal at first, or after our program was ended by a tap
// or the REPL.
func TestFrame_InstallsItsProgramAgain(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		stubborn := "for i = 1, 3 do pcall(function() while true do frame.sleep(0.1) end end) end"
		a, d := frameAir(t, model, emulatedframe.Options{Main: stubborn})
		a.lossy = true // lines wait while the program runs
		a.waitConnected()
		show := tree("at last")
		if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
			t.Fatalf("a stubborn program: got %+v, want ok; %v", r.Error, a.notes)
		}
		d.Inject(emulatedframe.NotifyUUID, []byte("[string \"x\"]:1: not enough memory"))
		a.run(a.now + 20)
		if r := a.wait(a.send(glasses.TypeDisplayShow, tree("again"))); !r.OK {
			t.Fatalf("after an error: got %+v, want ok; %v", r.Error, a.notes)
		}
		wantFramePicture(t, d, drawn(t, model, tree("again")))
	})
}

func TestFrame_KeepsItsHeadWhenThePeripheralDoesNot(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.lossy = true // the program is installed again while data is being sent
		a.waitConnected()
		for range 50 {
			for _, value := range []string{"", "\x01", "\x01A", "\x01A\x01", "\x01A\x01\x00\x00", "\x01T", "\x01Tx",
				"\x01B\xff\x01",
				"\x01B", "\x01M", "\x01M\x00abc", "\x01P\x00abc", "\x01E\x05", "\x01I\x00", "\x01I\x7f\xff\x80\x00",
				"\x02", "nonsense",
				"1", "\x01R", strings.Repeat("\x01", 600)} {
				d.Inject(emulatedframe.NotifyUUID, []byte(value))
			}
			a.run(a.now + 1)
		}
		show := tree("still here")
		if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
			t.Fatalf("got %+v, want ok; %v", r.Error, a.notes)
		}
		wantFramePicture(t, d, drawn(t, model, show))
	})
}

// After the link was lost, the panel is dark, and the same picture is sent as a whole.
func TestFrame_ForgetsWhatItShowedWithTheLink(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		show := tree("back again")
		a.wait(a.send(glasses.TypeDisplayShow, show))
		d.Drop(3000)
		a.run(a.now + 2000)
		wantFramePicture(t, d, nil) // the program in the glasses detected the loss
		a.waitConnected()
		if r := a.wait(a.send(glasses.TypeDisplayShow, show)); !r.OK {
			t.Fatalf("got %+v, want ok; %v", r.Error, a.notes)
		}
		wantFramePicture(t, d, drawn(t, model, show))
	})
}

// An identical picture is not sent again, and of a Halo's picture only the changed parts.
func TestFrame_SendsOnlyWhatChanged(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		long := tree(strings.Repeat("many words ", 8))
		begin := a.writes
		a.wait(a.send(glasses.TypeDisplayShow, long))
		whole := a.writes - begin
		begin = a.writes
		if r := a.wait(a.send(glasses.TypeDisplayShow, long)); !r.OK || a.writes != begin {
			t.Errorf("the same picture took %d writes, want none", a.writes-begin)
		}
		long.Tree.Children[1].Text = "no"
		a.wait(a.send(glasses.TypeDisplayShow, long))
		if changed := a.writes - begin; model == modelHalo && changed > whole/2 {
			t.Errorf("another word on the button took %d writes, the whole picture %d", changed, whole)
		}
		wantFramePicture(t, d, drawn(t, model, long))
	})
}

// When the session ends, the owner's main.lua runs again, regardless of what was in progress.
func TestFrame_IsLeftToItsOwner(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		for _, after := range []int64{-1500, 0, 100, 5000} { // during the boot, and while and after a picture is being sent
			a, d := frameAir(t, model, emulatedframe.Options{Main: "ran = (ran or 0) + 1"})
			a.waitConnectedFor(max(0, 2000+after))
			a.send(glasses.TypeDisplayShow, tree("gone soon"))
			a.run(a.now + max(after, 0))
			a.glasses.Close(a.now)
			a.drain()
			if !a.runWhile(1000, func() bool { return !a.glasses.Closed() }) {
				t.Fatalf("closed after %d ms: the glasses were not left within a second", after)
			}
			wantFramePicture(t, d, nil)
			_ = d.Write(a.now, emulatedframe.WriteUUID, []byte("print(S == nil, ran)"), false)
			d.Tick(a.now + 100)
			texts := ""
			for _, o := range d.Take() {
				texts += string(o.Value)
			}
			if !strings.HasPrefix(texts, "true") {
				t.Errorf("closed after %d ms: the REPL says %q, want true: the program of the driver is gone", after, texts)
			}
		}
	})
}

// Display texts reach the glasses only as pixels: the interpreter never runs text of an app.
func TestFrame_RunsNoTextOfAnApp(t *testing.T) {
	bothModels(t, func(t *testing.T, model string) {
		a, d := frameAir(t, model, emulatedframe.Options{})
		a.waitConnected()
		for _, text := range []string{"')os.remove(\"main.lua\")--", "\"]]..os.remove('x')..[[", "print(7)",
			"\\003\\004\\005\\007",
			"\u0003", "\u0004", "\u0005", "\u0007", "\nframe.file.remove('main.lua')\n"} {
			a.send(glasses.TypeDisplayShow, tree(text))
			a.run(a.now + 3000)
		}
		if len(d.Grave()) > 0 {
			t.Errorf("an app reached the interpreter: %q", d.Grave())
		}
		if r := a.wait(a.send(glasses.TypeDisplayShow, tree("fine"))); !r.OK {
			t.Errorf("got %+v, want ok", r.Error)
		}
	})
}
