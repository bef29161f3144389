package glasses_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestCommandsAreChecked(t *testing.T) {
	long := strings.Repeat("x", 2001)
	for _, test := range []struct{ typ, payload, mention string }{
		{"display.show", `{"tree":{"type":"text","text":"x"}}`, ""},
		{"display.show", `{"tree":{"type":"column","children":[{"type":"text","gap":-1}]}}`, "tree.children[0].gap"},
		{"display.show", `{"tree":{"type":"text","colour":"red"}}`, "colour"},
		{"display.show", `{"tree":{"type":"image","data":"***"}}`, "data"},
		{"display.show", `{"tree":{"type":"text","text":5}}`, "tree.text"},
		{"display.show", `{"tree":{"type":"list","overflow":"spill"}}`, "overflow"},
		{"display.show", `{"tree":{"type":"text","text":"x","language":"zh-Hant-HK","direction":"rtl"}}`, ""},
		{"display.show", `{"tree":{"type":"text","direction":"down"}}`, "tree.direction"},
		{"display.show", `{"tree":{"type":"column","children":[{"type":"button","language":"e n"}]}}`,
			"tree.children[0].language"},
		{"speech.say", `{"text":"hi"}`, ""}, {"speech.say", `{"text":""}`, "text"},
		{"speech.say", `{"text":"` + long + `"}`, "2000"},
		{"speech.say", `{"text":"hi","language":"e n"}`, "language"},
		{"sound.play", `{"sound":"boom"}`, "sound"}, {"sound.play", `{"sound":"chime"}`, ""},
		{"audio.start", `{}`, ""}, {"audio.start", `{"sampleRate":44100}`, "sampleRate"},
		{"video.start", `{"fps":31}`, "fps"}, {"video.start", `{"width":63}`, "width"},
		{"motion.start", `{"hz":101}`, "hz"}, {"camera.photo", `{"width":5000}`, "width"}, {"camera.photo", `{}`, ""},
		{"camera.video", `{}`, "durationMs"}, {"camera.video", `{"durationMs":30001}`, "durationMs"},
		{"phrases.announce", `{"phrases":[""]}`, "phrase"}, {"phrases.announce", `{"phrases":["go"]}`, ""},
		{"clock.sleep", `{"ms":600001}`, "ms"}, {"clock.sleep", `{"ms":-1}`, "ms"}, {"clock.sleep", `{"ms":0}`, ""},
		{"clock.cancel", `{}`, "id"}, {"clock.cancel", `{"id":"two words"}`, "id"}, {"clock.cancel", `{"id":"a-1"}`, ""},
		{"transcription.start", `{"language":"de-CH"}`, ""}, {"display.clear", `{}`, ""},
		{"transcription.start", `{"language":"en_US"}`, "language"},
		{"speech.say", `{"text":"x","language":"ja-"}`, "language"},
	} {
		_, err := glasses.ParseCommand(test.typ, []byte(test.payload))
		var refusal *glasses.Error
		switch {
		case test.mention == "" && err != nil:
			t.Errorf("%s %s: %v", test.typ, test.payload, err)
		case test.mention != "" && (!errors.As(err, &refusal) || refusal.Code != glasses.CodeBadPayload ||
			!strings.Contains(err.Error(), test.mention)):
			t.Errorf("%s %s: %v", test.typ, test.payload, err)
		}
	}
	var refusal *glasses.Error
	if _, err := glasses.ParseCommand("display.dance", []byte("{}")); !errors.As(err, &refusal) ||
		refusal.Code != glasses.CodeUnsupported {
		t.Errorf("an unknown command: %v, want unsupported", err)
	}
}

