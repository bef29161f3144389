package strictjson

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxQuoted is the maximum number of characters of a wrong value that an error quotes.
const maxQuoted = 60

func quote(s string) string {
	if r := []rune(s); len(r) > maxQuoted {
		s = string(r[:maxQuoted-1]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

func (d *decoder) checkText(n *node, s string) error {
	length := utf8.RuneCountInString(s)
	switch r := n.rule; {
	case r.Words != nil && !slices.Contains(r.Words, s), n.pattern != nil && !n.pattern.MatchString(s):
		return d.refuse(n, "it is %s", quote(s))
	case length < r.MinLength, r.MaxLength > 0 && length > r.MaxLength:
		return d.refuse(n, "it has %d characters", length)
	}
	return nil
}

// checkNames checks the names of the fields in an object.
func (d *decoder) checkNames(n *node, given []string) error {
	for _, name := range n.rule.Required {
		if !slices.Contains(given, name) {
			e := d.refuse(n, "it is missing")
			e.Path, e.Want = strings.TrimPrefix(e.Path+"."+name, "."), n.fields[name].want()
			return e
		}
	}
	if one := common(n.rule.ExactlyOne, given); n.rule.ExactlyOne != nil && len(one) != 1 {
		said := "it has none of them"
		if len(one) > 1 {
			said = "it has " + strings.Join(one, " and ")
		}
		e := d.refuse(n, "%s", said)
		e.Want = "exactly one of " + strings.Join(n.rule.ExactlyOne, ", ")
		return e
	}
	if n.rule.AnyOf != nil && len(common(n.rule.AnyOf, given)) == 0 {
		e := d.refuse(n, "it has none of them")
		e.Want = "at least one of " + strings.Join(n.rule.AnyOf, ", ")
		return e
	}
	return nil
}

func common(names, given []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(given, name) })
}

// want describes the valid values of a node.
func (n *node) want() string {
	r := n.rule
	switch n.kind {
	case text:
		switch {
		case r.Words != nil:
			return "a string, one of " + strings.Join(r.Words, ", ")
		case r.Form != "":
			return r.Form
		case r.MaxLength > 0:
			return fmt.Sprintf("a string of %d to %d characters", r.MinLength, r.MaxLength)
		}
		return "a string"
	case integer:
		if r.Min != nil || r.Max != nil {
			low, high := r.bounds()
			if low == high {
				return fmt.Sprintf("the integer %d", low)
			}
			return fmt.Sprintf("an integer from %d to %d", low, high)
		}
		return "an integer"
	case boolean:
		return "true or false"
	case list:
		if r.MaxItems > 0 {
			return fmt.Sprintf("a list of at most %d items", r.MaxItems)
		}
		return "a list"
	case object:
		return "an object with " + strings.Join(n.order, ", ")
	case table:
		return "an object"
	}
	if r.Object {
		return "an object"
	}
	return "another value"
}

// typeOf returns the name of the JSON type of a value that begins with tok.
func typeOf(tok json.Token) string {
	switch v := tok.(type) {
	case json.Delim:
		if v == '[' {
			return "a list"
		}
		return "an object"
	case string:
		return "the string " + quote(v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return "null"
}
