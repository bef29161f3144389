package scenario

import (
	"encoding/json"
	"testing"

	"github.com/service-dev/service/glasses"
)

// The pictures of a recording show the focus at the position set by the wearer, as the panel did.
func TestPanels_KeepTheFocus(t *testing.T) {
	const tree = `{"tree":{"type":"list","children":[{"type":"text","id":"a","text":"A"},{"type":"text","id":"b","text":"B"}]}}`
	command := func(id, typ, payload string) []glasses.Event {
		return []glasses.Event{
			{Kind: glasses.KindRequest, Type: typ, ID: id, Sender: glasses.SenderApp, Payload: json.RawMessage(payload)},
			{Kind: glasses.KindResult, Type: glasses.TypeResult, ID: id, Sender: glasses.SenderGlasses,
				Payload: json.RawMessage(`{"ok":true}`)},
		}
	}
	var rows []glasses.Event
	rows = append(rows, command("1", glasses.TypeDisplayShow, tree)...)
	rows = append(rows, glasses.Event{Kind: glasses.KindEvent, Type: glasses.TypeInput, Sender: glasses.SenderGlasses,
		Payload: json.RawMessage(`{"kind":"navigate","x":0,"y":0,"direction":"down","target":"b"}`)})
	rows = append(rows, command("2", glasses.TypeDisplayShow, tree)...)
	rows = append(rows, command("3", glasses.TypeDisplayClear, `{}`)...)
	rows = append(rows, command("4", glasses.TypeDisplayShow, tree)...)
	navigate := rows[2]
	rows = append(rows, navigate)
	for _, state := range []string{"lost", "connected"} { // the panel is empty when the link is restored
		rows = append(rows, glasses.Event{Kind: glasses.KindEvent, Type: glasses.TypeLink, Sender: glasses.SenderGlasses,
			Payload: json.RawMessage(`{"state":"` + state + `"}`)})
	}
	rows = append(rows, command("5", glasses.TypeDisplayShow, tree)...)
	want := []int{0, 1, -1, 0, 0}
	list := panels(rows, 0, "rayban_display", "")
	if len(list) != len(want) {
		t.Fatalf("%d panels, want %d", len(list), len(want))
	}
	for i, p := range list {
		if p.view.Focus != want[i] {
			t.Errorf("panel %d has the focus %d, want %d", i, p.view.Focus, want[i])
		}
	}
}
