package driver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/render"
)

// Pauses between attempts to open a link, in ms. They double from the first value up to the second.
const (
	firstRetry = 1000
	lastRetry  = 30_000
	stable     = 10_000 // a link that was open this long is reopened after the shortest pause
)

// Glasses is one pair of real glasses: a device.Device whose hardware is a Driver. It is not safe for concurrent use.
// All times are in milliseconds on the session's clock.
type Glasses struct {
	device *device.Device
	driver Driver
	links  []*link
	timers Timers
	outs   []GlassesOut
	now    int64
	ready  bool // all links have been up at the same time since all were last down
	shown  bool // the driver has been asked to show a picture
	ending bool
	test   *image.NRGBA // shown instead of the view; nil for none
	tested int          // the Ask that shows test; 0 for none
}

// GlassesOut is one output of Glasses. Exactly one field is set.
type GlassesOut struct {
	// Frame is a frame for the session. Body is its binary body, or nil for a text frame.
	Frame *glasses.Frame
	Body  []byte
	// Write, Connect and Drop are for the carrier. The carrier answers Connect with a LinkUp or LinkDown event, and
	// Drop with LinkDown.
	Write   *Write
	Connect *LinkSpec
	Drop    string
	Info    *Info
	Note    string
	// Tested reports whether the panel shows the picture of ShowTest.
	Tested *Tested
}

type link struct {
	spec    LinkSpec
	state   LinkState
	pause   int64  // before the next attempt
	due     int64  // when the next attempt may start
	dropped string // why the driver dropped the link; "" once the link is down
	since   int64  // when the link was last opened
}

// LinkState is the state of one link.
type LinkState struct {
	Key string
	// Up is set while the link is open, and Opening while the carrier opens it.
	Up, Opening bool
	MTU         int
	// Problem is the reason why the link is down, as in Event.
	Problem string
}

// NewGlasses returns glasses that are not connected. The next Tick requests the first link from the carrier.
func NewGlasses(model glasses.DeviceModel, d Driver, o device.Options) *Glasses {
	g := &Glasses{driver: d}
	o.Hardware, o.Unconfirmed = true, g.unconfirmed
	g.device = device.New(model, o)
	for _, spec := range d.Links() {
		g.links = append(g.links, &link{spec: spec, state: LinkState{Key: spec.Key}})
	}
	g.setLink(glasses.LinkLost)
	g.timers.Add(0, g.connect)
	return g
}

// Model returns the device model.
func (g *Glasses) Model() glasses.DeviceModel { return g.device.Model() }

// Snapshot returns a copy of the complete state, like device.Device.Snapshot.
func (g *Glasses) Snapshot() glasses.Snapshot { return g.device.Snapshot() }

// unconfirmed returns the reason why the panel may not show the view, or "" if the glasses have confirmed the view.
func (g *Glasses) unconfirmed() string {
	if g.test != nil {
		return "the panel shows a test picture"
	}
	return g.driver.Unconfirmed()
}

// Links returns the states of the links, in the order of Driver.Links.
func (g *Glasses) Links() []LinkState {
	list := make([]LinkState, 0, len(g.links))
	for _, l := range g.links {
		list = append(list, l.state)
	}
	return list
}

// Take returns the output since the last Take, in order.
func (g *Glasses) Take() []GlassesOut {
	outs := g.outs
	g.outs = nil
	return outs
}

