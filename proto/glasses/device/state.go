package device

import (
	"slices"

	"github.com/service-dev/service/proto/glasses"
)

// patch changes part of the state. Each change is told by its event; what lost its ground by it stops after that.
func (d *Device) patch(p glasses.StatePatch) {
	s := &d.state
	if p.Battery != nil && set(&s.Battery, *p.Battery) {
		d.event(glasses.TypeBattery, s.Battery)
	}
	if p.Worn != nil && set(&s.Worn, *p.Worn) {
		d.event(glasses.TypeWear, glasses.WearState{Worn: s.Worn})
	}
	if p.Hinge != nil && set(&s.Hinge, *p.Hinge) {
		d.event(glasses.TypeHinge, glasses.StateWord{State: s.Hinge})
	}
	if p.Thermal != nil && set(&s.Thermal, *p.Thermal) {
		d.event(glasses.TypeThermal, glasses.StateWord{State: s.Thermal})
	}
	if p.Link != nil && set(&s.Link, *p.Link) {
		d.event(glasses.TypeLink, glasses.LinkState{State: s.Link})
	}
	if p.Route != nil && set(&s.Route, *p.Route) {
		d.event(glasses.TypeRoute, glasses.RouteState{To: s.Route})
	}
	if p.Call != nil && set(&s.Call, *p.Call) {
		d.event(glasses.TypeCall, glasses.CallState{Active: s.Call})
	}
	d.patchParts(p)
	d.settle()
}

func (d *Device) patchParts(p glasses.StatePatch) {
	for _, part := range parts() {
		if v, ok := p.Permissions[part]; ok && v != d.state.Permissions[part] {
			d.state.Permissions[part] = v
			d.event(glasses.TypePermission, glasses.PermissionState{Part: part, State: v})
		}
	}
	if p.Disabled == nil {
		return
	}
	if disabled := inOrder(parts(), *p.Disabled); !slices.Equal(disabled, d.state.Disabled) {
		d.state.Disabled = disabled
		d.event(glasses.TypeDisabled, glasses.DisabledState{Parts: disabled})
	}
}

// set tells whether the value changed.
func set[T comparable](to *T, v T) bool {
	changed := *to != v
	*to = v
	return changed
}

// settle ends what the state no longer allows.
func (d *Device) settle() {
	if len(d.says) > 0 && needsOf(glasses.TypeSpeechSay).refused(d.state) != nil {
		d.hush()
	}
	for _, s := range slices.Clone(d.streams) {
		if needsOf(s.name+".start").refused(d.state) != nil {
			d.stop(s.name)
		}
	}
	if d.capture != nil {
		if err := needsOf(d.capture.c.typ).refused(d.state); err != nil {
			d.abandon(err)
		}
	}
}
