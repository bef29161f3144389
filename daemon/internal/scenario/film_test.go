package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// A film contains each state of the panel without consecutive repeats, and counts the omitted states.
func TestFilm_HoldsWhatThePanelShowed(t *testing.T) {
	var rows []glasses.Event
	show := func(text string) {
		id := fmt.Sprint(len(rows))
		tree, _ := json.Marshal(map[string]any{"tree": map[string]any{"type": "text", "text": text}})
		rows = append(rows,
			glasses.Event{Kind: glasses.KindRequest, Type: glasses.TypeDisplayShow, ID: id, Sender: glasses.SenderApp,
				Payload: tree},
			glasses.Event{Kind: glasses.KindResult, Type: glasses.TypeResult, ID: id, Sender: glasses.SenderGlasses,
				Payload: json.RawMessage(`{"ok":true}`)})
	}
	show("same")
	show("same")
	for i := range maxFrames + 4 {
		show(fmt.Sprint("state ", i))
	}
	x := &run{rows: rows, model: "even_g1", req: Request{Files: ours, Artifacts: t.TempDir(), Film: true}}
	x.film(t.Context())
	if len(x.report.Frames) != maxFrames || x.report.MoreFrames != 5 {
		t.Fatalf("%d frames and %d more; want maxFrames and 5", len(x.report.Frames), x.report.MoreFrames)
	}
	for _, f := range x.report.Frames[:2] {
		if data, err := os.ReadFile(f.File); err != nil || sum(data) != f.SHA256 {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	x = &run{rows: rows, model: "even_g1", req: Request{Files: ours, Artifacts: t.TempDir()}}
	if x.film(t.Context()); x.report.Frames != nil {
		t.Error("a film was stored without a request")
	}
}

func TestOnModel_ChangesNoRecording(t *testing.T) {
	s := scenario.Scenario{DeviceModel: "even_g1"}
	if err := onModel(&s, "rayban_display"); err != nil || s.DeviceModel != "rayban_display" {
		t.Errorf("%v, %s", err, s.DeviceModel)
	}
	s.Recorded = &scenario.Recorded{}
	if err := onModel(&s, "rayban_display"); err != nil {
		t.Errorf("on its own model: %v, want no error", err)
	}
	for _, id := range []string{"even_g1", "nosuch"} {
		var refused *problem.Error
		if err := onModel(&s, id); !errors.As(err, &refused) || refused.Code != problem.CodeInvalidScenario ||
			s.DeviceModel != "rayban_display" {
			t.Errorf("%s: %v", id, err)
		}
	}
}