// Next returns the time of the next step. ok is false if there is none.
func (g *Glasses) Next() (at int64, ok bool) {
	for _, next := range []func() (int64, bool){g.device.Next, g.driver.Next, g.timers.Next} {
		if t, has := next(); has && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// Tick runs all steps that are due up to now, in time order.
func (g *Glasses) Tick(now int64) {
	for {
		at, ok := g.Next()
		if !ok || at > now {
			break
		}
		g.now = max(g.now, at)
		g.step()
	}
	g.now = max(g.now, now)
	g.step()
}

func (g *Glasses) step() {
	for _, f := g.timers.Pop(g.now); f != nil; _, f = g.timers.Pop(g.now) {
		f()
	}
	g.driver.Tick(g.now)
	g.device.Tick(g.now)
	g.settle()
}

// Handle processes a frame from the session. Commands from apps go to the glasses. Real glasses accept only control
// frames that replace an action of the wearer, read the state or restore it.
func (g *Glasses) Handle(now int64, f glasses.Frame, body []byte) {
	g.Tick(now)
	if glasses.IsControl(f.Type) {
		if err := refused(f.Type, f.Payload); err != nil {
			answer, _ := glasses.New(glasses.TypeResult, f.ID, g.now, glasses.Result{Error: err})
			g.outs = append(g.outs, GlassesOut{Frame: &answer})
			return
		}
	}
	g.device.Handle(g.now, f, body)
	g.settle()
}

// Control executes a control frame for the host itself, with the same refusals as Handle. It returns the result
// instead of outputting it.
func (g *Glasses) Control(now int64, typ string, payload, body []byte) glasses.Result {
	g.Tick(now)
	if err := refused(typ, payload); err != nil {
		return glasses.Result{Error: err}
	}
	r := g.device.Control(g.now, typ, payload, body)
	g.settle()
	return r
}

// refused returns the reason why real glasses do not accept a control frame, or nil if they accept it.
func refused(typ string, payload []byte) *glasses.Error {
	switch typ {
	case glasses.SimInput, glasses.SimTranscript, glasses.SimStanding:
		return nil
	case glasses.SimState:
		var fields map[string]json.RawMessage
		if len(payload) == 0 || json.Unmarshal(payload, &fields) == nil && len(fields) == 0 {
			return nil
		}
	}
	return &glasses.Error{Code: glasses.CodeUnsupported, Message: "real glasses cannot be told to " + typ +
		"; use simulated glasses for that"}
}

// Event processes an event from the carrier.
func (g *Glasses) Event(now int64, e Event) {
	g.Tick(now)
	l := g.link(e.Link)
	if l == nil {
		return
	}
	switch e.Kind {
	case LinkUp:
		l.state = LinkState{Key: l.spec.Key, Up: true, MTU: e.MTU}
		l.since = g.now
		g.driver.Event(g.now, e)
		g.settle()
		g.report()
		g.connect()
	case LinkDown:
		wasUp := l.state.Up
		if wasUp && g.now-l.since >= stable {
			l.pause = 0
		}
		l.state.Up, l.state.Opening, l.state.Problem = false, false, cmp.Or(l.dropped, e.Problem)
		l.dropped = ""
		if wasUp && g.test != nil {
			g.endTested(notConnected())
		}
		if wasUp {
			g.driver.Event(g.now, e)
			g.settle()
			g.report()
		}
		g.retry(l)
		g.connect()
	case Notified:
		g.driver.Event(g.now, e)
	case Written:
		g.driver.Event(g.now, e)
	}
	g.settle()
}

func (g *Glasses) link(key string) *link {
	for _, l := range g.links {
		if l.spec.Key == key {
			return l
		}
	}
	return nil
}

// retry schedules the next attempt to open l.
func (g *Glasses) retry(l *link) {
	l.pause = min(max(2*l.pause, firstRetry), lastRetry)
	l.due = g.now + l.pause
	g.timers.Add(l.due, g.connect)
}

// connect asks the carrier to open the first link that is due. It opens one link at a time, because opening one
// peripheral of a pair disturbs the other.
func (g *Glasses) connect() {
	if g.ending {
		return
	}
	for _, l := range g.links {
		if l.state.Opening {
			return
		}
	}
	for _, l := range g.links {
		if !l.state.Up && l.due <= g.now {
			l.state.Opening = true
			spec := l.spec
			g.outs = append(g.outs, GlassesOut{Connect: &spec})
			return
		}
	}
}

// report derives the link state that apps see. The state is connected after all links are up, lossy while one of them
// is down again, and lost when all are down.
func (g *Glasses) report() {
	up := 0
	for _, l := range g.links {
		if l.state.Up {
			up++
		}
	}
	switch {
	case up == len(g.links):
		g.ready = true
		g.setLink(glasses.LinkConnected)
	case up == 0:
		g.ready = false
		g.setLink(glasses.LinkLost)
	case g.ready:
		g.setLink(glasses.LinkLossy)
	}
}

func (g *Glasses) setLink(state string) {
	g.sense(&Sense{glasses.SimState, glasses.StatePatch{Link: &state}})
}

func (g *Glasses) sense(s *Sense) {
	payload, err := json.Marshal(s.Payload)
	if err != nil {
		g.note(fmt.Sprintf("cannot encode a %s: %v", s.Type, err))
		return
	}
	if r := g.device.Control(g.now, s.Type, payload, nil); r.Error != nil {
		g.note(fmt.Sprintf("%s of the glasses was not accepted: %v", s.Type, r.Error))
	}
}

func (g *Glasses) note(text string) { g.outs = append(g.outs, GlassesOut{Note: text}) }

// settle passes outputs between the device and the driver until neither has any left.
func (g *Glasses) settle() {
	for {
		fromDevice, fromDriver := g.device.Take(), g.driver.Take()
		if len(fromDevice)+len(fromDriver) == 0 {
			return
		}
		for _, o := range fromDevice {
			if o.Ask == nil {
				f := o.Frame
				g.outs = append(g.outs, GlassesOut{Frame: &f, Body: o.Body})
				continue
			}
			g.fulfil(*o.Ask)
		}
		for _, o := range fromDriver {
			g.pass(o)
		}
	}
}

func (g *Glasses) fulfil(a device.Ask) {
	g.shown = g.shown || a.Kind == device.AskShow || g.test != nil
	switch isPicture := a.Kind == device.AskShow || a.Kind == device.AskDark; {
	case isPicture && g.test != nil:
		g.tested, a.Kind = a.ID, device.AskShow
		g.driver.Do(g.now, a, g.test)
		return
	case a.Kind == device.AskShow:
		g.driver.Do(g.now, a, render.Draw(g.device.Model(), g.device.Snapshot().View))
		return
	}
	g.driver.Do(g.now, a, nil)
}

func (g *Glasses) pass(o Out) {
	switch {
	case o.Answer != nil:
		if o.Answer.Ask == g.tested {
			g.endTested(o.Answer.Error)
		}
		g.device.Answer(g.now, o.Answer.Ask, o.Answer.Material, o.Answer.Error)
	case o.Sense != nil:
		g.sense(o.Sense)
	default:
		if l := g.link(o.Drop); l != nil {
			l.dropped = o.Problem
		}
		g.outs = append(g.outs, GlassesOut{Write: o.Write, Drop: o.Drop, Info: o.Info, Note: o.Note})
	}
}

// Close begins to restore the glasses: it switches off what the session switched on and clears the panel. The carrier
// keeps running until Closed returns true, for at most a few seconds.
func (g *Glasses) Close(now int64) {
	g.Tick(now)
	if !g.ending {
		g.ending = true
		g.driver.Close(g.now)
		g.settle()
	}
}

// Closed reports whether the glasses have been restored. A link that is down counts as restored.
func (g *Glasses) Closed() bool { return g.ending && g.driver.Closed() }

// HasShown reports whether the glasses have been asked to show a picture.
func (g *Glasses) HasShown() bool { return g.shown }

// Cleared reports whether the glasses confirmed after Close that their panel is dark. Unlike Closed, it returns false
// for a link that was down.
func (g *Glasses) Cleared() bool { return g.ending && g.driver.Cleared() }
