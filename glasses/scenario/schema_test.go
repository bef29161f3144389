package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

const schemaFile = "scenario.schema.json"

// TestSchema_IsTheCheckedInFile compares the shipped file with the table of kinds. UPDATE_SCHEMA=1 rewrites it.
func TestSchema_IsTheCheckedInFile(t *testing.T) {
	want, err := writeSchema()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_SCHEMA") != "" {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(Schema(), want) && os.Getenv("UPDATE_SCHEMA") == "" {
		t.Errorf("%s is out of date; run UPDATE_SCHEMA=1 go test ./glasses/scenario -run TestSchema", schemaFile)
	}
}

func resolved(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	r, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSchema_AcceptsAllOfIt(t *testing.T) {
	var file any
	if err := json.Unmarshal([]byte(whole), &file); err != nil {
		t.Fatal(err)
	}
	if err := resolved(t).Validate(file); err != nil {
		t.Error(err)
	}
}

// FuzzSchema compares two implementations of the same rules: one of JSON Schema and the decoder.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(whole))
	for _, k := range Kinds() {
		f.Add([]byte(`{"scenario":1,"name":"x","steps":[` + k.Example + `]}`))
	}
	for _, wrong := range []string{`{"input":{"kind":"lick"}}`, `{"advance":-1}`, `{"advance":1e2}`, `{"advance":1.5}`, `{}`,
		`{"input":{"kind":"swipe"}}`, `{"transcript":{}}`, `{"device":""}`, `{"expect":{"payload":[]}}`, `null`,
		`{"state":{"permissions":{"camera":"maybe"}}}`, `{"motion":{"ax":1e300}}`, `{"picture":".x"}`, `{"camera":null}`} {
		f.Add([]byte(`{"scenario":1,"name":"x","steps":[` + wrong + `]}`))
	}
	schema := resolved(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var file any
		if json.Unmarshal(data, &file) != nil {
			return
		}
		valid := schema.Validate(file)
		_, err := Parse(data)
		var refused *Error
		switch {
		case err == nil && valid != nil:
			t.Fatalf("the decoder accepts a file that the schema rejects: %v", valid)
		case valid == nil && errors.As(err, &refused) && !refused.Beyond:
			t.Fatalf("the schema accepts a file that the decoder rejects: %v", err)
		}
	})
}
