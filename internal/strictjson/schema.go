package strictjson

import (
	"slices"
	"strings"
)

// Schema returns the JSON Schema 2020-12 of the documents that Decode accepts, in a form for encoding/json. The schema
// is less strict than Decode only where Error.Beyond is set.
func (s *Shape[T]) Schema() map[string]any { return s.root.schema() }

func (n *node) schema() map[string]any {
	r := n.rule
	out := map[string]any{}
	if r.What != "" {
		out["description"] = r.What
	}
	if r.Default != nil {
		out["default"] = r.Default
	}
	switch n.kind {
	case text:
		out["type"] = "string"
		if r.Words != nil {
			out["enum"] = r.Words
		}
		if r.Pattern != "" {
			out["pattern"] = r.Pattern
		}
		if r.MinLength > 0 {
			out["minLength"] = r.MinLength
		}
		if r.MaxLength > 0 {
			out["maxLength"] = r.MaxLength
		}
	case integer:
		out["type"] = "integer"
		out["minimum"], out["maximum"] = r.bounds()
	case boolean:
		out["type"] = "boolean"
	case list:
		out["type"], out["items"] = "array", n.inner.schema()
		if r.MaxItems > 0 {
			out["maxItems"] = r.MaxItems
		}
	case table:
		out["type"], out["additionalProperties"] = "object", n.inner.schema()
		if r.Keys != nil {
			out["propertyNames"] = map[string]any{"enum": r.Keys}
		}
	case object:
		n.objectSchema(out)
	default:
		if r.Object {
			out["type"] = "object"
		}
	}
	return out
}

func (n *node) objectSchema(out map[string]any) {
	properties := map[string]any{}
	for name, f := range n.fields {
		properties[name] = f.schema()
	}
	out["type"], out["properties"], out["additionalProperties"] = "object", properties, false
	if n.rule.Required != nil {
		out["required"] = n.rule.Required
	}
	each := func(names []string) (list []any) {
		for _, name := range names {
			list = append(list, map[string]any{"required": []string{name}})
		}
		return list
	}
	if n.rule.ExactlyOne != nil {
		out["oneOf"] = each(n.rule.ExactlyOne)
	}
	if n.rule.AnyOf != nil {
		out["anyOf"] = each(n.rule.AnyOf)
	}
}

// Field is a field of an object, for documentation.
type Field struct {
	// Name is the position of the field within the object, e.g. battery.level.
	Name string
	// What describes the field, and Want its valid values.
	What, Want string
	Required   bool
	Default    any
}

// Fields returns the fields of the object at a position such as steps[].input. Fields of inner objects follow their
// object. It returns nil if there is no object at the position.
func (s *Shape[T]) Fields(place string) []Field { return s.find(place).describe("") }

// Want describes the valid values at a position, e.g. "an integer from 0 to 100".
func (s *Shape[T]) Want(place string) string { return s.find(place).want() }

func (s *Shape[T]) find(place string) *node {
	n := s.root
	for part := range strings.SplitSeq(strings.ReplaceAll(place, "[]", ".[]"), ".") {
		switch {
		case part == "[]":
			n = n.inner
		case part != "":
			n = n.fields[part].node
		}
	}
	return n
}

func (n *node) describe(prefix string) (list []Field) {
	for _, name := range n.order {
		f := n.fields[name]
		list = append(list, Field{Name: prefix + name, What: f.rule.What, Want: f.want(), Default: f.rule.Default,
			Required: slices.Contains(n.rule.Required, name)})
		list = append(list, f.describe(prefix+name+".")...)
	}
	return list
}
