// Package strictjson decodes JSON that people and agents write by hand. For a misspelt, repeated or missing name and
// for a value of the wrong type, the error names the position, what was expected and an example. The same rules produce
// the JSON Schema of the accepted documents.
package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Rule restricts a value beyond its Go type. The zero value adds nothing.
type Rule struct {
	// What describes the value in a few words.
	What string
	// Words are the allowed strings.
	Words []string
	// Min and Max bound an integer; without them it has at most 53 bits.
	Min, Max *int64
	// Pattern is a regular expression for a string. Form says in words what it means, after "expected".
	Pattern, Form string
	// MinLength and MaxLength count the characters of a string; 0 is no limit.
	MinLength, MaxLength int
	// MaxItems bounds a list; 0 is no limit.
	MaxItems int
	// Keys are the allowed names of a map.
	Keys []string
	// Required are fields that an object must have. ExactlyOne and AnyOf are fields of which it must have one, or at
	// least one.
	Required, ExactlyOne, AnyOf []string
	// Object restricts a json.RawMessage to objects.
	Object bool
	// Default is the value of a missing field: a string, a bool or an int64; nil for the zero value.
	Default any
	// Example is valid JSON for errors: the value, or an object around it. Values inside without an example use the
	// same.
	Example string
}

// Rules are the rules of values by their position, such as steps[].input.kind; * stands for any name of a map and the
// empty string for the document.
type Rules map[string]Rule

// Under returns the rules for values inside a position, relative to it.
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

// A Shape is a Go type with its rules. It is safe for concurrent use.
type Shape[T any] struct {
	root *node
	// Nulls accepts null for a missing value, as some clients write it, and also an empty text where only some words or
	// one form are allowed.
	Nulls bool
}

// Of returns the shape of T. A rule for a position that T does not have is a programming error and panics.
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
	own // decodes itself
)

// node is a type with its rule.
type node struct {
	kind    kind
	rule    Rule
	pattern *regexp.Regexp
	fields  map[string]field
	order   []string // of the fields, as the struct declares them
	inner   *node    // items of a list, values of a table
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

// maxInteger is the largest integer that every JSON implementation keeps exactly.
const maxInteger = 1<<53 - 1

// bounds returns what an integer may be.
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
