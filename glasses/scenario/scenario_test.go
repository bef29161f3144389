package scenario

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

const whole = `{"scenario":1,"name":"all of it","deviceModel":"even_g1","clock":"virtual","fixturesDir":"fix",
"fonts":[{"name":"Noto","sha256":"0000000000000000000000000000000000000000000000000000000000000000"}],
"app":{"command":["node","app.js"],"dir":"..","env":{"A":"b"}},
"steps":[
 {"note":"they say hello","transcript":{"text":"hello","final":true}},
 {"input":{"kind":"swipe","direction":"up"}},
 {"input":{"target":"next"}},
 {"state":{"battery":{"level":5,"charging":true},"permissions":{"camera":"denied"},"disabled":["speech"]}},
 {"motion":{"ax":1}},
 {"fault":{"command":"display.show","code":"busy","times":2}},
 {"device":"rayban_display"},
 {"camera":"a.png"},{"camera":""},{"microphone":"a.wav"},
 {"advance":100},
 {"expect":{"type":"display.show","kind":"request","payload":{"tree":{"anything":[{"goes":"here"}]}},"withinMs":0}},
 {"expect":{"type":"com.example.score","absent":true}},
 {"expectDisplay":{"text":["a"],"focus":"","picture":"0000000000000000000000000000000000000000000000000000000000000000"}},
 {"picture":"end"}],
"recorded":{"clock":"real","durationMs":1,"trace":[{"at":0,"type":"display.clear","payload":{}}],"pictures":[],
 "media":["0000000000000000000000000000000000000000000000000000000000000000.jpg"]}}`

func TestParseAndEncode(t *testing.T) {
	s, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	one, _ := s.Encode()
	two, _ := again.Encode()
	if string(one) != string(two) || !reflect.DeepEqual(len(s.Steps), len(again.Steps)) {
		t.Errorf("encoding and parsing changed the scenario:\n%s\n%s", one, two)
	}
	for i := range s.Steps {
		if s.Steps[i].Act() == "" {
			t.Errorf("step %d has no action", i)
		}
	}
}

