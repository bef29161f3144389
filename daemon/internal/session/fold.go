package session

import (
	"encoding/json"
	"slices"

	"github.com/service-dev/service/proto/glasses"
)

// The snapshot is what glasses take up after a restart. It follows the rows of the log, so that also a daemon that was
// killed knows it: what was saved, and then the rows since.

// fold takes a row into the snapshot. mu is held.
func (r *room) fold(row glasses.Event) {
	r.changed = true
	s := &r.meta.Snapshot
	switch row.Type {
	case glasses.TypeResult:
		var res glasses.Result
		if json.Unmarshal(row.Payload, &res) == nil && res.OK {
			foldCommand(s, r.pending[row.ID])
		}
		return
	case glasses.TypeDevice:
		var p glasses.DeviceChange
		if json.Unmarshal(row.Payload, &p) == nil && p.DeviceModel.ID != "" {
			s.DeviceModel, s.View = p.DeviceModel.ID, glasses.View{Focus: -1}
		}
		return
	}
	if row.Sender == glasses.SenderGlasses {
		foldState(&s.State, row)
	}
}

// foldCommand takes in what a command that succeeded has changed.
func foldCommand(s *glasses.Snapshot, c command) {
	switch c.typ {
	case glasses.TypeDisplayShow:
		if show, ok := c.parsed.(*glasses.Show); ok {
			s.View = glasses.View{Tree: &show.Tree}
		}
	case glasses.TypeDisplayClear:
		s.View = glasses.View{Focus: -1}
	case glasses.TypePhrasesAnnounce:
		if p, ok := c.parsed.(*glasses.Announce); ok {
			s.State.Phrases = p.Phrases
		}
	case glasses.TypeAudioStart, glasses.TypeTranscriptionStart, glasses.TypeVideoStart, glasses.TypeMotionStart:
		if name := runs(c.typ); !slices.Contains(s.State.Running, name) {
			s.State.Running = append(slices.Clone(s.State.Running), name)
		}
	case glasses.TypeAudioStop, glasses.TypeTranscriptionStop, glasses.TypeVideoStop, glasses.TypeMotionStop:
		name := runs(c.typ)
		s.State.Running = slices.DeleteFunc(slices.Clone(s.State.Running), func(o string) bool { return o == name })
	}
}

// runs is the stream of State.Running that a command starts or stops.
func runs(typ string) string {
	switch typ {
	case glasses.TypeAudioStart, glasses.TypeAudioStop:
		return glasses.StreamAudio
	case glasses.TypeVideoStart, glasses.TypeVideoStop:
		return glasses.StreamVideo
	case glasses.TypeMotionStart, glasses.TypeMotionStop:
		return glasses.StreamMotion
	}
	return glasses.StreamTranscription
}

// foldState takes in an event that tells of one part of the state. A payload that does not fit changes nothing.
func foldState(s *glasses.State, row glasses.Event) {
	var word glasses.StateWord
	switch row.Type {
	case glasses.TypeBattery:
		_ = json.Unmarshal(row.Payload, &s.Battery)
	case glasses.TypeWear:
		var p glasses.WearState
		_ = json.Unmarshal(row.Payload, &p)
		s.Worn = p.Worn
	case glasses.TypeHinge:
		_ = json.Unmarshal(row.Payload, &word)
		s.Hinge = word.State
	case glasses.TypeThermal:
		_ = json.Unmarshal(row.Payload, &word)
		s.Thermal = word.State
	case glasses.TypeLink:
		_ = json.Unmarshal(row.Payload, &word)
		s.Link = word.State
	case glasses.TypeRoute:
		var p glasses.RouteState
		_ = json.Unmarshal(row.Payload, &p)
		s.Route = p.To
	case glasses.TypeCall:
		var p glasses.CallState
		_ = json.Unmarshal(row.Payload, &p)
		s.Call = p.Active
	case glasses.TypePermission:
		var p glasses.PermissionState
		_ = json.Unmarshal(row.Payload, &p)
		if s.Permissions[p.Part] != p.State {
			next := map[string]string{p.Part: p.State}
			for part, v := range s.Permissions {
				if part != p.Part {
					next[part] = v
				}
			}
			s.Permissions = next
		}
	case glasses.TypeDisabled:
		var p glasses.DisabledState
		_ = json.Unmarshal(row.Payload, &p)
		s.Disabled = p.Parts
	}
}

// learn takes in what the glasses said of themselves. mu is held.
func (r *room) learn(res glasses.Result) {
	if res.State != nil {
		r.meta.Snapshot.State = *res.State
		r.changed = true
	}
	if res.View != nil {
		r.meta.Snapshot.View = *res.View
	}
}
