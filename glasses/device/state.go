package device

import (
	"slices"

	"github.com/service-dev/service/glasses"
)

// patch changes parts of the state. It sends an event for each change and then stops everything that the new state
// forbids.
func (d *Device) patch(p glasses.StatePatch) {
	before := d.state
	d.state = before.Patched(p)
	if d.state.Link != before.Link {
		d.panel.confirmed = nil // a part of real glasses may have disconnected
	}
	if glasses.PanelClears(before.Link, d.state.Link) {
		d.view = clearView()
		d.repaint()
	}
	d.settleTranscription()
	d.report(before)
	d.settle()
}

// report sends an event for each part of the state that has changed.
func (d *Device) report(before glasses.State) {
	was, is := before, d.state
	for _, part := range []struct {
		changed bool
		event   string
		payload any
	}{
		{is.Battery != was.Battery, glasses.TypeBattery, is.Battery},
		{is.Worn != was.Worn, glasses.TypeWear, glasses.WearState{Worn: is.Worn}},
		{is.Hinge != was.Hinge, glasses.TypeHinge, glasses.StateWord{State: is.Hinge}},
		{is.Thermal != was.Thermal, glasses.TypeThermal, glasses.StateWord{State: is.Thermal}},
		{is.Link != was.Link, glasses.TypeLink, glasses.StateWord{State: is.Link}},
		{is.Route != was.Route, glasses.TypeRoute, glasses.RouteState{To: is.Route}},
		{is.Call != was.Call, glasses.TypeCall, glasses.CallState{Active: is.Call}},
	} {
		if part.changed {
			d.event(part.event, part.payload)
		}
	}
	for _, part := range parts() {
		if v := is.Permissions[part]; v != was.Permissions[part] {
			d.event(glasses.TypePermission, glasses.PermissionState{Part: part, State: v, By: glasses.ByPermission})
		}
	}
	if !slices.Equal(is.Disabled, was.Disabled) {
		d.event(glasses.TypeDisabled, glasses.DisabledState{Parts: is.Disabled, By: glasses.BySwitch})
	}
}

// settle stops everything that the state no longer allows.
func (d *Device) settle() {
	if d.state.Link == glasses.LinkLost {
		d.dropPictures(reason(glasses.CodeNotConnected))
	}
	if len(d.says) > 0 && needsOf(glasses.TypeSpeechSay).refused(d.state) != nil {
		d.hush()
	}
	if d.playback != nil {
		if err := needsOf(glasses.TypePlaybackStart).refused(d.state); err != nil {
			d.stopPlayback(err.Code)
		}
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
