package assistantscript

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/strictjson"
)

// shopping is a script that uses every feature.
const shopping = `{"rules": [
  {"when": {"contains": "ADD milk"}, "reply": {"toolCall": {"name": "add_item", "arguments": { "item": "milk" }}}},
  {"when": {"pattern": "(?i)eggs? and (bread|butter)"}, "reply": {"delayMs": 1500, "toolCalls": [
    {"name": "add_item", "arguments": {"item": "eggs"}}, {"name": "show_list"}]}},
  {"when": {"toolResult": "add_item", "contains": "full"}, "reply": {"text": "The list is full."}},
  {"when": {"toolResult": "add_item"}, "reply": {"text": "Done, it is on the list."}},
  {"when": {"contains": "broken"}, "reply": {"error": {"code": "provider_busy"}}},
  {"when": {"contains": "poor"}, "reply": {"error": {"code": "no_credit", "message": "no money"}, "delayMs": 10}},
  {"when": {"contains": "alone"}, "reply": {"toolCall": {"name": "call_taxi"}}},
  {"when": {"pattern": "^Hello"}, "reply": {"text": "Grüße aus der Küche."}},
  {"when": {"memory": "Ann"}, "reply": {"text": "Hello Ann.", "remember": "Came back"}},
  {"when": {"noMemory": true, "contains": "who"}, "reply": {"text": "We have not met."}}
]}`

func parsed(t testing.TB, text string) *Script {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse_NamesThePlaceOfWhatIsWrong(t *testing.T) {
	rule := func(when, reply string) string { return `{"rules":[{"when":` + when + `,"reply":` + reply + `}]}` }
	const hello, text = `{"contains":"hello"}`, `{"text":"hi"}`
	for file, want := range map[string]string{
		``:                                     "it ends too early",
		`[]`:                                   "it is a list; expected an object with rules",
		`{}`:                                   "rules: it is missing",
		`{"rules":[]}`:                         "rules: it is empty",
		`{"rules":[],"rules":[]}`:              "rules: it occurs twice",
		`{"rules":[{"when":{"always":true}}]}`: "rules[0].reply: it is missing",
		rule(`{"contain":"hello"}`, text):      "rules[0].when.contain: unknown field",
		rule(`{}`, text):                       "rules[0].when: it has none of them",
		rule(`{"contains":""}`, text):          "rules[0].when.contains: it has 0 characters",
		rule(`{"always":true,"pattern":"a"}`, text):                        "rules[0].when.always: it is false or combined",
		rule(`{"always":false}`, text):                                     "rules[0].when.always: it is",
		rule(`{"pattern":"("}`, text):                                      "rules[0].when.pattern: it is not",
		rule(`{"pattern":"(a{500}){500}"}`, text):                          "rules[0].when.pattern: ",
		rule(`{"pattern":"(abc){900}"}`, text):                             "rules[0].when.pattern: the patterns are",
		rule(`{"toolResult":"a b"}`, text):                                 "rules[0].when.toolResult: ",
		rule(hello, `{}`):                                                  "rules[0].reply: it has none of them",
		rule(hello, `{"text":"a","error":{"code":"no_credit"}}`):           "rules[0].reply: it has text and error",
		rule(hello, `{"error":{"code":"busy"}}`):                           "rules[0].reply.error.code: it is \"busy\"",
		rule(hello, `{"toolCall":{"arguments":{}}}`):                       "rules[0].reply.toolCall.name: it is",
		rule(hello, `{"toolCalls":[]}`):                                    "rules[0].reply.toolCalls: it is empty",
		rule(hello, `{"toolCall":{"name":"a","arguments":"{}"}}`):          "rules[0].reply.toolCall.arguments: it is",
		rule(hello, `{"toolCall":{"name":"a","arguments":{"b":1,"b":2}}}`): "rules[0].reply.toolCall.arguments.b: it",
		rule(hello, `{"text":"a","delayMs":60001}`):                        "rules[0].reply.delayMs: it is 60001",
		rule(`{"memory":""}`, text):                                        "rules[0].when.memory: it has 0 characters",
		rule(`{"memory":"a","noMemory":true}`, text):                       "rules[0].when.noMemory: it is true together",
		rule(`{"noMemory":false}`, text):                                   "rules[0].when.noMemory: it is false; expected true",
		rule(`{"always":false,"noMemory":false}`, text):                    "rules[0].when.noMemory: it is false; expected true",
		rule(`{"always":true,"memory":"a"}`, text):                         "rules[0].when.always: it is false or combined",
		rule(hello, `{"remember":"a"}`):                                    "rules[0].reply: it has none of them",
		rule(hello, `{"text":"a","remember":" "}`):                         "rules[0].reply.remember: ",
		rule(hello, `{"text":"a","remember":"b\nc"}`):                      "rules[0].reply.remember: ",
		rule(hello, `{"error":{"code":"no_credit"},"remember":"b"}`):       "rules[0].reply.remember: the answer is",
		strings.Repeat(" ", MaxFile) + rule(hello, text):                   "over the limit of 65536",
	} {
		_, err := Parse([]byte(file))
		var refused *strictjson.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", file, err, want)
		}
	}
}

