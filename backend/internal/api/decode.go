package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/internal/problem"
)

// maxBody is the largest request body in bytes.
const maxBody = 64 << 10

// decode strictly reads a JSON object of at most limit bytes. It checks the content type, and refuses unknown fields,
// repeated fields and data after the object.
func (c *call) decode(limit int64, into any) error {
	data, err := readBody(c.w, c.Request, limit)
	if err != nil {
		return err
	}
	return decodeBytes(data, into)
}

// withBody decodes the body for the handler.
func withBody[T any](handle func(c *call, body T) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		var body T
		if err := c.decode(maxBody, &body); err != nil {
			return nil, err
		}
		return handle(c, body)
	}
}

// readBody reads a JSON body of at most limit bytes. It returns a *problem.Error on failure.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := httpjson.ReadBody(w, r, limit)
	switch {
	case errors.Is(err, httpjson.ErrTooLarge):
		return nil, problem.New(problem.CodeRequestTooLarge, fmt.Sprintf("the body is over %d KB", limit>>10),
			"Send a smaller one.")
	case errors.Is(err, httpjson.ErrNotJSON):
		return nil, notJSON
	case err != nil:
		return nil, invalidRequest("the body ended early", "Send it again.")
	}
	return data, nil
}

var notJSON = problem.New(problem.CodeUnsupportedMedia, "the body must be application/json",
	"Set Content-Type: application/json.")

func decodeBytes(data []byte, into any) error {
	if decodeFlat(data, into) {
		return nil
	}
	err := checkFields(json.NewDecoder(bytes.NewReader(data)), reflect.TypeOf(into).Elem(), "")
	if err != nil && !errors.Is(err, errMalformed) {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return invalidBody(reason(err))
	}
	return nil
}

func invalidBody(what string) *problem.Error {
	return invalidRequest(what, "Send one JSON object with the documented fields only.")
}

func reason(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return "the field " + clip(wrong.Field, 60) + " has the wrong type"
	case errors.As(err, &wrong):
		return "the body must be a JSON object"
	}
	return "the body is not JSON"
}

// errMalformed stops the field check, so that the decoder reports the mistake.
var errMalformed = errors.New("malformed body")

// checkFields reads one value of type t. It refuses field names that are unknown, differ in case or occur twice, at any
// depth, because encoding/json accepts any case and keeps the last value. It leaves all other mistakes to
// encoding/json.
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
	if _, err := d.Token(); err != nil { // the closing delimiter
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
			return invalidBody("the field " + at + name + " occurs twice")
		}
		seen = append(seen, name)
		if err := checkFields(d, t.Field(field).Type, at+name+"."); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf lists the JSON names of the fields of a request struct that embeds no struct.
func fieldsOf(t reflect.Type) []string {
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
