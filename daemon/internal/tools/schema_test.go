package tools

import (
	"encoding/json"
	"testing"
)

type schemaArgs struct {
	sessionArg
	Count *integer       `json:"count"`
	Raw   rawOf[struct { // decoded later
		Name string `json:"name"`
	}] `json:"raw"`
}

func TestArgumentsOf_IsAClosedObject(t *testing.T) {
	got := string(argumentsOf[schemaArgs](required("count"), on("count", byDefault(5)), on("raw.name", upTo(3))))
	want := `{"type":"object","properties":{` +
		`"sessionId":{"type":"string"},` +
		`"count":{"type":"integer","default":5},` +
		`"raw":{"type":"object","properties":{"name":{"type":"string","maxLength":3}}}},` +
		`"required":["count"],"additionalProperties":false}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnswersOf_AllowsNull(t *testing.T) {
	type answer struct {
		At      *string           `json:"at" format:"date-time"`
		Left    *string           `json:"left,omitempty"`
		Rows    []json.RawMessage `json:"rows"`
		Summary string            `json:"summary"`
		Picture []byte            `json:"-"` // not in the schema
	}
	var got struct {
		Properties map[string]json.RawMessage
		AnyOf      []struct{ Required []string }
	}
	if err := json.Unmarshal(answersOf[answer](required("summary")), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"at":   `{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]}`,
		"left": `{"type":"string"}`,
		"rows": `{"type":"array","items":{"type":"object"}}`,
	} {
		if string(got.Properties[name]) != want {
			t.Errorf("%s is %s, want %s", name, got.Properties[name], want)
		}
	}
	if _, found := got.Properties["-"]; found {
		t.Error("the schema has a property that is never written")
	}
	if len(got.AnyOf) != 2 || len(got.AnyOf[0].Required) != 1 || got.Properties["fixHint"] == nil {
		t.Errorf("%+v", got)
	}
}

func TestOptions_PanicAtUnknownProperties(t *testing.T) {
	for name, o := range map[string]option{"on": on("nope", says("x")), "required": required("nope")} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s names a property that does not exist, but did not panic", name)
				}
			}()
			argumentsOf[schemaArgs](o)
		}()
	}
}