func TestParse_TakesFalseNoMemoryAsMissing(t *testing.T) {
	for _, when := range []string{`"contains":"a"`, `"memory":"a"`, `"always":true`} {
		s := parsed(t, `{"rules":[{"when":{`+when+`,"noMemory":false},"reply":{"text":"Hi"}}]}`)
		if s.Rules[0].When.NoMemory != nil || strings.Contains(string(s.Encode()), "noMemory") {
			t.Errorf("%s: got %s, want no noMemory", when, s.Encode())
		}
	}
}

func TestParse_SkipsByteOrderMark(t *testing.T) {
	parsed(t, "\ufeff{\"rules\":[{\"when\":{\"always\":true},\"reply\":{\"text\":\"Hi\"}}]}")
	if _, err := Parse([]byte("\xff\xfe{\x00}\x00")); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("got %v, want an error that names UTF-16", err)
	}
}

func TestEncode_IsReadAsTheSameScript(t *testing.T) {
	s := parsed(t, shopping)
	again := parsed(t, string(s.Encode()))
	if !bytes.Equal(again.Encode(), s.Encode()) || len(again.Rules) != 10 {
		t.Errorf("encoding and decoding changed the script: %s", s.Encode())
	}
}

// FuzzParse parses arbitrary bytes. An accepted script must survive encoding and decoding unchanged, and answer every
// request within its limits.
func FuzzParse(f *testing.F) {
	f.Add([]byte(shopping), []byte(asks("Hello")))
	f.Add([]byte(`{"rules":[{"when":{"always":true},"reply":{"text":"x"}}]}`), []byte(`{"model":"script"}`))
	f.Fuzz(func(t *testing.T, file, body []byte) {
		r, requestErr := ParseRequest(body)
		var failure *Failure
		if requestErr != nil && (!errors.As(requestErr, &failure) || !json.Valid(failure.Body())) {
			t.Fatal(requestErr)
		}
		s, err := Parse(file)
		if err != nil {
			var refused *strictjson.Error
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse(s.Encode())
		if err != nil && len(s.Encode()) <= MaxFile {
			t.Fatal(err)
		}
		if requestErr != nil {
			return
		}
		a := s.Answer(r)
		if err == nil && !reflect.DeepEqual(again.Answer(r), a) {
			t.Fatal("the decoded script gives another answer")
		}
		if a.Failure == nil && !json.Valid(a.Completion("x", 1)) {
			t.Fatalf("the answer is not valid JSON: %+v", a)
		}
	})
}

func TestCodes_StandOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/pages/assistant-scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range append(Codes(), problem.CodeNoRule, problem.CodeToolNotOffered) {
		if !bytes.Contains(page, []byte("`"+code+"`")) {
			t.Errorf("the page does not name %s", code)
		}
	}
}
