package session

import (
	"encoding/json"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/render"
)

// Glasses continue from the snapshot after a restart. After a kill, the current snapshot is restored from the saved one
// and the later rows of the log. The snapshot's maps and slices are replaced, never modified.

// applyEvent applies a row to the snapshot and the standing state. If the row is a result, answered is the command that
// it answers.
func (m *meta) applyEvent(row glasses.Event, answered *broker.Command) {
	s := &m.Snapshot
	switch row.Type {
	case glasses.TypeResult:
		var res glasses.Result
		if answered != nil && json.Unmarshal(row.Payload, &res) == nil && res.OK {
			applyCommand(s, answered)
			m.Standing = answered.Standing(m.Standing)
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
		applyInput(s, row)
		before := s.State.Link
		s.State, _ = s.State.AfterEvent(row.Type, row.Payload)
		if glasses.PanelClears(before, s.State.Link) {
			s.View = glasses.View{Focus: -1}
		}
	}
}

// applyCommand applies the effects of a successful command.
func applyCommand(s *glasses.Snapshot, c *broker.Command) {
	switch c.Type {
	case glasses.TypeDisplayShow:
		if show, err := glasses.ParseShow(c.Payload); err == nil {
			model, _ := glasses.Model(s.DeviceModel)
			s.View = render.Show(model, s.View, &show.Tree)
		}
	case glasses.TypeDisplayClear:
		s.View = glasses.View{Focus: -1}
	case glasses.TypePhrasesAnnounce:
		if p, ok := c.Value.(*glasses.Announce); ok {
			s.State.Phrases = p.Phrases
		}
	}
	if name, ok := startedStreams[c.Type]; ok && !slices.Contains(s.State.Running, name) {
		s.State.Running = append(slices.Clone(s.State.Running), name)
	}
	if name, ok := stoppedStreams[c.Type]; ok {
		s.State.Running = slices.DeleteFunc(slices.Clone(s.State.Running), func(o string) bool { return o == name })
	}
}

// startedStreams and stoppedStreams map commands to the streams in State.Running that they start and stop.
var (
	startedStreams = map[string]string{
		glasses.TypeAudioStart: glasses.StreamAudio, glasses.TypeVideoStart: glasses.StreamVideo,
		glasses.TypeMotionStart: glasses.StreamMotion, glasses.TypeTranscriptionStart: glasses.StreamTranscription,
	}
	stoppedStreams = map[string]string{
		glasses.TypeAudioStop: glasses.StreamAudio, glasses.TypeVideoStop: glasses.StreamVideo,
		glasses.TypeMotionStop: glasses.StreamMotion, glasses.TypeTranscriptionStop: glasses.StreamTranscription,
	}
)

// applyInput applies the effect of an input to focus and scrolling.
func applyInput(s *glasses.Snapshot, row glasses.Event) {
	var in glasses.Input
	if row.Type == glasses.TypeInput && json.Unmarshal(row.Payload, &in) == nil {
		model, _ := glasses.Model(s.DeviceModel)
		s.View, _ = render.Use(model, s.View, in)
	}
}
