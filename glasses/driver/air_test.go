package driver_test

import (
	"encoding/json"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/glassestest/peripheral"
)

// repetitions returns how often a test repeats with different seeds: few by default, all if SERVICE_TEST_FULL is set.
func repetitions(few, all int) int {
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		return all
	}
	return few
}

// air connects glasses to emulated peripherals in virtual time. It acts as the carrier.
type air struct {
	t       *testing.T
	now     int64
	glasses *driver.Glasses
	peers   map[string]peripheral.Peripheral // by the key of the link
	specs   map[string]driver.LinkSpec
	mtu     int
	hideMTU bool // whether the carrier does not report it, as in a page
	up      map[string]bool
	later   driver.Timers // values in transit
	frames  []glasses.Frame
	bodies  map[string][]byte // of binary frames, by frame id
	infos   []driver.Info
	notes   []string
	tested  func(driver.Tested) // nil to ignore them
	random  *rand.Rand
	// writeMs and notifyMs are how long a value is in transit. lose is the probability that a value is lost, repeat
	// that a notification arrives twice.
	writeMs, notifyMs int64
	lose, repeat      float64
	lossy             bool // whether values may get lost in this run
	ids               int
	writes            int
}

func newAir(t *testing.T, model string, d driver.Driver, peers map[string]peripheral.Peripheral) *air {
	t.Helper()
	m, ok := glasses.Model(model)
	if !ok {
		t.Fatalf("no device model %s", model)
	}
	return &air{
		t: t, glasses: driver.NewGlasses(m, d, device.Options{}), peers: peers, specs: map[string]driver.LinkSpec{}, mtu: 247,
		up: map[string]bool{}, bodies: map[string][]byte{}, random: rand.New(rand.NewPCG(1, 1)), writeMs: 1, notifyMs: 1,
	}
}

// maxSteps limits the steps of one run, so that an endless loop fails.
const maxSteps = 2_000_000

// run advances time up to until.
func (a *air) run(until int64) {
	a.t.Helper()
	for range maxSteps {
		at, ok := a.next()
		if !ok || at > until {
			a.now = max(a.now, until)
			a.settle()
			return
		}
		a.now = max(a.now, at)
		a.settle()
	}
	a.t.Fatalf("%d steps without an end at %d ms", maxSteps, a.now)
}

// runWhile advances time while the condition holds, by at most the given ms.
func (a *air) runWhile(most int64, condition func() bool) bool {
	end := a.now + most
	for condition() {
		at, ok := a.next()
		if !ok || at > end {
			a.run(end)
			return !condition()
		}
		a.run(at)
	}
	return true
}

func (a *air) next() (at int64, ok bool) {
	soonest := func(t int64, has bool) {
		if has && (!ok || t < at) {
			at, ok = t, true
		}
	}
	soonest(a.glasses.Next())
	soonest(a.later.Next())
	for _, p := range a.peers {
		soonest(p.Next())
	}
	return at, ok
}

func (a *air) settle() {
	for key, p := range a.peers {
		p.Tick(a.now)
		a.collect(key, p)
	}
	for _, f := a.later.Pop(a.now); f != nil; _, f = a.later.Pop(a.now) {
		f()
	}
	a.glasses.Tick(a.now)
	a.drain()
}

// collect handles the output of a peripheral.
func (a *air) collect(key string, p peripheral.Peripheral) {
	for _, o := range p.Take() {
		switch {
		case o.Dropped:
			a.later.Add(a.now+a.notifyMs, func() { a.down(key, problem.CodeLost) })
		case a.random.Float64() < a.lose:
		default:
			times := 1
			if a.random.Float64() < a.repeat {
				times = 2
			}
			for range times {
				a.later.Add(a.now+a.notifyMs, func() {
					if a.up[key] {
						a.glasses.Event(a.now, driver.Event{Kind: driver.Notified, Link: key, Data: o.Value})
					}
				})
			}
		}
	}
}

func (a *air) down(key, code string) {
	a.glasses.Tick(a.now) // steps due at the same time come first
	a.drain()
	a.up[key] = false
	a.glasses.Event(a.now, driver.Event{Kind: driver.LinkDown, Link: key, Problem: code})
}

// drain carries out the requests of the glasses.
func (a *air) drain() {
	for outs := a.glasses.Take(); len(outs) > 0; outs = a.glasses.Take() {
		for _, o := range outs {
			switch {
			case o.Frame != nil:
				a.frames = append(a.frames, *o.Frame)
				if o.Body != nil {
					a.bodies[o.Frame.ID] = o.Body
				}
			case o.Write != nil:
				a.write(*o.Write)
			case o.Connect != nil:
				a.connect(*o.Connect)
			case o.Drop != "":
				a.peers[o.Drop].Disconnect(a.now)
				a.later.Add(a.now, func() { a.down(o.Drop, problem.CodeLost) })
			case o.Info != nil:
				a.infos = append(a.infos, *o.Info)
			case o.Note != "":
				a.notes = append(a.notes, o.Note)
			case o.Tested != nil && a.tested != nil:
				a.tested(*o.Tested)
			}
		}
	}
}

