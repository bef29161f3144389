package main

import (
	"encoding/json"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/kinds"
)

// realKind describes glasses that the page can connect.
type realKind struct {
	DeviceModel string            `json:"deviceModel"`
	Links       []driver.LinkSpec `json:"links"`
	Steps       []string          `json:"steps"` // what the user does first, in order
}

func realKinds() (list []realKind) {
	for _, k := range kinds.All() {
		list = append(list, realKind{k.DeviceModel, k.New(driver.Panel{}).Links(), k.Steps})
	}
	return list
}

// problemTexts returns, by code, the reason why real glasses cannot be connected and what to do about it.
func problemTexts() map[string]string {
	texts := map[string]string{}
	for _, code := range driver.Problems() {
		message, fixHint := driver.ProblemText(code)
		texts[code] = strings.ToUpper(message[:1]) + message[1:] + ". " + fixHint
	}
	return texts
}

// peripheralName identifies the pair and the link to which an advertised name belongs. Both are "" if the name does not
// belong to this model.
type peripheralName struct {
	Pair string `json:"pair"`
	Link string `json:"link"`
}

func identify(model, advertised string) (p peripheralName) {
	if kind, ok := kinds.Of(model); ok {
		p.Pair, p.Link, _ = kind.Pair(advertised)
	}
	return p
}

// startReal replaces the glasses with real ones of a model. display and state are the service's state, as for start.
// Settings that only simulated glasses have, such as a fault or a folded hinge, are dropped. The links are down until
// the page reports them.
func (p *player) startReal(now int64, model, display, state, prefix string) error {
	m, _ := glasses.Model(model)
	kind, ok := kinds.Of(model)
	if !ok {
		return &glasses.Error{Code: glasses.CodeUnsupported, Message: "this page cannot connect real glasses of the model " +
			model}
	}
	s, err := resume(m, "", display, state)
	if err != nil {
		return err
	}
	ids := newIDs(prefix)
	before := device.New(m, device.Options{Snapshot: &s, NewID: ids})
	fresh := glasses.FreshState()
	fresh.Battery = s.State.Battery
	patch, err := json.Marshal(fresh.ForApp(glasses.LinkLost, glasses.ClockReal).Patch())
	if err != nil {
		return err
	}
	if r := before.Control(now, glasses.SimState, patch, nil); r.Error != nil {
		return r.Error
	}
	s = before.Snapshot()
	p.real = driver.NewGlasses(m, kind.New(driver.Panel{}), device.Options{Snapshot: &s, NewID: ids})
	p.dev, p.simulated, p.switched, p.panel = p.real, nil, outputs(before), panel{canCheck: kind.OtherRows != 0}
	return nil
}

// linkState is the state of one link of real glasses.
type linkState struct {
	Key     string `json:"key"`
	State   string `json:"state"` // up, opening or down
	Problem string `json:"problem"`
}

// links returns the links of real glasses; simulated ones have none.
func (p *player) links() []linkState {
	list := []linkState{}
	if p.real == nil {
		return list
	}
	for _, l := range p.real.Links() {
		one := linkState{Key: l.Key, State: "down", Problem: l.Problem}
		switch {
		case l.Up:
			one.State, one.Problem = "up", ""
		case l.Opening:
			one.State = "opening"
		}
		list = append(list, one)
	}
	return list
}

// event forwards an event of a link of real glasses.
func (p *player) event(now int64, e driver.Event) {
	if p.real != nil {
		p.now = now
		p.real.Event(now, e)
	}
}

// leave begins to clear the panel of real glasses and to switch off what was switched on. left reports whether that is
// done.
func (p *player) leave(now int64) {
	if p.real != nil {
		p.real.Close(now)
	}
}

func (p *player) left() bool { return p.real == nil || p.real.Closed() }
