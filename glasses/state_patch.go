package glasses

import (
	"encoding/json"
	"maps"
	"slices"
)

// Patched returns s with p applied. p must have been checked. The result shares unchanged maps and slices with s; do
// not modify them.
func (s State) Patched(p StatePatch) State {
	set(&s.Battery, p.Battery)
	set(&s.Worn, p.Worn)
	set(&s.Hinge, p.Hinge)
	set(&s.Thermal, p.Thermal)
	set(&s.Link, p.Link)
	if len(p.Permissions) > 0 {
		permissions := map[string]string{}
		maps.Copy(permissions, s.Permissions)
		maps.Copy(permissions, p.Permissions)
		s.Permissions = permissions
	}
	if p.Disabled != nil {
		s.Disabled = slices.DeleteFunc(parts(), func(part string) bool { return !slices.Contains(*p.Disabled, part) })
	}
	set(&s.Route, p.Route)
	set(&s.Call, p.Call)
	return s
}

func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// AfterEvent returns the state after an event of the glasses. If the event does not concern the state or its payload is
// invalid, ok is false and after is s.
func (s State) AfterEvent(typ string, payload []byte) (after State, ok bool) {
	var p StatePatch
	read := patchReaders[typ]
	if read == nil || read(payload, &p) != nil || p.check() != nil {
		return s, false
	}
	return s.Patched(p), true
}

// patchReaders decode events that report the state into patches.
var patchReaders = map[string]func(payload []byte, p *StatePatch) error{
	TypeBattery: patchReader(func(p *StatePatch, b Battery) { p.Battery = &b }),
	TypeWear:    patchReader(func(p *StatePatch, w WearState) { p.Worn = &w.Worn }),
	TypeHinge:   patchReader(func(p *StatePatch, w StateWord) { p.Hinge = &w.State }),
	TypeThermal: patchReader(func(p *StatePatch, w StateWord) { p.Thermal = &w.State }),
	TypeLink:    patchReader(func(p *StatePatch, w StateWord) { p.Link = &w.State }),
	TypeRoute:   patchReader(func(p *StatePatch, r RouteState) { p.Route = &r.To }),
	TypeCall:    patchReader(func(p *StatePatch, c CallState) { p.Call = &c.Active }),
	TypePermission: patchReader(func(p *StatePatch, s PermissionState) {
		p.Permissions = map[string]string{s.Part: s.State}
	}),
	TypeDisabled: patchReader(func(p *StatePatch, d DisabledState) { p.Disabled = &d.Parts }),
}

// patchReader returns the decoder for an event whose payload is a T.
func patchReader[T any](apply func(*StatePatch, T)) func([]byte, *StatePatch) error {
	return func(payload []byte, p *StatePatch) error {
		var v T
		if err := json.Unmarshal(payload, &v); err != nil {
			return err
		}
		apply(p, v)
		return nil
	}
}
