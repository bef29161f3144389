package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/device"
)

// answerTo brings glasses into a state and gives the code that a command is answered with; empty for ok or none yet.
func answerTo(t *testing.T, model string, state string, c wordCommand) string {
	t.Helper()
	m, ok := glasses.Model(model)
	if !ok {
		m = glasses.DeviceModel{ID: model} // glasses that have nothing
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
	if state == `{}` { // the same thing runs already
		send(c.Type, "first", string(payload))
	}
	return send(c.Type, "c", string(payload))
}

// TestGuidesTellTheErrorsThatComeAndNoOthers provokes every state on every command.
func TestGuidesTellTheErrorsThatComeAndNoOthers(t *testing.T) {
	const full = "rayban_display"
	for _, c := range wordCommands() {
		came := map[string]bool{}
		for _, state := range []string{"", `{}`, `{"link":"lost"}`, `{"hinge":"folded"}`, `{"thermal":"critical"}`, `{"worn":false}`, `{"call":true}`,
			`{"permissions":{"camera":"denied","microphone":"denied","speech":"denied"}}`, `{"disabled":["camera","microphone","speech"]}`} {
			if code := answerTo(t, full, state, c); code != "" {
				came[code] = true
				if !slices.Contains(c.Errors, code) {
					t.Errorf("%s in state %s is answered %s, which its guide does not tell", c.Type, state, code)
				}
			}
		}
		for _, model := range []string{"even_g1", "system_audio", "rayban_meta", "nothing"} {
			if code := answerTo(t, model, "", c); code != "" {
				came[code] = true
				if !slices.Contains(c.Errors, code) {
					t.Errorf("%s on %s is answered %s, which its guide does not tell", c.Type, model, code)
				}
			}
		}
		for _, code := range c.Errors {
			switch code {
			case glasses.CodeBadPayload, glasses.CodeTimeout, glasses.CodePlatform:
				continue // the first is held against the parser, faults can be set to the others for any command
			}
			if !came[code] {
				t.Errorf("%s: its guide tells of %s, which no state brought", c.Type, code)
			}
		}
	}
}

// TestFaultsOfGuidesCanBeSet holds what injectFault offers against the glasses.
func TestFaultsOfGuidesCanBeSet(t *testing.T) {
	for _, code := range glasses.CommandCodes() {
		payload := json.RawMessage(fmt.Sprintf(`{"code":%q,"times":3}`, code))
		if _, err := glasses.ParseControl(glasses.SimFault, payload); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if len(wordErrorsOf([]string{code})) != 1 {
			t.Errorf("%s stands in no guide", code)
		}
	}
}

// TestEventsHaveTheFieldsOfTheirGuides lets simulated glasses say all they can and holds it against the guides.
func TestEventsHaveTheFieldsOfTheirGuides(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	d := device.New(m, device.Options{})
	heard := map[string]bool{}
	check := func() {
		for _, out := range d.Take() {
			events := wordEventsOf([]string{out.Frame.Type})
			if out.Ask != nil || out.Frame.Type == glasses.TypeResult {
				continue
			}
			var payload map[string]any
			if len(events) != 1 || json.Unmarshal(out.Frame.Payload, &payload) != nil {
				t.Errorf("%s stands in no guide: %s", out.Frame.Type, out.Frame.Payload)
				continue
			}
			heard[out.Frame.Type] = true
			if (out.Body != nil) != events[0].Binary {
				t.Errorf("%s: its guide says binary %v", out.Frame.Type, events[0].Binary)
			}
			for _, f := range events[0].Payload {
				if _, there := payload[f.Name]; f.Required && !there {
					t.Errorf("%s came without %s: %s", out.Frame.Type, f.Name, out.Frame.Payload)
				}
			}
			for name := range payload {
				if !slices.Contains(fieldNames(events[0].Payload), name) {
					t.Errorf("%s came with %s, which its guide does not tell", out.Frame.Type, name)
				}
			}
		}
	}
	for i, f := range [][2]string{
		{glasses.TypeTranscriptionStart, `{}`}, {glasses.TypeAudioStart, `{}`}, {glasses.TypeMotionStart, `{}`}, {glasses.TypeSpeechSay, `{"text":"Hello"}`},
		{glasses.SimInput, `{"kind":"tap","x":1,"y":1}`}, {glasses.SimInput, `{"kind":"navigate","direction":"down"}`}, {glasses.SimTranscript, `{"text":"hello","final":true}`},
		{glasses.SimFault, `{"code":"busy","command":"sound.play"}`},
		{glasses.SimState, `{"battery":{"level":9,"charging":false},"worn":false,"hinge":"folded","thermal":"warm","link":"lossy","route":"phone","call":true}`},
		{glasses.SimState, `{"permissions":{"camera":"denied"},"disabled":["speech"]}`}, {glasses.SimDevice, `{"deviceModel":"even_g1"}`},
	} {
		d.Handle(int64(i), glasses.Frame{V: glasses.Version, Type: f[0], ID: fmt.Sprint("a-", i), Payload: json.RawMessage(f[1])}, nil)
		check()
		if i == 3 {
			d.Tick(2000) // the streams run and the sentence ends
			check()
		}
	}
	for _, e := range wordEvents() {
		switch e.Type {
		case glasses.TypeMedia, glasses.TypeAudioChunk, glasses.TypeVideoFrame: // these need a host that has a camera and a microphone
		default:
			if !heard[e.Type] {
				t.Errorf("nothing was heard of %s", e.Type)
			}
		}
	}
}