// Every error names the place, the expected value and an example, so that the author can fix the file.
func TestRefusals(t *testing.T) {
	step := func(s string) string { return `{"scenario":1,"name":"x","steps":[{"advance":1},` + s + `]}` }
	tap := `, e.g. {"input": {"kind": "tap", "x": 300, "y": 240}}`
	kinds := "exactly one of input, transcript, state, motion, fault, device, camera, microphone, advance, expect, " +
		"expectDisplay, expectNothingClipped, expectMemory, picture"
	file := `, e.g. {"scenario": 2, "name": "tap counts", "steps": [{"advance": 1000}]}`
	for _, c := range []struct{ in, says string }{
		{`{`, "it is not JSON: it ends too early"},
		{`{"scenario":1,"name":"x","steps":[]} {}`, "unexpected data after the end of the JSON"},
		{`[]`, "it is a list; expected an object with $schema, scenario, name, deviceModel, clock, app, fixturesDir, " +
			"assistant, memory, fonts, steps, recorded" + file},
		{`{"scenario":3,"name":"x","steps":[]}`, "scenario: it is 3; expected an integer from 1 to 2" + file},
		{`{"scenario":1,"steps":[]}`, "name: it is missing; expected a name of 1 to 100 printable characters" + file},
		{`{"scenario":1,"name":"x","name":"y","steps":[]}`, "name: it occurs twice"},
		{`{"scenario":1,"name":"x","clock":"lunar","steps":[]}`,
			`clock: it is "lunar"; expected a string, one of virtual, real` + file},
		{`{"scenario":1,"name":"x","app":{"command":[]},"steps":[]}`,
			`app.command: it is empty; expected the program to start, e.g. {"command": ["node", "app.js"]}`},
		{`{"scenario":1,"name":"x","app":{"comand":["a"]},"steps":[]}`,
			`app.comand: unknown field; expected one of command, dir, env, e.g. {"command": ["node", "app.js"]}`},
		{step(`{}`), `steps[1]: it has none of them; expected ` + kinds + `, e.g. {"advance": 1000}`},
		{step(`null`), `steps[1]: it is null; expected an object with note, input, transcript, state, motion, fault, device, ` +
			`camera, microphone, advance, expect, expectDisplay, expectNothingClipped, expectMemory, picture, e.g. ` +
			`{"advance": 1000}`},
		{step(`{"advance":1,"device":"even_g1"}`),
			`steps[1]: it has device and advance; expected ` + kinds + `, e.g. {"advance": 1000}`},
		{step(`{"advance":"soon"}`),
			`steps[1].advance: it is the string "soon"; expected an integer from 0 to 86400000, e.g. {"advance": 1000}`},
		{step(`{"advance":1.5}`), "steps[1].advance: it is 1.5, which is not an integer; expected an integer from 0 to " +
			`86400000, e.g. {"advance": 1000}`},
		{step(`{"input":{"kind":"lick"}}`), `steps[1].input.kind: it is "lick"; expected a string, one of tap, doubleTap, ` +
			`hold, swipe, select, navigate, back, capture` + tap},
		{step(`{"input":{"kin":"tap"}}`),
			`steps[1].input.kin: unknown field; expected one of kind, x, y, direction, side, target` + tap},
		{step(`{"input":{"kind":"tap","target":"next"}}`),
			`steps[1].input: it has kind and target; expected exactly one of kind, target` + tap},
		{step(`{"input":{"target":"next","side":"left"}}`), `steps[1].input: sim.input payload: target without kind ` +
			`must not be combined with x, y, direction or side: the glasses choose the inputs` + tap},
		{step(`{"state":{"battery":{"level":101}}}`), `steps[1].state.battery.level: it is 101; expected an integer from 0 ` +
			`to 100, e.g. {"state": {"battery": {"level": 5, "charging": false}}}`},
		{step(`{"state":{"permissions":{"nose":"denied"}}}`), `steps[1].state.permissions.nose: unknown name; expected one ` +
			`of camera, microphone, speech, e.g. {"state": {"battery": {"level": 5, "charging": false}}}`},
		{step(`{"device":"monocle"}`), `steps[1].device: it is "monocle"; expected a string, one of ` +
			strings.Join(glasses.ModelIDs(), ", ") + `, e.g. {"device": "even_g1"}`},
		{step(`{"expect":{"type":"a","payload":[]}}`),
			`steps[1].expect.payload: it is a list; expected an object, e.g. {"expect": {"type": "display.show", "withinMs": 1000}}`},
		{step(`{"expectDisplay":{}}`), `steps[1].expectDisplay: it has none of them; expected at least one of text, absent, ` +
			`images, progress, focus, picture, e.g. {"expectDisplay": {"text": ["Milk"], "absent": ["Eggs"]}}`},
		{step(`{"expectDisplay":{"absent":"Milk"}}`), `steps[1].expectDisplay.absent: it is the string "Milk"; expected a ` +
			`list, e.g. {"expectDisplay": {"text": ["Milk"], "absent": ["Eggs"]}}`},
		{step(`{"expectNothingClipped":{"models":["audio_only"]}}`), `steps[1].expectNothingClipped.models[0]: it is ` +
			`"audio_only"; expected a string, one of ` + strings.Join(panelModels(), ", ") +
			`, e.g. {"expectNothingClipped": {"models": ["even_g1"]}}`},
		{step(`{"expectMemory":{"empty":false}}`), `steps[1].expectMemory: it expects nothing, e.g. ` +
			`{"expectMemory": {"text": ["Name: Ann"]}}`},
		{step(`{"expectMemory":{"text":[""]}}`), `steps[1].expectMemory.text[0]: it has 0 characters; expected a string, e.g. ` +
			`{"expectMemory": {"text": ["Name: Ann"]}}`},
		{`{"scenario":1,"name":"x","memory":"` + strings.Repeat("ä", 2049) + `","steps":[]}`,
			`memory: it is 4098 bytes long, over the limit of 4096; expected a profile, e.g. "Name: Ann"`},
		{step(`{"picture":"../x"}`), `steps[1].picture: it is "../x"; expected a name of 1 to 100 printable characters ` +
			`without a path or a leading dot, e.g. {"picture": "end"}`},
		{step(`{"fault":{"command":"display.show"}}`), `steps[1].fault: it has none of them; expected at least one of code, ` +
			`latencyMs, clear, dropApp, e.g. {"fault": {"command": "camera.photo", "code": "busy"}}`},
	} {
		_, err := Parse([]byte(c.in))
		var e *Error
		if !errors.As(err, &e) || e.Error() != c.says {
			t.Errorf("%s:\n got  %v\n want %s", c.in, err, c.says)
		}
	}
}

// Every example in the table is itself valid.
func TestKinds_ExamplesParse(t *testing.T) {
	for _, k := range Kinds() {
		steps, err := ParseSteps([]byte("[" + k.Example + "]"))
		if err != nil || steps[0].Act() != k.Name {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"scenario":1,"name":"x","steps":[{"advance":1e999}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		out, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(out); err != nil && len(out) <= MaxFile {
			t.Fatalf("the encoded scenario cannot be parsed: %v\n%s", err, out)
		}
	})
}

func TestParse_SkipsByteOrderMark(t *testing.T) {
	if _, err := Parse([]byte("\ufeff{\"scenario\":1,\"name\":\"x\",\"steps\":[{\"advance\":1}]}")); err != nil {
		t.Error(err)
	}
	if _, err := Parse([]byte("\xff\xfe{\x00}\x00")); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("got %v, want an error that names UTF-16", err)
	}
}

func TestEncode_DoesNotIndentWhatWouldBecomeHuge(t *testing.T) {
	deep := json.RawMessage(`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`)
	s := Scenario{Name: "x", Recorded: &Recorded{Trace: []Request{{Type: "note", Payload: deep}}}}
	data, err := s.Encode()
	if err != nil || len(data) > MaxFile || !json.Valid(data) {
		t.Errorf("encoded to %d bytes, %v", len(data), err)
	}
}
