// Package strictjson decodes JSON that users and agents write by hand. If a name is misspelt, repeated or missing, or a
// value has the wrong type, the error contains the position, the expected value and an example. The same rules
// determine the JSON Schema of the accepted documents.
package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Rule restricts a value further than its Go type. The zero value adds no restriction.
type Rule struct {
	// What describes the value in a few words.
	What string
	// Words are the allowed strings.
	Words []string
	// Min and Max are the limits of an integer. By default it is limited to 53 bits.
	Min, Max *int64
	// Pattern is a regular expression for a string. Form describes it in words that fit after "expected".
	Pattern, Form string
	// MinLength and MaxLength limit the number of characters of a string. 0 means no limit.
	MinLength, MaxLength int
	// MaxItems is the maximum number of items of a list. 0 means no limit.
	MaxItems int
	// Keys are the allowed names of a map.
	Keys []string
	// Required lists fields that an object must have. The object must also have exactly one of the fields in ExactlyOne
	// and at least one of the fields in AnyOf.
	Required, ExactlyOne, AnyOf []string
	// Object restricts a json.RawMessage to objects.
	Object bool
	// Default is the value of a missing field: a string, a bool or an int64. Nil means the zero value.
	Default any
	// Example is the JSON that error messages show as an example. It is the value itself, or an object that contains
	// the value. It also applies to nested values without their own example.
	Example string
}

// Rules maps positions of values, such as steps[].input.kind, to their rules. A * represents any name in a map, and the
// empty string represents the document.
type Rules map[string]Rule

// Under returns the rules for values below a position, with positions relative to it.
func (r Rules) Under(place string) Rules {
	inner := Rules{}
	for at, rule := range r {
		if rest, ok := strings.CutPrefix(at, place); ok && rest != "" {
			inner[strings.TrimPrefix(rest, ".")] = rule
		} else if ok {
			inner[""] = rule
		}
	}
	return inner
}

// Shape is a Go type with its rules. It is safe for concurrent use.
type Shape[T any] struct {
	root *node
	// Nulls makes null mean a missing value, because some clients send null. An empty string then also means a
	// missing value where only certain words or a pattern are allowed.
	Nulls bool
}

// Of returns the shape of T. It panics if rules contains a position that T does not have, which is a programming
// error.
func Of[T any](rules Rules) *Shape[T] {
	used := map[string]bool{}
	root := build(reflect.TypeFor[T](), "", rules, used)
	for at := range rules {
		if !used[at] {
			panic(fmt.Sprintf("strictjson: %v has no place %q", reflect.TypeFor[T](), at))
		}
	}
	return &Shape[T]{root: root}
}

// kind is the JSON type of a node.
type kind int

const (
	anything kind = iota
	object
	table // an object with arbitrary names
	list
	text
	integer
	boolean
	own // a type that decodes itself
)

// node is a type with its rule.
type node struct {
	kind    kind
	rule    Rule
	pattern *regexp.Regexp
	fields  map[string]field
	order   []string // names of the fields, in the order of the struct
	inner   *node    // items of a list, or values of a table
}

type field struct {
	*node
	index []int
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func build(t reflect.Type, at string, rules Rules, used map[string]bool) *node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	rule, known := rules[at]
	used[at] = used[at] || known
	n := &node{rule: rule}
	if rule.Pattern != "" {
		n.pattern = regexp.MustCompile(rule.Pattern)
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return n
	case reflect.PointerTo(t).Implements(unmarshaler):
		n.kind = own
		return n
	}
	switch t.Kind() {
	case reflect.Struct:
		n.kind, n.fields = object, map[string]field{}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" || !f.IsExported() {
				continue
			}
			inner := strings.TrimPrefix(at+"."+name, ".")
			n.fields[name] = field{build(f.Type, inner, rules, used), f.Index}
			n.order = append(n.order, name)
		}
	case reflect.Slice:
		n.kind, n.inner = list, build(t.Elem(), at+"[]", rules, used)
	case reflect.Map:
		n.kind, n.inner = table, build(t.Elem(), at+".*", rules, used)
	case reflect.String:
		n.kind = text
	case reflect.Int, reflect.Int64:
		n.kind = integer
	case reflect.Bool:
		n.kind = boolean
	default:
		panic(fmt.Sprintf("strictjson: %v at %q is not supported", t, at))
	}
	return n
}

// maxInteger is the largest integer that every JSON implementation represents exactly.
const maxInteger = 1<<53 - 1

// bounds returns the minimum and maximum of an integer.
func (r Rule) bounds() (low, high int64) {
	low, high = -maxInteger, maxInteger
	if r.Min != nil {
		low = *r.Min
	}
	if r.Max != nil {
		high = *r.Max
	}
	return low, high
}