func TestControlFramesAreChecked(t *testing.T) {
	for _, test := range []struct{ typ, payload, mention string }{
		{"sim.input", `{"kind":"tap","x":1,"y":2}`, ""}, {"sim.input", `{"kind":"jump"}`, "kind"},
		{"sim.input", `{"kind":"swipe"}`, "direction"},
		{"sim.input", `{"kind":"tap","side":"top"}`, "side"}, {"sim.transcript", `{"text":"go","confidence":101}`,
			"confidence"},
		{"sim.transcript", `{}`, "text"}, {"sim.state", `{}`, ""}, {"sim.state", `{"battery":{"level":101}}`, "level"},
		{"sim.state", `{"hinge":"ajar"}`, "hinge"}, {"sim.state", `{"permissions":{"nose":"granted"}}`, "permissions"},
		{"sim.state", `{"disabled":["nose"]}`, "disabled"}, {"sim.fault", `{}`, "fault"},
		{"sim.fault", `{"command":"x","code":"busy"}`, "command"},
		{"sim.fault", `{"code":"sad"}`, "code"}, {"sim.fault", `{"latencyMs":60001}`, "latencyMs"},
		{"sim.fault", `{"clear":true}`, ""},
		{"sim.device", `{"deviceModel":"x"}`, "deviceModel"}, {"sim.device", `{"deviceModel":"even_g1"}`, ""},
		{"sim.advance", `{"toMs":-1}`, "toMs"}, {"sim.motion", `{"az":900}`, ""}, {"sim.camera", `{}`, ""},
	} {
		_, err := glasses.ParseControl(test.typ, []byte(test.payload))
		if (err == nil) != (test.mention == "") || err != nil && !strings.Contains(err.Error(), test.mention) {
			t.Errorf("%s %s: %v", test.typ, test.payload, err)
		}
	}
}

func TestWhoMaySendWhat(t *testing.T) {
	for _, test := range []struct {
		typ            string
		app, fromGlass bool
	}{
		{"display.show", true, false}, {"barrier", true, false}, {"result", false, true},
		{"input", false, true}, {"media", false, true},
		{"sim.state", false, false}, {"welcome", false, false}, {"row", false, false},
		{"role", false, false}, {"com.example.x", true, true},
	} {
		if got := glasses.MaySend(glasses.SenderApp, test.typ) == nil; got != test.app {
			t.Errorf("an app may send %s: got %v, want %v", test.typ, got, test.app)
		}
		if got := glasses.MaySend(glasses.SenderGlasses, test.typ) == nil; got != test.fromGlass {
			t.Errorf("glasses may send %s: got %v, want %v", test.typ, got, test.fromGlass)
		}
	}
}

func TestEveryCommandHasAChip(t *testing.T) {
	for _, c := range glasses.Commands() {
		if !glasses.IsCommand(c.Type) || glasses.KindOf(c.Type) != glasses.KindRequest ||
			glasses.ChipOf(c.Type) != c.Chip {
			t.Errorf("%+v", c)
		}
	}
}

func TestBinaryFrames(t *testing.T) {
	f := glasses.Frame{Type: "video.frame", ID: "g-1", Payload: json.RawMessage(`{"width":2}`)}
	data, err := glasses.EncodeBinary(f, []byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	got, body, err := glasses.ParseBinary(data)
	if err != nil || got.Type != f.Type || !bytes.Equal(body, []byte{1, 2, 3}) {
		t.Errorf("%+v %v %v", got, body, err)
	}
	for name, bad := range map[string][]byte{"empty": {}, "one byte": {0}, "long header": {0xff, 0xff, '{'},
		"no header": {0, 0}, "not JSON": {0, 1, 'x'}} {
		if _, _, err := glasses.ParseBinary(bad); err == nil {
			t.Errorf("ParseBinary accepted the case %s", name)
		}
	}
	if _, err := glasses.EncodeBinary(f, make([]byte, glasses.MaxBinary)); err == nil {
		t.Error("EncodeBinary accepted a frame over the limit")
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, c := range glasses.Commands() {
		f.Add(c.Type, []byte(`{"text":"x","ms":1,"tree":{"type":"text"},"sound":"chime","durationMs":500}`))
	}
	f.Add("sim.state", []byte(`{"battery":{"level":1}}`))
	f.Fuzz(func(t *testing.T, typ string, payload []byte) {
		for _, read := range []func(string, []byte) (any, error){glasses.ParseCommand, glasses.ParseControl} {
			_, err := read(typ, payload)
			var refusal *glasses.Error
			if err != nil && (!errors.As(err, &refusal) || refusal.Code == "" || refusal.Message == "") {
				t.Fatalf("%s %q: %v", typ, payload, err)
			}
		}
	})
}

func FuzzParseBinary(f *testing.F) {
	f.Add([]byte("\x00\x29{\"v\":1,\"type\":\"media\",\"id\":\"a\",\"at\":1}xyz"))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, body, err := glasses.ParseBinary(data)
		if err != nil {
			return
		}
		again, err := glasses.EncodeBinary(frame, body)
		if err != nil {
			// After re-encoding, the header may exceed the limit.
			return
		}
		if _, b, err := glasses.ParseBinary(again); err != nil || !bytes.Equal(b, body) {
			t.Fatalf("%q was re-encoded as %q: %v", data, again, err)
		}
	})
}
