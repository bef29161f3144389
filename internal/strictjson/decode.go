package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error explains why a document was rejected.
type Error struct {
	// Path is the position of the error, e.g. steps[3].input.kind; empty for the whole document.
	Path string
	// Message describes the error at that position.
	Message string
	// Want describes the expected value, e.g. "an integer from 0 to 100"; empty if Message is sufficient.
	Want string
	// Example is valid JSON for that position or for an enclosing object; empty if there is none.
	Example string
	// Beyond is set for errors that JSON Schema cannot express: a repeated name, excessive nesting, or text that is not
	// JSON.
	Beyond bool
}

// Error returns the path, the message, the expected value and the example.
func (e *Error) Error() string {
	text := e.Message
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Want != "" {
		text += "; expected " + e.Want
	}
	if e.Example != "" {
		text += ", e.g. " + e.Example
	}
	return text
}

// maxNesting is the maximum number of levels. Valid documents need far fewer.
const maxNesting = 100

// decoder decodes one document.
type decoder struct {
	*json.Decoder
	data  []byte
	path  []string // parts of the current path: names with a dot, indices in brackets
	nulls bool
	// skipped is the path of the last value that was treated as missing.
	skipped string
	// examples contains the examples of the enclosing objects, innermost last.
	examples []string
}

// Decode decodes a document into the value to which into points, which may contain defaults. On failure it returns an
// *Error.
func (s *Shape[T]) Decode(data []byte, into *T) error {
	if !utf8.Valid(data) {
		return &Error{Message: "it is not UTF-8", Beyond: true}
	}
	d := &decoder{Decoder: json.NewDecoder(bytes.NewReader(data)), data: data, nulls: s.Nulls}
	d.UseNumber()
	if err := d.value(s.root, reflect.ValueOf(into).Elem()); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &Error{Message: "unexpected data after the end of the JSON", Beyond: true}
	}
	return nil
}

func (d *decoder) at() string { return strings.TrimPrefix(strings.Join(d.path, ""), ".") }

// refuse returns the error for a value of the node n.
func (d *decoder) refuse(n *node, format string, args ...any) *Error {
	example := n.rule.Example
	for i := len(d.examples) - 1; i >= 0 && example == ""; i-- {
		example = d.examples[i]
	}
	return &Error{Path: d.at(), Message: fmt.Sprintf(format, args...), Want: n.want(), Example: example}
}

func (d *decoder) notJSON(err error) error {
	message := "it is not JSON: " + strings.TrimPrefix(err.Error(), "json: ")
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		message = "it is not JSON: it ends too early"
	}
	return &Error{Path: d.at(), Message: message, Beyond: true}
}

// within decodes the value at one part of the path.
func (d *decoder) within(part string, n *node, into reflect.Value) error {
	d.path = append(d.path, part)
	defer func() { d.path = d.path[:len(d.path)-1] }()
	if len(d.path) > maxNesting {
		return &Error{Path: d.at(), Message: fmt.Sprintf("it is nested more than %d levels deep", maxNesting), Beyond: true}
	}
	return d.value(n, into)
}

func (d *decoder) value(n *node, into reflect.Value) error {
	from := d.InputOffset()
	tok, err := d.Token()
	if err != nil {
		return d.notJSON(err)
	}
	if d.nulls && (tok == nil || tok == "" && n.isFixed()) {
		d.skipped = d.at()
		return nil
	}
	if n.kind == anything || n.kind == own {
		return d.raw(n, tok, from, into)
	}
	for into.Kind() == reflect.Pointer {
		if into.IsNil() {
			into.Set(reflect.New(into.Type().Elem()))
		}
		into = into.Elem()
	}
	switch v := tok.(type) {
	case json.Delim:
		switch {
		case v == '{' && n.kind == object:
			return d.object(n, into)
		case v == '{' && n.kind == table:
			return d.table(n, into)
		case v == '[' && n.kind == list:
			return d.list(n, into)
		}
	case string:
		if n.kind == text {
			into.SetString(v)
			return d.checkText(n, v)
		}
	case json.Number:
		if n.kind == integer {
			return d.integer(n, v, into)
		}
	case bool:
		if n.kind == boolean {
			into.SetBool(v)
			return nil
		}
	}
	return d.refuse(n, "it is %s", typeOf(tok))
}

// raw keeps the text of a value unchanged. from is the offset of its first token.
func (d *decoder) raw(n *node, tok json.Token, from int64, into reflect.Value) error {
	if n.rule.Object && tok != json.Delim('{') {
		return d.refuse(n, "it is %s", typeOf(tok))
	}
	if err := d.skip(tok); err != nil {
		return err
	}
	data := bytes.TrimLeft(d.data[from:d.InputOffset()], " \t\r\n:,")
	if n.kind == own {
		if err := json.Unmarshal(data, into.Addr().Interface()); err != nil {
			return d.refuse(n, "it is %s", typeOf(tok))
		}
		return nil
	}
	for into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	into.SetBytes(bytes.Clone(data))
	return nil
}

