package device

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
	"github.com/service-dev/service/glasses/render"
)

// Options configures a Device. All fields are optional.
type Options struct {
	// Snapshot restores the glasses of an earlier run, whose streams, speech and captures have ended.
	Snapshot *glasses.Snapshot
	// NewID returns an ID, unique within the session, for a frame that is not a result. The default IDs are g-1, g-2
	// and so on.
	NewID func() string
	// Hardware is set by a host that drives real glasses. The host then carries out AskShow and AskDark. A command that
	// changes the panel is answered only after that.
	Hardware bool
	// Unconfirmed returns the part of the glasses that has not confirmed the latest picture, or "" if all have. It is
	// set with Hardware.
	Unconfirmed func() string
	// Pace delays each picture by the time that the model's panel needs (glasses.Panel.FullMs).
	Pace bool
	// Stepwise is set by a host in virtual time, which calls Step. Frames then run nothing that is due only now.
	Stepwise bool
}

// Device is one simulated pair of glasses. It is not safe for concurrent use. All times are in milliseconds on the
// session's clock. A time before the latest one is replaced by the latest one.
type Device struct {
	model  glasses.DeviceModel
	state  glasses.State
	view   glasses.View
	motion glasses.Motion // the current reading of the motion sensor

	now int64
	// isStepwise is Options.Stepwise.
	isStepwise bool
	goal       int64 // target of the running Tick; now advances towards it
	newID      func() string
	queue      queue
	outs       []Out
	panel      panel

	asks    []ask
	lastAsk int
	pending int // number of commands without a result
	// sleeping maps IDs to the commands that are waiting for the clock.
	sleeping map[string]*command
	// arrivals holds the time at which the last delayed command for each part reaches the glasses.
	arrivals map[string]int64
	says     []saying
	streams  []*stream
	capture  *capture
	playback *playback // the running one, or nil
	early    *playback // for a playback.start that has not reached the glasses yet, or nil
	played   int64     // ms of the latest playback that were played when it ended
	// transcription is the transcription.start in effect; nil if transcription is off.
	transcription *glasses.TranscriptionStart
	camera        *picture        // set by sim.camera; nil for the host's camera
	sound         *media.Sound    // set by sim.microphone; nil for the host's microphone
	transcript    []glasses.Words // of sound
}

// Out is one output, either a frame or an Ask for the host.
type Out struct {
	Frame glasses.Frame
	// Body is the body of a binary frame; nil for a text frame.
	Body []byte
	Ask  *Ask
}

// New returns a pair of glasses, restored from the snapshot if there is one.
func New(model glasses.DeviceModel, o Options) *Device {
	d := &Device{
		model: model, state: glasses.FreshState(), view: clearView(), motion: glasses.Motion{AZ: 1000}, newID: o.NewID,
		panel:    panel{isReal: o.Hardware, isSlow: o.Pace, unconfirmed: o.Unconfirmed},
		sleeping: map[string]*command{}, arrivals: map[string]int64{}, isStepwise: o.Stepwise,
	}
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

// restore applies a snapshot. Missing fields keep their defaults.
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
	}{
		{&d.state.Hinge, fresh.Hinge}, {&d.state.Thermal, fresh.Thermal},
		{&d.state.Link, fresh.Link}, {&d.state.Route, fresh.Route},
	} {
		*f.to = cmp.Or(*f.to, f.fresh)
	}
	d.state.Running = []string{}
	if s.View.Tree != nil && d.model.Panel != nil && render.CheckImages(*s.View.Tree) == nil {
		d.view = render.Clamp(d.model, s.View)
	}
}

// Model returns the current model, which sim.device may change.
func (d *Device) Model() glasses.DeviceModel { return d.model }

// Snapshot returns a copy of the complete state. It shares only the tree, which is never modified.
func (d *Device) Snapshot() glasses.Snapshot {
	return glasses.Snapshot{DeviceModel: d.model.ID, State: cloneState(d.state), View: d.view}
}

// Take returns the output since the last Take, in order.
func (d *Device) Take() []Out {
	outs := d.outs
	d.outs = nil
	return outs
}

