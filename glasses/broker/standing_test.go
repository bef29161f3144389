package broker

import (
	"encoding/json"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestStanding(t *testing.T) {
	var s glasses.Standing
	for _, step := range []struct{ typ, payload, want string }{
		{"phrases.announce", `{"phrases":["next page"]}`, `{"phrases":["next page"],"transcription":null}`},
		{"transcription.start", `{"language":"en"}`, `{"phrases":["next page"],"transcription":{"language":"en"}}`},
		{"transcription.start", `{}`, `{"phrases":["next page"],"transcription":{}}`},
		{"display.clear", `{}`, `{"phrases":["next page"],"transcription":{}}`},
		{"phrases.announce", `{"phrases":[]}`, `{"phrases":[],"transcription":{}}`},
		{"transcription.stop", `{}`, `{"phrases":[],"transcription":null}`},
	} {
		c := NewCommand(step.typ, json.RawMessage(step.payload))
		after := c.Standing(s)
		if got := string(Payload(after)); got != step.want {
			t.Errorf("after %s %s: %s, want the expected state", step.typ, step.payload, got)
		}
		if changed := string(Payload(after)) != string(Payload(s)); changed && !c.ChangesStanding() {
			t.Errorf("%s changes the standing state, but ChangesStanding is false", step.typ)
		}
		s = after
	}
}

func TestForGlasses_WithholdsTranscriptionWithoutApp(t *testing.T) {
	s := glasses.Standing{Transcription: &glasses.TranscriptionStart{Language: "en"}}
	if got := string(Payload(ForGlasses(s, 0))); got != `{"phrases":[],"transcription":null}` {
		t.Error(got)
	}
	if got := string(Payload(ForGlasses(s, 1))); got != `{"phrases":[],"transcription":{"language":"en"}}` {
		t.Error(got)
	}
}

// TestGlassesGone_KeepsWhatStands checks that announcing phrases does not fail if the glasses disconnect right after
// they received them.
func TestGlassesGone_KeepsWhatStands(t *testing.T) {
	b := newBroker()
	for _, f := range []string{"phrases.announce", "display.clear"} {
		frame := text(f, f, `{"phrases":[]}`)
		parsed, err := Admit(glasses.SenderApp, frame)
		if err != nil {
			t.Fatal(err)
		}
		b.FromApp(noon, left, parsed, frame)
	}
	want := "apps result display.clear not_connected, append result display.clear errors not_connected, " +
		"apps result phrases.announce, append result phrases.announce voice"
	if got := summary(b.GlassesGone(noon, "gone")); got != want {
		t.Error(got)
	}
}
