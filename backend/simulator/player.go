package main

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/device"
	"github.com/service-dev/service/proto/glasses/render"
)

// player is the device that the page plays, and what the page shows of it.
type player struct {
	dev *device.Device
}

// start begins with a model, what the page had stored before a reload (may be empty) and the display.show payload that
// the service says is on the panel (null for a clear one). prefix makes the ids of events unique to this page.
func (p *player) start(model, stored, display, prefix string) error {
	m, ok := glasses.Model(model)
	if !ok {
		return &glasses.Error{Code: glasses.CodeUnsupported, Message: "this build does not know the device model " + model}
	}
	s, err := resume(m, stored, display)
	if err != nil {
		return err
	}
	n := 0
	p.dev = device.New(m, device.Options{Snapshot: &s, NewID: func() string {
		n++
		return prefix + "-" + strconv.Itoa(n)
	}})
	return nil
}

// resume puts together what a page remembers and what the service knows. The service wins where they differ: another
// page may have played the glasses in between. Streams do not run on: nobody feeds them after a reload.
func resume(m glasses.DeviceModel, stored, display string) (glasses.Snapshot, error) {
	fresh := glasses.Snapshot{DeviceModel: m.ID, State: glasses.FreshState(), View: glasses.View{Focus: -1}}
	s := fresh
	if stored != "" && json.Unmarshal([]byte(stored), &s) != nil {
		s = fresh // an older page's
	}
	if s.DeviceModel != m.ID {
		s.DeviceModel, s.View = m.ID, fresh.View
	}
	s.State.Running = []string{}
	tree, err := shown(display)
	if err != nil {
		return fresh, err
	}
	if !reflect.DeepEqual(tree, s.View.Tree) {
		s.View = glasses.View{Tree: tree}
	}
	if s.View.Tree == nil {
		s.View = fresh.View
	}
	s.View = render.Clamp(m, s.View)
	return s, nil
}

// agrees tells whether the glasses are this model and show this; then a new socket needs no new start.
func (p *player) agrees(model, display string) bool {
	tree, err := shown(display)
	s := p.dev.Snapshot()
	return err == nil && s.DeviceModel == model && reflect.DeepEqual(tree, s.View.Tree)
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

// handle gives a text frame or a binary one to the device.
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

// reading is the panel for people who do not see it.
type reading struct {
	Lines []string `json:"lines"`
	// Focus is the text of the focused target, else its id; empty for none.
	Focus string `json:"focus"`
}

func (p *player) read() reading {
	v := p.dev.Snapshot().View
	r := reading{Lines: []string{}}
	if v.Tree == nil || p.dev.Model().Panel == nil {
		return r
	}
	r.Lines = append(r.Lines, render.Text(v.Tree)...)
	targets := render.Targets(p.dev.Model(), v)
	if v.Focus < 0 || v.Focus >= len(targets) {
		return r
	}
	r.Focus = targets[v.Focus].ID
	if node := byID(v.Tree, r.Focus); node != nil && r.Focus != "" {
		if text := strings.Join(render.Text(node), " "); text != "" {
			r.Focus = text
		}
	}
	return r
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
