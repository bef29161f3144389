//go:build unix

package app

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/scenario"
)

// Updating a recording keeps the notes and picture steps that the user added. Steps that cannot be kept are reported.
func TestRecord_KeepsNotesAndPictures(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	begin, on := listener()
	o := startApp(t, l, backend.ClockVirtual, begin, on)
	const steps = `[
		{"note":"wait for the app","advance":700},
		{"note":"the wearer taps","input":{"kind":"tap"}},
		{"note":"it answers","expectDisplay":{"text":["photo"],"contains":true}},
		{"picture":"end"},
		{"advance":300},
		{"note":"low","state":{"battery":{"level":5,"charging":false}}},
		{"expect":{"type":"display.clear","absent":true,"withinMs":0}},
		{"note":"the default camera","camera":""},
		{"note":"look at it","picture":"end"}]`
	raw := a.call("runSteps", o.SessionID, map[string]any{"steps": json.RawMessage(steps)})
	if !bytes.Contains(raw, []byte(`"verdict":"pass"`)) {
		t.Fatalf("%s", raw)
	}
	dir := filepath.Join(t.TempDir(), "recording")
	raw = a.call("recordSession", o.SessionID, map[string]any{"dir": dir})
	var recorded struct{ Notes []string }
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	pictures := 0
	for _, s := range loadRecording(t, dir).Steps {
		if s.Note != "" {
			said[s.Act()] += s.Note
		}
		if s.Picture != nil {
			pictures++
		}
	}
	for act, note := range map[string]string{"advance": "wait for the app", "input": "the wearer taps",
		"expectDisplay": "it answers", "state": "low", "picture": "look at it"} {
		if said[act] != note {
			t.Errorf("step %s has the note %q; want the person's note", act, said[act])
		}
	}
	if left := strings.Join(recorded.Notes, "\n"); len(recorded.Notes) != 3 || pictures != 1 ||
		!strings.Contains(left, `picture "end"`) || !strings.Contains(left, "the default camera") ||
		!strings.Contains(left, "does not come") {
		t.Errorf("%d pictures, notes %q; want 1 picture and 3 notes on dropped steps", pictures, recorded.Notes)
	}
	begin, on = listener()
	again := startApp(t, l, backend.ClockVirtual, begin, on)
	if answer, raw := a.replay(again.SessionID, dir, map[string]any{}); answer.Verdict != scenario.Pass ||
		!bytes.Contains(raw, []byte(`"name":"end"`)) {
		t.Errorf("%s", raw)
	}
}
