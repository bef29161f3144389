package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/service-dev/service/proto/backendapi"
)

// maxBody is the largest request body in bytes.
const maxBody = 64 << 10

// decode reads a JSON object strictly: its content type, its size, no unknown and no repeated field, nothing behind it.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	return decodeWithin(w, r, maxBody, into)
}

// decodeWithin is decode for a route that takes longer bodies: limit in bytes.
func decodeWithin(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	data, err := readWithin(w, r, limit)
	if err != nil {
		return err
	}
	return decodeBytes(data, into)
}

// readWithin reads a body of JSON of at most limit bytes, into one buffer where its length is told.
func readWithin(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	const want = "application/json"
	if said := r.Header.Get("Content-Type"); said == want {
		// as nearly always
	} else if kind, _, err := mime.ParseMediaType(said); err != nil || kind != want {
		return nil, refusal(backendapi.CodeUnsupportedMedia, "the body is not application/json", "set Content-Type: application/json")
	}
	var data bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= limit {
		data.Grow(int(n) + bytes.MinRead)
	}
	_, err := data.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, refusal(backendapi.CodeTooLarge, fmt.Sprintf("the body is over %d KB", limit>>10), "send a smaller one")
	}
	if err != nil {
		return nil, refusal(backendapi.CodeInvalidRequest, "the body ended early", "send it again")
	}
	return data.Bytes(), nil
}

func decodeBytes(data []byte, into any) error {
	if flat(data, into) {
		return nil
	}
	if err := checkFields(json.NewDecoder(bytes.NewReader(data)), reflect.TypeOf(into).Elem(), ""); err != nil && !errors.Is(err, errMalformed) {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return invalidBody(reason(err))
	}
	return nil
}

func invalidBody(what string) *Refusal {
	return refusal(backendapi.CodeInvalidRequest, what, "send one JSON object with the documented fields only")
}

func reason(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return "the field " + clip(wrong.Field, 60) + " has the wrong type"
	case errors.As(err, &wrong):
		return "the body is not a JSON object"
	}
	return "the body is not JSON"
}

// errMalformed ends a check: the decoder says what is wrong.
var errMalformed = errors.New("the body has another form")

// checkFields reads one value and refuses names that are not known to the letter and names that stand twice, in t and in
// what t holds: encoding/json would take any case and keep the last. Whatever else is wrong is left to it.
func checkFields(d *json.Decoder, t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	list := t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
	if t.Kind() != reflect.Struct && !list {
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return errMalformed
		}
		return nil
	}
	start, err := d.Token()
	switch {
	case err != nil:
		return errMalformed
	case start == nil: // null
		return nil
	case list && start == json.Delim('['):
		for d.More() {
			if err := checkFields(d, t.Elem(), at); err != nil {
				return err
			}
		}
	case !list && start == json.Delim('{'):
		if err := checkObject(d, t, at); err != nil {
			return err
		}
	default:
		return errMalformed
	}
	if _, err := d.Token(); err != nil { // its end
		return errMalformed
	}
	return nil
}

func checkObject(d *json.Decoder, t reflect.Type, at string) error {
	known := fieldsOf(t)
	seen := make([]string, 0, len(known))
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return errMalformed
		}
		field := slices.Index(known, name)
		if field < 0 {
			return invalidBody("unknown field " + at + clip(name, 60))
		}
		if slices.Contains(seen, name) {
			return invalidBody("the field " + at + name + " stands twice")
		}
		seen = append(seen, name)
		if err := checkFields(d, t.Field(field).Type, at+name+"."); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf lists the JSON names of a request struct, which embeds nothing.
func fieldsOf(t reflect.Type) []string {
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
