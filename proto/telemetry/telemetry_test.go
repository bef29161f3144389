package telemetry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const someID = "01939d3a-6a53-7c4e-8f00-0123456789ab"

func event(name, fields string) Event {
	e := Event{ID: someID, At: "2026-01-02T03:04:05.678Z", Name: name}
	if fields != "" {
		if err := json.Unmarshal([]byte(fields), &e.Fields); err != nil {
			panic(err)
		}
	}
	return e
}

func TestRecord(t *testing.T) {
	for _, c := range []struct {
		name, fields string
		wrong        string // part of the error; empty if the event is valid
	}{
		{ToolCalled, `{"tool":"whoAmI","outcome":"ok","durationMs":12,"client":"claude-code","clientVersion":"2.1.0 (beta)"}`, "clientVersion: not a version"},
		{ToolCalled, `{"tool":"whoAmI","outcome":"ok","durationMs":12,"client":"claude-code","clientVersion":"2.1.0"}`, ""},
		{ToolCalled, `{"durationMs":0}`, ""},
		{ToolCalled, `{"durationMs":9007199254740992}`, ""},
		{ToolCalled, `{"durationMs":9007199254740993}`, "not an integer"},
		{ToolCalled, `{"durationMs":-1}`, "not an integer"},
		{ToolCalled, `{"durationMs":1.5}`, "not an integer"},
		{ToolCalled, `{"durationMs":1e3}`, "not an integer"},
		{ToolCalled, `{"durationMs":"1"}`, "not an integer"},
		{ToolCalled, `{"durationMs":null}`, "not an integer"},
		{ToolCalled, `{"tool":7}`, "not a word"},
		{ToolCalled, `{"tool":null}`, "not a word"},
		{ToolCalled, `{"tool":""}`, "not a word"},
		{ToolCalled, `{"tool":["x"]}`, "not a word"},
		{ToolCalled, `{"tool":"` + strings.Repeat("x", MaxWord) + `"}`, ""},
		{ToolCalled, `{"tool":"` + strings.Repeat("x", MaxWord+1) + `"}`, "not a word"},
		{ToolCalled, `{"tool":"\u0061\u002f"}`, ""},
		{ToolCalled, `{"tool":"ümlaut"}`, "not a word"},
		{ToolCalled, `{"tool":"a\nb"}`, "not a word"},
		{ToolCalled, `{"path":"/home/ada"}`, `no field "path"`},
		{ToolCalled, `{"Tool":"x"}`, `no field "Tool"`},
		{Linked, "", ""},
		{Linked, `{}`, ""},
		{Linked, `{"account":"x"}`, "no field"},
		{"keyboard.typed", "", `unknown event "keyboard.typed"`},
		{"", "", "unknown event"},
	} {
		_, err := event(c.name, c.fields).Record()
		if said := fmt.Sprint(err); (err == nil) != (c.wrong == "") || !strings.Contains(said, c.wrong) &&
			c.wrong != "" {
			t.Errorf("%s %s: got error %v, want %q", c.name, c.fields, err, c.wrong)
		}
	}
}

func TestEveryEventOfTheListPasses(t *testing.T) {
	for _, d := range List() {
		fields := map[string]json.RawMessage{}
		for _, f := range d.Fields {
			fields[f.Name] = json.RawMessage(map[Kind]string{Word: `"a B9._+/@-"`, Name: `"claude-code"`,
				Version: `"1.2.3"`, Number: "42"}[f.Kind])
		}
		e := Event{ID: someID, At: "2026-01-02T03:04:05.678Z", Name: d.Name, Fields: fields}
		r, err := e.Record()
		if err != nil || d.When == "" || r.IDText() != someID {
			t.Errorf("record of %s: got %+v, %v, want the id %s", d.Name, r, err, someID)
		}
	}
}

func TestRecordRefuses(t *testing.T) {
	for what, e := range map[string]Event{
		"no id": {At: "2026-01-02T03:04:05.678Z", Name: Linked},
		"version 4": {ID: "9b2f1c1e-1f7e-4a3b-8b1d-0123456789ab", At: "2026-01-02T03:04:05.678Z",
			Name: Linked},
		"upper case": {ID: strings.ToUpper(someID), At: "2026-01-02T03:04:05.678Z", Name: Linked},
		"braces":     {ID: "{" + someID + "}", At: "2026-01-02T03:04:05.678Z", Name: Linked},
		"another variant": {ID: "01939d3a-6a53-7c4e-cf00-0123456789ab", At: "2026-01-02T03:04:05.678Z",
			Name: Linked},
		"a dash in place of a digit": {ID: "01939d3a-6a53-7c4e-8f00-012345678-ab", At: "2026-01-02T03:04:05.678Z",
			Name: Linked},
		"no time":              {ID: someID, Name: Linked},
		"the 30th of February": {ID: someID, At: "2026-02-30T03:04:05.678Z", Name: Linked},
		"hour 24":              {ID: someID, At: "2026-01-02T24:04:05.678Z", Name: Linked},
		"another zone":         {ID: someID, At: "2026-01-02T03:04:05.67+1", Name: Linked},
		"seconds":              {ID: someID, At: "2026-01-02T03:04:05Z", Name: Linked},
	} {
		if r, err := e.Record(); err == nil {
			t.Errorf("an event with %s was accepted: %+v", what, r)
		}
	}
}

// A client name or version that contains a credential is neither sent nor accepted.
func TestRecord_NamesAndVersions(t *testing.T) {
	token := "aGVsbG8td29ybGQtdGhpcy1pcy1hLXRlc3QtdG9rZW4wMDEyMzQ"
	for _, c := range []struct {
		field string
		good  bool
		texts []string
	}{
		{"client", true, []string{"claude-code", "Visual Studio Code", "codex-mcp-client", "Gemini CLI",
			"cursor-vscode", "my_agent", "service-mcp", "other", "a", "VSCodeInsiders", "agent.v2"}},
		{"client", false, []string{"svc_" + token[:30], "sdc_" + token[:30], token[:40], "WDJB-MJHT", "WDJBMJHT",
			"ada@example.org", "home/ada", "1Password",
			strings.Repeat("x", 41), "sk-Ab3dE5gH7jK9mN1pQ", "3f2c1c1e-6f0e-4a53-9a3e-0b3f6f1d2c4b", "a0123456789"}},
		{"clientVersion", true, []string{"2.1.0", "v1.2.3-beta.1", "1.0.0+abcdef012345",
			"v0.0.0-20260102030405-abcdefabcdef", "dev", "unknown", "other", "1", "20260102"}},
		{"clientVersion", false, []string{"svc_" + token[:30], token[:40], "1" + token[:30], "WDJB-MJHT", "beta",
			"1.0 for ada", strings.Repeat("1.", 30), "v"}},
		{"tool", false, []string{"svc_" + token[:40], "x sst_" + token[:30],
			"0123456789abcdef0123456789abcdef0123456789abcdef"}},
	} {
		for _, text := range c.texts {
			fields := fmt.Sprintf(`{%q:%q}`, c.field, text)
			if _, err := event(ToolCalled, fields).Record(); (err == nil) != c.good {
				t.Errorf("record with fields %s: got %v, want valid %v", fields, err, c.good)
			}
		}
	}
}
