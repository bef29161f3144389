package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// maxArgs bounds a call's arguments, in bytes; none of the tools takes long ones.
const maxArgs = 256 << 10

// decode reads a call's arguments into a pointer to a struct. Names are taken exactly as the schema writes them, and
// unknown ones are refused: a misspelt argument that is ignored costs an agent more than an error.
func decode(args json.RawMessage, into any) error {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	names := fieldsOf(into)
	if len(args) > maxArgs {
		return invalidArguments("arguments are longer than 256 KiB", names)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return invalidArguments("arguments are not a JSON object", names)
	}
	for _, name := range sortedKeys(given) {
		if !slices.Contains(names, name) {
			return invalidArguments(fmt.Sprintf("there is no argument %q", clip(name)), names)
		}
	}
	if err := json.Unmarshal(args, into); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			return invalidArguments(fmt.Sprintf("argument %q is not %s", clip(typed.Field), kindName(typed.Type)), names)
		}
		return invalidArguments("an argument cannot be read", names)
	}
	return nil
}

func invalidArguments(message string, names []string) error {
	hint := "this tool takes no arguments"
	if len(names) > 0 {
		hint = "this tool takes: " + strings.Join(names, ", ")
	}
	return &Error{Code: CodeInvalidArguments, Message: message, FixHint: hint}
}

func fieldsOf(into any) []string {
	t := reflect.TypeOf(into).Elem()
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
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

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// clip shortens a name that a caller made up, for quoting it.
func clip(s string) string { return shortened(s, 60) }

// shortened cuts a text to about n bytes.
func shortened(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "..."
	}
	return s
}

// integer takes every JSON number without a fraction, 5.0 as well as 5, as JSON Schema does. What an int64 cannot hold
// becomes its nearest bound, so that the clamping of the spec decides.
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

// clamp brings an optional integer into its bounds; nil is the default.
func clamp(given *integer, def, low, high int64) int64 {
	if given == nil {
		return def
	}
	return min(max(int64(*given), low), high)
}