// skip reads the rest of a value of any type. It also rejects repeated names in the value.
func (d *decoder) skip(tok json.Token) error {
	switch tok {
	case json.Delim('{'):
		return d.members(func(string) (*node, reflect.Value, error) {
			return &node{}, reflect.New(reflect.TypeFor[json.RawMessage]()).Elem(), nil
		}, func(string) {})
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			var item json.RawMessage
			if err := d.within(index(i), &node{}, reflect.ValueOf(&item).Elem()); err != nil {
				return err
			}
		}
		return d.end()
	}
	return nil
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// end reads the end of a list or an object.
func (d *decoder) end() error {
	if _, err := d.Token(); err != nil {
		return d.notJSON(err)
	}
	return nil
}

// members reads the names and values of an object. target returns the destination of a value. missing is called for a
// value that is treated as missing.
func (d *decoder) members(target func(name string) (*node, reflect.Value, error), missing func(name string)) error {
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return d.notJSON(err)
		}
		name, _ := tok.(string)
		if seen[name] {
			return &Error{Path: strings.TrimPrefix(d.at()+"."+name, "."), Message: "it occurs twice", Beyond: true}
		}
		seen[name] = true
		n, into, err := target(name)
		if err != nil {
			return err
		}
		d.skipped = ""
		if err := d.within("."+name, n, into); err != nil {
			return err
		}
		if d.skipped == strings.TrimPrefix(d.at()+"."+name, ".") {
			missing(name)
		}
	}
	return d.end()
}

// isFixed reports whether a string must be one of several words or match a pattern, so that an empty string can only
// mean a missing value.
func (n *node) isFixed() bool { return n.kind == text && (n.rule.Words != nil || n.pattern != nil) }

func (d *decoder) object(n *node, into reflect.Value) error {
	if n.rule.Example != "" {
		d.examples = append(d.examples, n.rule.Example)
		defer func() { d.examples = d.examples[:len(d.examples)-1] }()
	}
	given := []string{}
	err := d.members(func(name string) (*node, reflect.Value, error) {
		f, ok := n.fields[name]
		if !ok {
			e := d.refuse(n, "unknown field")
			e.Path, e.Want = strings.TrimPrefix(e.Path+"."+name, "."), "one of "+strings.Join(n.order, ", ")
			return nil, reflect.Value{}, e
		}
		given = append(given, name)
		return f.node, into.FieldByIndex(f.index), nil
	}, func(string) { given = given[:len(given)-1] })
	if err != nil {
		return err
	}
	n.setDefaults(given, into)
	return d.checkNames(n, given)
}

// setDefaults sets the fields that are missing from an object.
func (n *node) setDefaults(given []string, into reflect.Value) {
	for _, name := range n.order {
		f := n.fields[name]
		if f.rule.Default == nil || slices.Contains(given, name) {
			continue
		}
		to, value := into.FieldByIndex(f.index), reflect.ValueOf(f.rule.Default)
		if to.Kind() == reflect.Pointer {
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		to.Set(value.Convert(to.Type()))
	}
}

func (d *decoder) table(n *node, into reflect.Value) error {
	into.Set(reflect.MakeMap(into.Type()))
	var names []string
	var values []reflect.Value // stored at the end, because the values of a map cannot be set in place
	err := d.members(func(name string) (*node, reflect.Value, error) {
		if n.rule.Keys != nil && !slices.Contains(n.rule.Keys, name) {
			e := d.refuse(n, "unknown name")
			e.Path, e.Want = e.Path+"."+name, "one of "+strings.Join(n.rule.Keys, ", ")
			return nil, reflect.Value{}, e
		}
		names, values = append(names, name), append(values, reflect.New(into.Type().Elem()).Elem())
		return n.inner, values[len(values)-1], nil
	}, func(string) {})
	for i, name := range names {
		into.SetMapIndex(reflect.ValueOf(name), values[i])
	}
	return err
}

func (d *decoder) list(n *node, into reflect.Value) error {
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	for i := 0; d.More(); i++ {
		if n.rule.MaxItems > 0 && i >= n.rule.MaxItems {
			return d.refuse(n, "it has more than %d items", n.rule.MaxItems)
		}
		item := reflect.New(into.Type().Elem()).Elem()
		if err := d.within(index(i), n.inner, item); err != nil {
			return err
		}
		into.Set(reflect.Append(into, item))
	}
	return d.end()
}

func (d *decoder) integer(n *node, number json.Number, into reflect.Value) error {
	f, err := number.Float64()
	low, high := n.rule.bounds()
	switch {
	case err != nil || f < float64(low) || f > float64(high):
		return d.refuse(n, "it is %s", number)
	case f != math.Trunc(f):
		return d.refuse(n, "it is %s, which is not an integer", number)
	}
	into.SetInt(int64(f))
	return nil
}
