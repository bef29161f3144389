package scenario

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const whole = `{"scenario":1,"name":"all of it","deviceModel":"even_g1","clock":"virtual","fixturesDir":"fix",
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
		t.Errorf("not the same after a round:\n%s\n%s", one, two)
	}
	for i := range s.Steps {
		if s.Steps[i].Act() == "" {
			t.Errorf("step %d is nothing", i)
		}
	}
}

// Every refusal names the place, so that whoever wrote the file finds it.
func TestRefusals(t *testing.T) {
	step := func(s string) string { return `{"scenario":1,"name":"x","steps":[{"advance":1},` + s + `]}` }
	for _, c := range []struct{ in, path, says string }{
		{`{`, "", "not JSON"},
		{`{"scenario":1,"name":"x","steps":[]} {}`, "", "after the end"},
		{`[]`, "", "array"},
		{`{"scenario":2,"name":"x","steps":[]}`, "scenario", "this version supports 1"},
		{`{"scenario":1,"steps":[]}`, "name", "1 to 100"},
		{`{"scenario":1,"name":"x","stepps":[]}`, "stepps", "unknown field"},
		{`{"scenario":1,"name":"x","name":"y","steps":[]}`, "name", "twice"},
		{`{"scenario":1,"name":"x","clock":"lunar","steps":[]}`, "clock", "virtual or real"},
		{`{"scenario":1,"name":"x","deviceModel":"monocle","steps":[]}`, "deviceModel", "known device model"},
		{`{"scenario":1,"name":"x","app":{"command":[]},"steps":[]}`, "app.command", "program"},
		{`{"scenario":1,"name":"x","app":{"comand":["a"]},"steps":[]}`, "app.comand", "command, dir, env"},
		{step(`{}`), "steps[1]", "exactly one"},
		{step(`{"note":"only"}`), "steps[1]", "exactly one"},
		{step(`{"advance":1,"device":"even_g1"}`), "steps[1]", "exactly one"},
		{step(`{"advance":-1}`), "steps[1].advance", "0 to"},
		{step(`{"input":{"kind":"lick"}}`), "steps[1].input", "kind is not one of"},
		{step(`{"input":{"target":"next","side":"left"}}`), "steps[1].input", "target without kind"},
		{step(`{"input":{"kin":"tap"}}`), "steps[1].input.kin", "unknown field"},
		{step(`{"state":{"battery":{"level":101}}}`), "steps[1].state", "0 to 100"},
		{step(`{"device":"monocle"}`), "steps[1].device", "known device model"},
		{step(`{"expect":{}}`), "steps[1].expect.type", "type of a row"},
		{step(`{"expect":{"type":"a","kind":"reply"}}`), "steps[1].expect.kind", "request, result or event"},
		{step(`{"expect":{"type":"a","payload":[]}}`), "steps[1].expect.payload", "object"},
		{step(`{"expect":{"type":"a","withinMs":600001}}`), "steps[1].expect.withinMs", "600000"},
		{step(`{"expectDisplay":{}}`), "steps[1].expectDisplay", "text, absent, images, focus or picture"},
		{step(`{"expectDisplay":{"picture":"abc"}}`), "steps[1].expectDisplay.picture", "SHA-256"},
		{step(`{"picture":"../x"}`), "steps[1].picture", "no path"},
		{step(`{"fault":{"command":"display.show"}}`), "steps[1].fault", "needs code"},
		{`{"scenario":1,"name":"x","steps":[],"recorded":{"clock":"virtual","pictures":[{"at":0,"sha256":"x"}],"trace":[]}}`, "recorded.pictures[0].sha256", "SHA-256"},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), "", ""},
	} {
		_, err := Parse([]byte(c.in))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if c.says != "" && e.Path != c.path || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s:\n %q at %q; want %q at %q", c.in, e.Message, e.Path, c.says, c.path)
		}
	}
	if _, err := Parse([]byte(step(`{"advance":"soon"}`))); err == nil || !strings.Contains(err.Error(), "advance") {
		t.Errorf("a string for a number: %v", err)
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
			t.Fatalf("what was read and written cannot be read: %v\n%s", err, out)
		}
	})
}
