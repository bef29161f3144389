package session

import (
	"encoding/json"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// The rows of the log are enough to restore the focus, because the glasses of a killed daemon no longer answer.
func TestSnapshot_FollowsTheFocus(t *testing.T) {
	const tree = `{"tree":{"type":"list","children":[{"type":"text","id":"a","text":"A"},{"type":"text","id":"b","text":"B"}]}}`
	m := &meta{Snapshot: glasses.Snapshot{
		DeviceModel: "rayban_display", State: glasses.FreshState(), View: glasses.View{Focus: -1},
	}}
	show := func() {
		m.applyEvent(glasses.Event{Type: glasses.TypeResult, Sender: glasses.SenderGlasses,
			Payload: json.RawMessage(`{"ok":true}`)},
			new(broker.NewCommand(glasses.TypeDisplayShow, json.RawMessage(tree))))
	}
	show()
	m.applyEvent(glasses.Event{Type: glasses.TypeInput, Sender: glasses.SenderApp,
		Payload: json.RawMessage(`{"kind":"navigate","direction":"down"}`)}, nil)
	if m.Snapshot.View.Focus != 0 {
		t.Errorf("the app moved the focus to %d, want 0", m.Snapshot.View.Focus)
	}
	m.applyEvent(glasses.Event{Type: glasses.TypeInput, Sender: glasses.SenderGlasses,
		Payload: json.RawMessage(`{"kind":"navigate","direction":"down","target":"b"}`)}, nil)
	show()
	if m.Snapshot.View.Focus != 1 {
		t.Errorf("the focus is %d after the wearer moved it and the app drew again, want 1", m.Snapshot.View.Focus)
	}
}
