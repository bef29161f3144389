package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// maxArgs is the maximum size of a call's arguments, in bytes.
const maxArgs = 256 << 10

// decode decodes a call's arguments into a struct. Names must match the schema exactly, because an error helps an agent
// more than a misspelt argument that is silently ignored.
func decode[A any](args json.RawMessage, into *A) error {
	return decodeInto(args, into)
}

func decodeInto(args json.RawMessage, into any) error {
	names := fieldsOf(into)
	args, err := objectOf(args, names)
	if err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return invalidArguments("arguments are not a JSON object", names)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return invalidArguments(fmt.Sprintf("there is no argument %q", clip(name)), names)
		}
	}
	if err := json.Unmarshal(args, into); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			name := typed.Field[strings.LastIndexByte(typed.Field, '.')+1:] // without the embedded struct
			return invalidArguments(fmt.Sprintf("argument %q is not %s", clip(name), kindName(typed.Type)), names)
		}
		return invalidArguments("an argument cannot be read", names)
	}
	return nil
}

// objectOf returns the arguments of a call, or {} if it has none.
func objectOf(args json.RawMessage, names []string) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		return json.RawMessage("{}"), nil
	}
	if len(args) > maxArgs {
		return nil, invalidArguments("arguments are longer than 256 KiB", names)
	}
	return args, nil
}

func invalidArguments(message string, names []string) error {
	hint := "Pass no arguments."
	if len(names) > 0 {
		hint = "Pass only these: " + strings.Join(names, ", ") + "."
	}
	return invalid(message, hint)
}

func fieldsOf(into any) []string {
	var names []string
	for _, f := range jsonFields(reflect.TypeOf(into).Elem()) {
		names = append(names, f.json)
	}
	return names
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64, reflect.Int:
		return "an integer"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "of the type that the schema names"
	}
}

// clip shortens a caller's text to a length that can be quoted.
func clip(s string) string { return cut(s, 60) }

// cut shortens s to about n bytes.
func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "..."
	}
	return s
}

// Arguments shared by several tools. The server's instructions describe them once. A tool with a different default
// documents it in its own schema.
type (
	sessionArg struct {
		SessionID string `json:"sessionId"`
	}
	projectArg struct {
		Project string `json:"project"`
	}
	linkArg struct {
		OpenBrowser *bool `json:"openBrowser"`
	}
)

// integer accepts every JSON number without a fraction, 5.0 as well as 5, as JSON Schema does. A number that does not
// fit into an int64 becomes the nearest limit and is clamped like any other.
type integer int64

// UnmarshalJSON implements json.Unmarshaler.
func (i *integer) UnmarshalJSON(data []byte) error {
	var f float64
	if string(data) == "null" {
		return nil
	}
	if err := json.Unmarshal(data, &f); err != nil || f != math.Trunc(f) {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[int64]()} // the decoder adds the field's name
	}
	switch {
	case f >= math.MaxInt64:
		*i = math.MaxInt64
	case f <= math.MinInt64:
		*i = math.MinInt64
	default:
		*i = integer(f)
	}
	return nil
}

// clamp returns an optional integer clamped to low and high, or def for nil.
func clamp(given *integer, def, low, high int64) int64 {
	if given == nil {
		return def
	}
	return min(max(int64(*given), low), high)
}
