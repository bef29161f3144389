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
