package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

type thing struct {
	Name  string            `json:"name"`
	Count *int              `json:"count,omitempty"`
	Parts []part            `json:"parts"`
	Env   map[string]string `json:"env"`
	Data  json.RawMessage   `json:"data"`
	Plain bool              `json:"plain"`
	embedded
}

type embedded struct {
	Inner string `json:"inner"`
}

type part struct {
	A string `json:"a"`
	B int64  `json:"b"`
}

var things = Of[thing](Rules{
	"":          {Required: []string{"name"}, Example: `{"name":"x"}`},
	"name":      {Pattern: "^[a-z]+$", Form: "a name of letters"},
	"count":     {Min: new(int64(0)), Max: new(int64(9)), Default: int64(3)},
	"parts":     {MaxItems: 2},
	"parts[]":   {ExactlyOne: []string{"a", "b"}, Example: `{"a":"x"}`},
	"parts[].a": {Words: []string{"x", "y"}, MaxLength: 5},
	"env":       {Keys: []string{"E", "F"}},
	"env.*":     {MinLength: 1, MaxLength: 3},
	"data":      {Object: true},
})

func TestDecode_KeepsValues(t *testing.T) {
	var got thing
	err := things.Decode([]byte(`{"name":"a","parts":[{"a":"x"},{"b":5.0}],"env":{"E":"1"},"data": {"k": [1]},"inner":"i"}`),
		&got)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "a" || *got.Count != 3 || got.Parts[1].B != 5 || got.Env["E"] != "1" || got.Inner != "i" ||
		string(got.Data) != `{"k": [1]}` {
		t.Errorf("decoded %+v, data %s", got, got.Data)
	}
}

func TestDecode_NamesPlaceExpectationAndExample(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                               `name: it is missing; expected a name of letters, e.g. {"name":"x"}`,
		`{"name":"A"}`:                     `name: it is "A"; expected a name of letters, e.g. {"name":"x"}`,
		`{"name":1}`:                       `name: it is the number 1; expected a name of letters, e.g. {"name":"x"}`,
		`{"name":null}`:                    `name: it is null; expected a name of letters, e.g. {"name":"x"}`,
		`{"name":"a","count":10}`:          `count: it is 10; expected an integer from 0 to 9, e.g. {"name":"x"}`,
		`{"name":"a","count":1e999}`:       `count: it is 1e999; expected an integer from 0 to 9, e.g. {"name":"x"}`,
		`{"name":"a","parts":[{"a":"z"}]}`: `parts[0].a: it is "z"; expected a string, one of x, y, e.g. {"a":"x"}`,
		`{"name":"a","parts":[{}]}`:        `parts[0]: it has none of them; expected exactly one of a, b, e.g. {"a":"x"}`,
		`{"name":"a","parts":[{"a":"x"},{"a":"x"},{"a":"x"}]}`: `parts: it has more than 2 items; expected a list of at most 2 ` +
			`items, e.g. {"name":"x"}`,
		`{"name":"a","env":{"G":"1"}}`:      `env.G: unknown name; expected one of E, F, e.g. {"name":"x"}`,
		`{"name":"a","env":{"E":"1234"}}`:   `env.E: it has 4 characters; expected a string of 1 to 3 characters, e.g. {"name":"x"}`,
		`{"name":"a","data":[]}`:            `data: it is a list; expected an object, e.g. {"name":"x"}`,
		`{"name":"a","data":{"k":1,"k":2}}`: `data.k: it occurs twice`,
		`{"name":"a","plain":"yes"}`:        `plain: it is the string "yes"; expected true or false, e.g. {"name":"x"}`,
		`{"Name":"a"}`: `Name: unknown field; expected one of name, count, parts, env, data, plain, inner, ` +
			`e.g. {"name":"x"}`,
		`{"name":"a","name":"b"}`: `name: it occurs twice`,
		`{"name":"a"`:             `it is not JSON: it ends too early`,
		`{"name":"a"} x`:          `unexpected data after the end of the JSON`,
		"\"\xff\"":                `it is not UTF-8`,
	} {
		var got thing
		if err := things.Decode([]byte(in), &got); err == nil || err.Error() != want {
			t.Errorf("%s:\n got  %v\n want %s", in, err, want)
		}
	}
	deep := `{"name":"a","data":{"k":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`
	if err := things.Decode([]byte(deep), &thing{}); err == nil || !strings.Contains(err.Error(), "nested more than 100") {
		t.Errorf("deep nesting: got error %v, want the limit of 100 levels", err)
	}
}

// TestDecode_NullsStandForNone covers agents with strict schemas, which send every argument and use null or "" for
// unused ones.
func TestDecode_NullsStandForNone(t *testing.T) {
	lenient := *things
	lenient.Nulls = true
	for in, want := range map[string]string{
		`{"name":"a","count":null,"parts":[{"a":"x","b":null}],"env":null,"data":null,"plain":null}`: "",
		`{"name":"a","parts":[{"a":"","b":2}]}`:                                                      "",
		`{"name":null}`:                                                                              "name: it is missing",
		`{"name":""}`:                                                                                "name: it is missing",
		`{"name":"a","parts":[{"a":null,"b":null}]}`:                                                 "parts[0]: it has none",
		`{"name":"a","data":{"k":null},"inner":""}`:                                                  "",
	} {
		var got thing
		err := lenient.Decode([]byte(in), &got)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", in, err, want)
		}
		if err == nil && (got.Count == nil || *got.Count != 3) {
			t.Errorf("%s: count does not have its default", in)
		}
	}
}

func TestOf_PanicsForARuleWithoutAPlace(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a misspelt position was accepted")
		}
	}()
	Of[thing](Rules{"other": {}})
}

// FuzzDecode compares the decoder with a JSON Schema implementation.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"name":"a","parts":[{"a":"x"},{"b":5.0}],"env":{"E":"1"},"data":{}}`, `{}`,
		`{"name":"a","count":-1}`, `{"name":"a","env":{"G":""}}`, `{"name":"ä"}`, `null`, `{"name":"a","count":1e-1}`} {
		f.Add([]byte(seed))
	}
	written, err := json.Marshal(things.Schema())
	if err != nil {
		f.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(written, &schema); err != nil {
		f.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var document any
		if json.Unmarshal(data, &document) != nil {
			return
		}
		valid := resolved.Validate(document)
		err := things.Decode(data, &thing{})
		var refused *Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("the error %v has the type %T, want *Error", err, err)
		}
		if err == nil && valid != nil || valid == nil && err != nil && !refused.Beyond {
			t.Errorf("schema validation returned %v, the decoder %v", valid, err)
		}
	})
}
