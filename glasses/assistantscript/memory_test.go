package assistantscript

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// remembering is a script that remembers a name.
const remembering = `
  {"when": {"contains": "my name is ann"}, "reply": {"text": "Hello Ann.", "remember": "Name: Ann"}},
  {"when": {"contains": "name", "memory": "name: ann"}, "reply": {"text": "You are Ann."}},
  {"when": {"noMemory": true}, "reply": {"text": "We have not met."}},
  {"when": {"memory": "Tea"}, "reply": {"text": "Tea as always?"}}`

func TestAnswer_DependsOnMemory(t *testing.T) {
	script := parsed(t, `{"rules":[`+remembering+`]}`)
	for _, c := range []struct{ said, memory, text, remember string }{
		{"What is my name?", "", "We have not met.", ""},
		{"What is my NAME?", "Likes tea\nName: Ann", "You are Ann.", ""},
		{"Hello", "Likes TEA", "Tea as always?", ""},
		{"My name is Ann", "Likes tea", "Hello Ann.", "Name: Ann"},
	} {
		r, err := ParseRequest([]byte(asks(c.said)))
		if err != nil {
			t.Fatal(err)
		}
		r.Memory = c.memory
		if a := script.Answer(r); a.Text != c.text || a.Remember != c.remember || a.Failure != nil {
			t.Errorf("%q with memory %q: got %+v, want %q and %q", c.said, c.memory, a, c.text, c.remember)
		}
	}
	r, err := ParseRequest([]byte(asks("Hello")))
	if err != nil {
		t.Fatal(err)
	}
	r.Memory = "Likes coffee"
	if a := script.Answer(r); a.Failure == nil || a.Failure.Code != "script_no_rule" {
		t.Errorf("a profile that no rule matches: got %+v", a)
	}
}

func TestConversation_Remembers(t *testing.T) {
	for memory, want := range map[string]string{"": "We have not met.", "Name: Ann": "You are Ann."} {
		k := newTalk(t, remembering)
		k.o.Memory = memory
		k.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`)
		k.send(userTurn, "What is my name?")
		k.send(`{"type":"response.create"}`)
		if text := k.find("response.output_text.done")["text"]; text != want || len(k.Remembered()) > 0 {
			t.Fatalf("memory %q: said %q, remembered %q; want %q", memory, text, k.Remembered(), want)
		}
		k.send(userTurn, "My name is Ann")
		k.send(`{"type":"response.create"}`)
		if got := k.Remembered(); !slices.Equal(got, []string{"Name: Ann"}) {
			t.Fatalf("remembered %q", got)
		}
	}
}

func TestConversation_ForgetsAnswerThatNeverBegan(t *testing.T) {
	k := newTalk(t, `{"when":{"always":true},"reply":{"text":"Hi","remember":"Said hi","delayMs":500}}`)
	k.send(userTurn, "Hello")
	k.send(`{"type":"response.create"}`)
	k.send(`{"type":"response.cancel"}`)
	if got := k.Remembered(); len(got) > 0 {
		t.Fatalf("remembered %q", got)
	}
}

func TestMerge(t *testing.T) {
	full := strings.Repeat("a", MaxProfile/2) + "\n" + strings.Repeat("b", MaxProfile-MaxProfile/2-1)
	for _, c := range []struct {
		profile string
		lines   []string
		want    string
	}{
		{"", nil, ""},
		{"", []string{"Name: Ann", "Name: Ann", " "}, "Name: Ann"},
		{"Name: Ann\n", []string{"Tea"}, "Name: Ann\nTea"},
		{"Name: Ann\nTea", []string{"Name: Ann"}, "Name: Ann\nTea"},
		{full, nil, full},
		{"Name: Ann\n", nil, "Name: Ann\n"},
		{"\n", []string{""}, "\n"},
		{full, []string{"c"}, full[MaxProfile/2+1:] + "\nc"},
		{"Name: Ann", []string{strings.Repeat("c", MaxLine)}, "Name: Ann\n" + strings.Repeat("c", MaxLine)},
		{"Name: Ann", []string{strings.Repeat("c", MaxProfile)}, "Name: Ann\n" + strings.Repeat("c", MaxLine-3) + "…"},
		{"", []string{"a" + strings.Repeat("€", MaxLine), "a" + strings.Repeat("€", MaxLine)},
			"a" + strings.Repeat("€", 165) + "…"},
	} {
		got := Merge(c.profile, c.lines)
		if got != c.want {
			t.Errorf("Merge(%.20q, %.20q) is %.20q (%d bytes), want %.20q", c.profile, c.lines, got, len(got), c.want)
		}
		if err := CheckProfile(got); err != nil {
			t.Errorf("Merge(%.20q, %.20q) is not a profile: %v", c.profile, c.lines, err)
		}
	}
}

func TestCheckProfile(t *testing.T) {
	for profile, want := range map[string]string{
		"":                                "",
		"Name:\tÄnn\nTea":                 "",
		strings.Repeat("a", MaxProfile):   "",
		strings.Repeat("a", MaxProfile+1): "it is 4097 bytes long, over the limit of 4096",
		"a\rb":                            "control character U+000D",
		"a\x7f":                           "control character U+007F",
		"a\u0085b":                        "control character U+0085",
		"a\u2028b":                        "control character U+2028",
		"a\xff":                           "not valid UTF-8",
	} {
		err := CheckProfile(profile)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", profile, err, want)
		}
	}
}

// A long conversation remembers no more than a profile, and each line once.
func TestConversation_BoundsWhatItRemembers(t *testing.T) {
	var rules []string
	for i := range 20 {
		rules = append(rules, fmt.Sprintf(`{"when":{"contains":"fact %02d"},"reply":{"text":"Hi","remember":"%02d%s"}}`, i, i,
			strings.Repeat("x", MaxLine-2)))
	}
	k := newTalk(t, strings.Join(rules, ","))
	k.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`)
	for i := range 40 {
		k.send(userTurn, fmt.Sprintf("fact %02d", i/2))
		k.send(`{"type":"response.create"}`)
	}
	lines := k.Remembered()
	if n := len(strings.Join(lines, "\n")); n > MaxProfile || len(lines) != MaxProfile/(MaxLine+1) ||
		!strings.HasPrefix(lines[len(lines)-1], "19") {
		t.Errorf("remembered %d lines of %d bytes", len(lines), n)
	}
	if got := k.ChangeMemory("Name: Ann"); len(got) != len(lines) || len(k.Remembered()) > 0 {
		t.Errorf("the profile before has %d lines, and the next %d", len(got), len(k.Remembered()))
	}
}
