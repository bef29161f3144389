package device

import (
	"slices"
	"strconv"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/media"
	"github.com/service-dev/service/proto/glasses/render"
)

// Options of New. All are optional.
type Options struct {
	// Snapshot is what the glasses remember. Streams, speech and captures that ran are over.
	Snapshot *glasses.Snapshot
	// NewID makes the ids of frames that answer nothing; by default g-1, g-2 and so on. They must be new to the session.
	NewID func() string
}

// Device is one simulated pair of glasses. It is for one goroutine. All times are ms of the session's clock and never go
// back: an earlier one counts as the latest.
type Device struct {
	model  glasses.DeviceModel
	state  glasses.State
	view   glasses.View
	motion glasses.Motion // what the sensor feels now

	now   int64
	goal  int64 // the time that Tick goes to; now is on its way there
	newID func() string
	queue queue
	outs  []Out

	asks    []ask
	lastAsk int
	pending int // commands whose result is still to come
	says    []saying
	streams []*stream
	capture *capture
	camera  *picture     // what sim.camera put before the lens; nil for the host's
	sound   *media.Sound // what sim.microphone put before the microphone; nil for the host's
}

// Out is one thing that came out: a frame, or an Ask to the host.
type Out struct {
	Frame glasses.Frame
	// Body makes Frame a binary one when it is not nil.
	Body []byte
	Ask  *Ask
}

// New makes a pair of glasses, fresh or as the snapshot tells.
func New(model glasses.DeviceModel, o Options) *Device {
	d := &Device{model: model, state: glasses.FreshState(), view: clearView(), motion: glasses.Motion{AZ: 1000}, newID: o.NewID}
	if d.newID == nil {
		n := 0
		d.newID = func() string { n++; return "g-" + strconv.Itoa(n) }
	}
	if o.Snapshot != nil {
		d.restore(*o.Snapshot)
	}
	return d
}

func clearView() glasses.View { return glasses.View{Focus: -1} }

// restore takes up a snapshot; what it lacks stays fresh.
func (d *Device) restore(s glasses.Snapshot) {
	fresh := d.state
	d.state = cloneState(s.State)
	for part, v := range fresh.Permissions {
		if _, ok := d.state.Permissions[part]; !ok {
			d.state.Permissions[part] = v
		}
	}
	for _, f := range []struct {
		to    *string
		fresh string
	}{{&d.state.Hinge, fresh.Hinge}, {&d.state.Thermal, fresh.Thermal}, {&d.state.Link, fresh.Link}, {&d.state.Route, fresh.Route}} {
		if *f.to == "" {
			*f.to = f.fresh
		}
	}
	d.state.Running = []string{}
	if s.View.Tree != nil && d.model.Panel != nil && render.CheckImages(*s.View.Tree) == nil {
		d.view = render.Clamp(d.model, s.View)
	}
}

// Model is what glasses these are now; sim.device changes it.
func (d *Device) Model() glasses.DeviceModel { return d.model }

// Snapshot is what the glasses remember. It shares nothing with them but the tree, which nobody changes.
func (d *Device) Snapshot() glasses.Snapshot {
	return glasses.Snapshot{DeviceModel: d.model.ID, State: cloneState(d.state), View: d.view}
}

// Take gives what came out since the last Take, in order.
func (d *Device) Take() []Out {
	outs := d.outs
	d.outs = nil
	return outs
}

// Next is when something happens by itself; ok is false when nothing is going to.
func (d *Device) Next() (at int64, ok bool) { return d.queue.next() }

// Tick lets happen what is due up to now, in the order of its time.
func (d *Device) Tick(now int64) {
	d.goal = max(d.now, now)
	for {
		at, ok := d.queue.next()
		if !ok || at > d.goal {
			break
		}
		d.now = max(d.now, at)
		d.queue.pop().run()
	}
	d.now = d.goal
}

// Handle takes a command of the app or a control frame; body is what a binary one carries. Every one is answered by
// exactly one result of the same id, now or later. A frame of another type is ignored.
func (d *Device) Handle(now int64, f glasses.Frame, body []byte) {
	d.Tick(now)
	switch {
	case glasses.IsCommand(f.Type):
		d.command(f)
	case glasses.IsControl(f.Type):
		d.putResult(f.ID, d.control(f.Type, f.Payload, body))
	}
}

// Control does what a control frame of this type would, for the host itself (a page's own buttons, a script of a
// simulator): the events come out as ever, the result is returned and does not.
func (d *Device) Control(now int64, typ string, payload, body []byte) glasses.Result {
	d.Tick(now)
	return d.control(typ, payload, body)
}

// put lets a frame out. Payloads are this package's own and can always be encoded.
func (d *Device) put(typ, id string, payload any) {
	f, _ := glasses.New(typ, id, d.now, payload)
	d.outs = append(d.outs, Out{Frame: f})
}

// event lets an event out.
func (d *Device) event(typ string, payload any) { d.put(typ, d.newID(), payload) }

// putBinary lets a binary frame about m out.
func (d *Device) putBinary(typ, id string, m glasses.Media, body []byte) {
	f, _ := glasses.New(typ, id, d.now, m)
	d.outs = append(d.outs, Out{Frame: f, Body: body})
}

// roomForEnvelope is what a frame needs around its payload, in bytes.
const roomForEnvelope = 512

// putResult answers a control frame. A result must fit a text frame: what apps announced goes first, then the tree.
func (d *Device) putResult(id string, r glasses.Result) {
	f, _ := glasses.New(glasses.TypeResult, id, d.now, r)
	if len(f.Payload) > glasses.MaxFrame-roomForEnvelope && r.State != nil {
		r.State.Phrases = []string{}
		f, _ = glasses.New(glasses.TypeResult, id, d.now, r)
	}
	if len(f.Payload) > glasses.MaxFrame-roomForEnvelope {
		r.View = nil
		f, _ = glasses.New(glasses.TypeResult, id, d.now, r)
	}
	d.outs = append(d.outs, Out{Frame: f})
}

func cloneState(s glasses.State) glasses.State {
	permissions := map[string]string{}
	for part, v := range s.Permissions {
		permissions[part] = v
	}
	s.Permissions = permissions
	s.Disabled = append([]string{}, s.Disabled...)
	s.Running = append([]string{}, s.Running...)
	s.Phrases = append([]string{}, s.Phrases...)
	s.Faults = append([]glasses.Fault{}, s.Faults...)
	return s
}

// parts lists what permission and the wearer's switches speak of, in the order of events.
func parts() []string {
	return []string{glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech}
}

// inOrder gives the words that are in list, in their own order and once each.
func inOrder(words, list []string) []string {
	out := []string{}
	for _, w := range words {
		if slices.Contains(list, w) {
			out = append(out, w)
		}
	}
	return out
}
