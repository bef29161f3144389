package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

// Objects in lists are decoded as strictly as the objects that contain them.
func TestStrictNestedBodies(t *testing.T) {
	for body, want := range map[string]string{
		`{"version":1,"phrases":[{"phrase":"hi","does":"greets"}],"toggles":[{"id":"a","label":"A","on":true}]}`: "",
		`{"version":1,"phrases":[],"toggles":null}`:                                                              "",
		`{"version":1,"phrases":[null]}`:                                                                         "",
		`{"version":1,"phrases":[{"phrase":"hi","dose":"greets"}]}`:                                              "unknown field phrases.dose",
		`{"version":1,"phrases":[{"phrase":"hi","Does":"greets"}]}`:                                              "unknown field phrases.Does",
		`{"version":1,"phrases":[{"phrase":"hi"},{"phrase":"a","phrase":"b"}]}`:                                  "the field phrases.phrase occurs twice",
		`{"version":1,"toggles":[{"id":"a","label":"A","on":true,"x":{}}]}`:                                      "unknown field toggles.x",
		`{"version":1,"toggles":[{"id":"a","\u0069d":"b"}]}`:                                                     "the field toggles.id occurs twice",
		`{"version":1,"toggles":[],"toggles":[]}`:                                                                "the field toggles occurs twice",
		`{"version":1,"toggles":{"id":"a"}}`:                                                                     "the field toggles has the wrong type",
		`{"version":1,"toggles":[["id"]]}`:                                                                       "the field toggles has the wrong type",
		`{"version":1,"capabilities":[{"x":1}]}`:                                                                 "the field capabilities has the wrong type",
		`{"version":1,"capabilities":[1]}`:                                                                       "the field capabilities has the wrong type",
		`{"version":"1"}`:                                                                                        "the field version has the wrong type",
		`{"version":1.5}`:                                                                                        "the field version has the wrong type",
		`{"version":1,"phrases":[{"phrase":"hi"}`:                                                                "the body is not JSON",
		`{"version":1,"phrases":[{"phrase":"hi"}}]}`:                                                             "the body is not JSON",
		`{"version":1,"phrases":` +
			strings.Repeat("[", 20_000): "the field phrases has the wrong type",
	} {
		var into backendapi.ConnectionPageChange
		err := decodeBytes([]byte(body), &into)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("decode %.100s: got error %v, want %q", body, err, want)
		}
	}
}

// Media may be encoded by a program that breaks its lines.
func TestControl_MediaWithLineBreaks(t *testing.T) {
	var c backendapi.Control
	if err := decodeBytes([]byte(`{"type":"sim.photo","media":"aGVs\nbG8=\r\n"}`), &c); err != nil || string(c.Media) != "hello" {
		t.Errorf("got media %q, error %v; want hello", c.Media, err)
	}
}

// FuzzDecodeNested compares the strict decoder of nested bodies with encoding/json, and checks the accepted field
// names with a separate walk.
func FuzzDecodeNested(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"title":"T","phrases":[{"phrase":"hi","does":"x"}],"toggles":[{"id":"a","label":"A","on":true}],"capabilities":["camera"]}`,
		`{"version":1,"phrases":[{"phrase":"hi","phrase":"x"}]}`, `{"toggles":[{"ID":"a"}]}`,
		`{"toggles":[null,{}],"phrases":null}`, `null`, `[]`, ``,
		`{"phrases":{"phrase":"x"}}`, `{"phrases":[[{"phrase":"x"}]]}`, `{"phrases":[{"phrase":{"phrase":"x"}}]}`,
		`{"phrases":[{}],}`, `{"phrases":[{}]}{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict, plain backendapi.ConnectionPageChange
		if err := decodeBytes(data, &strict); err != nil {
			if e := known400(err); e == nil || e.Message == "" || len([]rune(e.Message)) > 200 {
				t.Fatalf("%q: got %v, want a refusal with a short message", data, err)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&plain); err != nil || !reflect.DeepEqual(strict, plain) {
			t.Fatalf("%q: got %+v, want %+v as from encoding/json (error %v)", data, strict, plain, err)
		}
		if err := names(json.NewDecoder(bytes.NewReader(data)), "top"); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

var nestedNames = map[string][]string{
	"top": {"version", "title", "description", "theme", "accent", "capabilities", "phrases", "toggles", "supportUrl",
		"privacyUrl"},
	"phrases": {"phrase", "does"},
	"toggles": {"id", "label", "on"},
}

// names checks the field names in the value at the given path.
func names(d *json.Decoder, at string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	switch token {
	case json.Delim('['):
		for d.More() {
			if err := names(d, at); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			if !slices.Contains(nestedNames[at], name) || seen[name] {
				return fmt.Errorf("%s.%s is unknown or repeated, but was accepted", at, name)
			}
			seen[name] = true
			if err := names(d, name); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token()
	return err
}