func (a *air) connect(spec driver.LinkSpec) {
	a.specs[spec.Key] = spec
	a.later.Add(a.now+50, func() {
		p := a.peers[spec.Key]
		err := peripheral.ErrNotConnected
		if _, advertised := p.Advertisement(); advertised {
			err = p.Connect(a.now, a.mtu)
			if err == nil && spec.Bonded {
				err = p.Pair(a.now)
			}
			if err == nil {
				err = p.Subscribe(a.now, spec.Notify, true)
			}
		}
		if err != nil {
			a.down(spec.Key, problem.CodeNotInRange)
			return
		}
		a.up[spec.Key] = true
		up := driver.Event{Kind: driver.LinkUp, Link: spec.Key, MTU: a.mtu}
		if a.hideMTU {
			up.MTU = 0
		}
		a.glasses.Event(a.now, up)
	})
}

// write transfers one value. The carrier accepts one value at a time per link.
func (a *air) write(w driver.Write) {
	a.writes++
	if !a.up[w.Link] {
		a.t.Errorf("%d ms: a write of %.8x to the %s link, which is down", a.now, w.Data, w.Link)
		return
	}
	a.later.Add(a.now+a.writeMs, func() {
		if !a.up[w.Link] {
			return
		}
		code := ""
		if a.random.Float64() >= a.lose {
			if err := a.peers[w.Link].Write(a.now, a.specs[w.Link].Write, w.Data, w.WithResponse); err != nil && w.WithResponse {
				code = problem.CodeTimeout
			}
		}
		a.collect(w.Link, a.peers[w.Link])
		a.glasses.Event(a.now, driver.Event{Kind: driver.Written, Link: w.Link, Problem: code})
	})
}

// send sends a command as an app and returns its id.
func (a *air) send(typ string, payload any) string {
	a.t.Helper()
	a.ids++
	f, err := glasses.New(typ, "c-"+strconv.Itoa(a.ids), a.now, payload)
	if err != nil {
		a.t.Fatal(err)
	}
	a.glasses.Handle(a.now, f, nil)
	a.drain()
	return f.ID
}

// result returns the result of a command, and how many results there are.
func (a *air) result(id string) (r glasses.Result, n int) {
	for _, f := range a.frames {
		if f.Type == glasses.TypeResult && f.ID == id {
			n++
			if err := json.Unmarshal(f.Payload, &r); err != nil {
				a.t.Fatal(err)
			}
		}
	}
	return r, n
}

// wait advances time until a command has its result.
func (a *air) wait(id string) glasses.Result {
	a.t.Helper()
	if !a.runWhile(60_000, func() bool { _, n := a.result(id); return n == 0 }) {
		a.t.Fatalf("%d ms: command %s has no result; notes %v, links %+v", a.now, id, a.notes, a.glasses.Links())
	}
	r, _ := a.result(id)
	return r
}

// waitConnected advances time until all links are up, and long enough for the first exchange on each.
func (a *air) waitConnected() {
	a.t.Helper()
	a.waitConnectedFor(2000)
}

func (a *air) waitConnectedFor(ms int64) {
	a.t.Helper()
	if !a.runWhile(60_000, func() bool { return a.linkState() != glasses.LinkConnected }) {
		a.t.Fatalf("%d ms: the glasses are %q; links %+v, notes %v", a.now, a.linkState(), a.glasses.Links(), a.notes)
	}
	a.run(a.now + ms)
}

// linkState returns the state in the last link event.
func (a *air) linkState() (state string) {
	for _, f := range a.frames {
		if f.Type == glasses.TypeLink {
			var l glasses.StateWord
			if err := json.Unmarshal(f.Payload, &l); err != nil {
				a.t.Fatal(err)
			}
			state = l.State
		}
	}
	return state
}

// events returns the payloads of the events of a type.
func (a *air) events(typ string) []string {
	var list []string
	for _, f := range a.frames {
		if f.Type == typ {
			list = append(list, string(f.Payload))
		}
	}
	return list
}

func tree(text string) glasses.Show {
	return glasses.Show{Tree: glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
		{Type: glasses.NodeText, Text: text}, {Type: glasses.NodeButton, ID: "ok", Text: "OK"},
	}}}
}

// drawn returns the picture that the local simulator shows for a show.
func drawn(t *testing.T, model string, show glasses.Show) *image.NRGBA {
	t.Helper()
	m, _ := glasses.Model(model)
	return render.Draw(m, render.Show(m, glasses.View{Focus: -1}, &show.Tree))
}

// samePixels checks that the same pixels are lit.
func samePixels(got image.Image, want *image.NRGBA) error {
	if got.Bounds().Size() != want.Bounds().Size() {
		return fmt.Errorf("got a picture of %v, want %v", got.Bounds().Size(), want.Bounds().Size())
	}
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			r, g, b, _ := got.At(x, y).RGBA()
			wr, wg, wb, _ := want.At(x, y).RGBA()
			if r+g+b > 0 != (wr+wg+wb > 0) {
				return fmt.Errorf("pixel %d,%d differs", x, y)
			}
		}
	}
	return nil
}
