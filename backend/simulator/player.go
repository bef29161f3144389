package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/render"
)

// player is the pair of glasses of the page: simulated, or real ones connected with the page's Bluetooth.
type player struct {
	dev       pair
	simulated *device.Device  // nil while the glasses are real
	real      *driver.Glasses // nil while they are simulated
	switched  []output        // events of the switch to real glasses
	panel     panel           // panel of real glasses
	now       int64           // time of the last event or step of real glasses
}

// pair is the common interface of simulated and real glasses.
type pair interface {
	Handle(now int64, f glasses.Frame, body []byte)
	Control(now int64, typ string, payload, body []byte) glasses.Result
	Next() (at int64, ok bool)
	Tick(now int64)
	Model() glasses.DeviceModel
	Snapshot() glasses.Snapshot
}

// output is one output of the glasses: an output of real ones, or an Ask of simulated ones.
type output struct {
	driver.GlassesOut
	Ask *device.Ask
}

// take returns the output since the last take, in order.
func (p *player) take() []output {
	outs := p.switched
	p.switched = nil
	if p.real != nil {
		for taken := p.real.Take(); len(taken) > 0; taken = p.real.Take() {
			for _, o := range taken {
				if o.Tested != nil {
					p.tested(*o.Tested)
					continue
				}
				outs = append(outs, output{GlassesOut: o})
			}
		}
		return outs
	}
	return append(outs, outputs(p.simulated)...)
}

func outputs(d *device.Device) (outs []output) {
	for _, o := range d.Take() {
		one := output{Ask: o.Ask}
		if o.Ask == nil {
			one.Frame, one.Body = &o.Frame, o.Body
		}
		outs = append(outs, one)
	}
	return outs
}

// start creates the device from a model, a snapshot, and the service's state. stored is the snapshot that the page
// stored before a reload, or "". display is the payload of the last display.show, or null if the panel is clear.
// state is the state of the glasses, or null to keep the snapshot's. Event IDs start with prefix, which is unique to
// this page.
func (p *player) start(model, stored, display, state, prefix string) error {
	m, ok := glasses.Model(model)
	if !ok {
		return &glasses.Error{Code: glasses.CodeUnsupported, Message: "this build does not know the device model " + model}
	}
	s, err := resume(m, stored, display, state)
	if err != nil {
		return err
	}
	p.simulate(device.New(m, device.Options{Snapshot: &s, NewID: newIDs(prefix)}))
	return nil
}

func (p *player) simulate(d *device.Device) {
	p.dev, p.simulated, p.real, p.switched, p.panel = d, d, nil, nil, panel{}
}

func newIDs(prefix string) func() string {
	n := 0
	return func() string {
		n++
		return prefix + "-" + strconv.Itoa(n)
	}
}

// resume merges the page's snapshot with the service's state, which takes precedence because another page may have
// acted as the glasses in between. Streams stop, because they have no source after a reload. The service restores
// phrases and transcription with sim.standing.
func resume(m glasses.DeviceModel, stored, display, state string) (glasses.Snapshot, error) {
	fresh := glasses.Snapshot{DeviceModel: m.ID, State: glasses.FreshState(), View: glasses.View{Focus: -1}}
	s := fresh
	if stored != "" && json.Unmarshal([]byte(stored), &s) != nil {
		s = fresh // an older version stored it
	}
	if s.DeviceModel != m.ID {
		s.DeviceModel, s.View = m.ID, fresh.View
	}
	s.State.Running, s.State.Phrases = []string{}, []string{}
	known, err := known(state)
	if err != nil {
		return fresh, err
	}
	if known != nil {
		s.State = s.State.Patched(known.Patch())
	}
	tree, err := shown(display)
	if err != nil {
		return fresh, err
	}
	switch {
	case tree == nil:
		s.View = fresh.View
	case !reflect.DeepEqual(tree, s.View.Tree):
		s.View = render.Show(m, s.View, tree)
	}
	s.View = render.Clamp(m, s.View)
	return s, nil
}

// agrees reports whether the device already has this model, display and state, so that a new WebSocket needs no
// restart.
func (p *player) agrees(model, display, state string) bool {
	tree, err := shown(display)
	if err != nil {
		return false
	}
	known, err := known(state)
	if err != nil {
		return false
	}
	s := p.dev.Snapshot()
	isState := known == nil || reflect.DeepEqual(s.State, s.State.Patched(known.Patch()))
	return isState && s.DeviceModel == model && reflect.DeepEqual(tree, s.View.Tree)
}

// known returns the state of the glasses according to the service, or nil if the service sent none.
func known(state string) (g *glasses.AppState, err error) {
	if state == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(state), &g); err != nil {
		return nil, fmt.Errorf("read the state of the glasses: %w", err)
	}
	return g, nil
}

func shown(display string) (*glasses.Node, error) {
	if display == "" || display == "null" {
		return nil, nil
	}
	show, err := glasses.ParseShow([]byte(display))
	if err != nil {
		return nil, err
	}
	return &show.Tree, nil
}

// handle passes a text or binary frame to the device.
func (p *player) handle(now int64, data []byte, binary bool) error {
	var f glasses.Frame
	var body []byte
	var err error
	if binary {
		f, body, err = glasses.ParseBinary(data)
	} else {
		f, err = glasses.Parse(data)
	}
	if err != nil {
		return err
	}
	p.dev.Handle(now, f, body)
	return nil
}

// tick runs the steps that are due.
func (p *player) tick(now int64) {
	p.now = now
	p.dev.Tick(now)
}

// wanted returns the names of the font files that the page must fetch before it handles a frame, so that results list
// only characters that are missing in all fonts. Without a frame, it returns the fonts for the current view.
func (p *player) wanted(frame []byte) []string {
	v := p.seen()
	if len(frame) > 0 {
		f, err := glasses.Parse(frame)
		if err != nil || f.Type != glasses.TypeDisplayShow {
			return nil
		}
		show, err := glasses.ParseShow(f.Payload)
		if err != nil {
			return nil
		}
		v = glasses.View{Tree: &show.Tree}
	}
	return render.WantedFonts(p.dev.Model(), v)
}

// reading is the panel's content as text, for screen readers.
type reading struct {
	Lines []string `json:"lines"`
	// Focus is the text of the focused target, or its ID if it has no text; "" if nothing has focus.
	Focus string `json:"focus"`
}

func (p *player) read() reading {
	v := p.seen()
	r := reading{Lines: []string{}}
	if v.Tree == nil || p.dev.Model().Panel == nil {
		return r
	}
	r.Lines = append(r.Lines, render.Words(v.Tree)...)
	targets := render.Targets(p.dev.Model(), v)
	if v.Focus < 0 || v.Focus >= len(targets) {
		return r
	}
	r.Focus = targets[v.Focus].ID
	if node := byID(v.Tree, r.Focus); node != nil && r.Focus != "" {
		if text := strings.Join(render.Words(node), " "); text != "" {
			r.Focus = text
		}
	}
	return r
}

// seen returns the wearer's view of the panel.
func (p *player) seen() glasses.View {
	snapshot := p.dev.Snapshot()
	return snapshot.State.Seen(snapshot.View)
}

func byID(n *glasses.Node, id string) *glasses.Node {
	if n.ID == id {
		return n
	}
	for i := range n.Children {
		if found := byID(&n.Children[i], id); found != nil {
			return found
		}
	}
	return nil
}
