package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/guide"
)

// answerTo puts glasses into a state and returns the error code of their answer to a command. It returns "" if the
// answer is ok or not available yet.
func answerTo(t *testing.T, model string, state string, c commandGuide) string {
	t.Helper()
	m, ok := glasses.Model(model)
	if !ok {
		m = glasses.DeviceModel{ID: model} // glasses without any parts
	}
	d := device.New(m, device.Options{})
	send := func(typ, id, payload string) string {
		d.Handle(0, glasses.Frame{V: glasses.Version, Type: typ, ID: id, Payload: json.RawMessage(payload)}, nil)
		for _, out := range d.Take() {
			if out.Frame.Type != glasses.TypeResult || out.Frame.ID != id {
				continue
			}
			result, err := glasses.ParseResult(out.Frame.Payload)
			if err != nil {
				t.Fatalf("%s: %v", typ, err)
			}
			if result.Error != nil {
				return result.Error.Code
			}
		}
		return ""
	}
	if state != "" {
		if code := send(glasses.SimState, "s", state); code != "" {
			t.Fatalf("%s: %s", state, code)
		}
	}
	payload, err := json.Marshal(sample(c))
	if err != nil {
		t.Fatal(err)
	}
	if state == `{}` { // the command is already in progress
		send(c.Type, "first", string(payload))
	}
	return send(c.Type, "c", string(payload))
}

// TestGuides_ListExactlyTheErrorsThatOccur tries every command in every state.
func TestGuides_ListExactlyTheErrorsThatOccur(t *testing.T) {
	const full = "rayban_display"
	for _, c := range commandGuides() {
		came := map[string]bool{}
		for _, state := range []string{"", `{}`, `{"link":"lost"}`, `{"hinge":"folded"}`, `{"thermal":"critical"}`,
			`{"worn":false}`, `{"call":true}`,
			`{"permissions":{"camera":"denied","microphone":"denied","speech":"denied"}}`,
			`{"disabled":["camera","microphone","speech"]}`} {
			if code := answerTo(t, full, state, c); code != "" {
				came[code] = true
				if !slices.Contains(c.Errors, code) {
					t.Errorf("%s in state %s fails with %s, which its guide does not list", c.Type, state, code)
				}
			}
		}
		for _, model := range []string{"even_g1", "system_audio", "rayban_meta", "nothing"} {
			if code := answerTo(t, model, "", c); code != "" {
				came[code] = true
				if !slices.Contains(c.Errors, code) {
					t.Errorf("%s on %s fails with %s, which its guide does not list", c.Type, model, code)
				}
			}
		}
		for _, code := range c.Errors {
			switch code {
			case glasses.CodeBadPayload, glasses.CodeTimeout, glasses.CodePlatform:
				// bad_payload is compared with the parser; the others can be injected for any command.
				continue
			}
			if !came[code] {
				t.Errorf("%s: its guide lists %s, which no state caused", c.Type, code)
			}
		}
	}
}

// TestGuides_FaultsCanBeSet compares the faults of injectFault with those that the glasses accept.
func TestGuides_FaultsCanBeSet(t *testing.T) {
	for _, code := range glasses.CommandCodes() {
		payload := json.RawMessage(fmt.Sprintf(`{"code":%q,"times":3}`, code))
		if _, err := glasses.ParseControl(glasses.SimFault, payload); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if !slices.ContainsFunc(errorGuides(), func(e errorGuide) bool { return e.Code == code }) {
			t.Errorf("%s is in no guide", code)
		}
	}
}

// TestGuides_EventsHaveTheirFields compares every event of simulated glasses with the guides.
func TestGuides_EventsHaveTheirFields(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	d := device.New(m, device.Options{})
	heard := map[string]bool{}
	check := func() {
		for _, out := range d.Take() {
			events := eventGuidesOf([]string{out.Frame.Type})
			if out.Ask != nil || out.Frame.Type == glasses.TypeResult {
				continue
			}
			var payload map[string]any
			if len(events) != 1 || json.Unmarshal(out.Frame.Payload, &payload) != nil {
				t.Errorf("%s is in no guide: %s", out.Frame.Type, out.Frame.Payload)
				continue
			}
			heard[out.Frame.Type] = true
			if (out.Body != nil) != events[0].Binary {
				t.Errorf("%s: its guide says binary %v, unlike the frame", out.Frame.Type, events[0].Binary)
			}
			for _, f := range events[0].Payload {
				if _, there := payload[f.Name]; f.Required && !there {
					t.Errorf("%s was sent without the required field %s: %s", out.Frame.Type, f.Name, out.Frame.Payload)
				}
			}
			for name := range payload {
				if !slices.Contains(fieldNames(events[0].Payload), name) {
					t.Errorf("%s has the field %s, which its guide does not list", out.Frame.Type, name)
				}
			}
		}
	}
	for i, f := range [][2]string{
		{glasses.TypeTranscriptionStart, `{}`}, {glasses.TypeAudioStart, `{}`}, {glasses.TypeMotionStart, `{}`},
		{glasses.TypeSpeechSay, `{"text":"Hello"}`},
		{glasses.TypePlaybackStart, `{}`},
		{glasses.SimInput, `{"kind":"tap","x":1,"y":1}`},
		{glasses.SimInput, `{"kind":"navigate","direction":"down"}`},
		{glasses.SimTranscript, `{"text":"hello","final":true}`},
		{glasses.SimFault, `{"code":"busy","command":"sound.play"}`},
		{glasses.SimState, `{"battery":{"level":9,"charging":false},"worn":false,"hinge":"folded","thermal":"warm",` +
			`"link":"lossy","route":"phone","call":true}`},
		{glasses.SimState, `{"permissions":{"camera":"denied"},"disabled":["speech"]}`},
		{glasses.SimDevice, `{"deviceModel":"even_g1"}`},
	} {
		d.Handle(int64(i), glasses.Frame{V: glasses.Version, Type: f[0], ID: fmt.Sprint("a-", i),
			Payload: json.RawMessage(f[1])}, nil)
		check()
		if i == 3 {
			d.Tick(2000) // the streams run and the sentence ends
			check()
		}
	}
	for _, e := range eventGuides() {
		switch e.Type {
		case glasses.TypeMedia, glasses.TypeAudioChunk, glasses.TypeVideoFrame: // need a camera and a microphone
		default:
			if !heard[e.Type] {
				t.Errorf("the event %s never occurred", e.Type)
			}
		}
	}
}

// The guide of display contains the size of each text style on each model.
func TestGuides_NameTextSizes(t *testing.T) {
	for _, m := range glasses.Models() {
		if m.Panel == nil {
			continue
		}
		detail, _ := detailOf(m, guide.Display)
		for _, style := range glasses.Styles() {
			if !strings.Contains(detail, style+" ") {
				t.Errorf("%s does not list %s: %s", m.ID, style, detail)
			}
		}
	}
}