// Next returns the time of the next scheduled event. ok is false if there is none.
func (d *Device) Next() (at int64, ok bool) { return d.queue.next() }

// Tick runs everything that is due up to now, in time order.
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

// Step runs the first thing that is due up to now, so that an app can react to it before the next one. If nothing is
// due, only time passes.
func (d *Device) Step(now int64) {
	at, ok := d.queue.next()
	if !ok || at > now {
		d.Tick(now)
		return
	}
	d.now = max(d.now, at)
	d.goal = d.now
	d.queue.pop().run()
}

// catchUp runs what is due when a frame arrives.
func (d *Device) catchUp(now int64) {
	if !d.isStepwise {
		d.Tick(now)
	} else if now > d.now {
		d.Tick(now - 1)
		d.now = now
	}
}

// Handle processes a command or a playback.chunk from the app, or a control frame. body is the body of a binary frame.
// Each command and control frame gets exactly one result with the same ID, now or later. Frames of other types are
// ignored.
func (d *Device) Handle(now int64, f glasses.Frame, body []byte) {
	d.catchUp(now)
	switch {
	case glasses.IsCommand(f.Type):
		d.command(f)
	case glasses.IsControl(f.Type):
		d.putResult(f.ID, d.control(f.Type, f.Payload, body))
	case f.Type == glasses.TypePlaybackChunk:
		d.takeChunk(f.Payload, body)
	}
}

// Control executes a control frame for the host itself, e.g. for the buttons of a page. It returns the result. Events
// are output as usual.
func (d *Device) Control(now int64, typ string, payload, body []byte) glasses.Result {
	d.catchUp(now)
	return d.control(typ, payload, body)
}

// put outputs a frame. payload must have a type of this module, so encoding it cannot fail.
func (d *Device) put(typ, id string, payload any) {
	f, _ := glasses.New(typ, id, d.now, payload)
	d.outs = append(d.outs, Out{Frame: f})
}

// event outputs an event.
func (d *Device) event(typ string, payload any) { d.put(typ, d.newID(), payload) }

// putBinary outputs a binary frame whose header is m.
func (d *Device) putBinary(typ, id string, m glasses.Media, body []byte) {
	f, _ := glasses.New(typ, id, d.now, m)
	d.outs = append(d.outs, Out{Frame: f, Body: body})
}

// maxResult is the maximum size of a result's payload in bytes. It leaves 512 bytes for the envelope.
const maxResult = glasses.MaxFrame - 512

// putResult answers a control frame. If the result does not fit in a text frame, putResult drops the confirmed view,
// then the announced phrases, then the tree.
func (d *Device) putResult(id string, r glasses.Result) {
	f, _ := glasses.New(glasses.TypeResult, id, d.now, r)
	if len(f.Payload) > maxResult && r.Confirmed != nil {
		r.Confirmed = nil
		f, _ = glasses.New(glasses.TypeResult, id, d.now, r)
	}
	if len(f.Payload) > maxResult && r.State != nil {
		r.State.Phrases = []string{}
		f, _ = glasses.New(glasses.TypeResult, id, d.now, r)
	}
	if len(f.Payload) > maxResult {
		r.View = nil
		f, _ = glasses.New(glasses.TypeResult, id, d.now, r)
	}
	d.outs = append(d.outs, Out{Frame: f})
}

func cloneState(s glasses.State) glasses.State {
	if s.Permissions = maps.Clone(s.Permissions); s.Permissions == nil {
		s.Permissions = map[string]string{}
	}
	s.Disabled = append([]string{}, s.Disabled...)
	s.Running = append([]string{}, s.Running...)
	s.Phrases = append([]string{}, s.Phrases...)
	s.Faults = append([]glasses.Fault{}, s.Faults...)
	return s
}

// parts returns the parts to which permissions and the wearer's switches apply, in the order of their events.
func parts() []string {
	return []string{glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech}
}

// inOrder returns the elements of words that list contains, in the order of words and without duplicates.
func inOrder(words, list []string) []string {
	out := []string{}
	for _, w := range words {
		if slices.Contains(list, w) {
			out = append(out, w)
		}
	}
	return out
}
