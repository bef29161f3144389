package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refusal(backendapi.CodeUnsupportedMedia, "the body is not application/json", "set Content-Type: application/json")
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refusal(backendapi.CodeTooLarge, fmt.Sprintf("the body is over %d KB", limit>>10), "send a smaller one")
	}
	if err != nil {
		return refusal(backendapi.CodeInvalidRequest, "the body ended early", "send it again")
	}
	return decodeBytes(data, into)
}

func decodeBytes(data []byte, into any) error {
	if err := checkFields(data, fieldsOf(into)); err != nil {
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

// checkFields refuses names that are not known to the letter and names that stand twice: encoding/json would take any
// case and keep the last. Whatever else is wrong is left to it.
func checkFields(data []byte, known []string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil // the decoder says what is wrong
	}
	seen := make([]string, 0, len(known))
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil // the decoder says what is wrong
		}
		if !slices.Contains(known, name) {
			return invalidBody("unknown field " + clip(name, 60))
		}
		if slices.Contains(seen, name) {
			return invalidBody("the field " + name + " stands twice")
		}
		seen = append(seen, name)
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return nil // the decoder says what is wrong
		}
	}
	return nil
}

// fieldsOf lists the JSON names of a flat request struct.
func fieldsOf(into any) []string {
	t := reflect.TypeOf(into).Elem()
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
