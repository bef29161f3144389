package tools

import (
	"encoding/json"
	"slices"
)

// shownDepth is the number of property levels in a compact schema. Only the answer's own properties are shown.
const shownDepth = 1

// Compact returns an output schema for the list of tools. Clients use it to validate answers and do not show it to a
// model. It therefore contains only properties and types. It omits the fields of errors, auth_required and the notice,
// which every tool has. Every answer that matches the full schema also matches this one.
func Compact(schema json.RawMessage) json.RawMessage {
	var whole map[string]any
	if json.Unmarshal(schema, &whole) != nil {
		return schema
	}
	delete(whole, "anyOf") // anyOf only restricts which of the common fields occur together
	if properties, ok := whole["properties"].(map[string]any); ok {
		for _, name := range commonFields() {
			delete(properties, name)
		}
	}
	data, err := json.Marshal(bare(whole, shownDepth))
	if err != nil {
		return schema
	}
	return data
}

// commonFields returns the properties of errors, auth_required and the notice.
func commonFields() []string {
	var names []string
	always, some := errorFields()
	for _, p := range slices.Concat(always, some, authFields(), noticeFields()) {
		names = append(names, p.name)
	}
	return names
}

// leftOut lists the keywords that a compact schema omits.
var leftOut = []string{"description", "format", "pattern", "enum", "default", "minimum", "maximum", "minLength",
	"maxLength", "maxItems", "required", "items"}

// bare removes from a schema the keywords in leftOut and the properties of objects below depth.
func bare(schema any, depth int) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = bare(s[i], depth)
		}
	case map[string]any:
		for _, keyword := range leftOut {
			delete(s, keyword)
		}
		properties, _ := s["properties"].(map[string]any)
		delete(s, "properties")
		for key, value := range s {
			s[key] = bare(value, depth)
		}
		for name, value := range properties {
			properties[name] = bare(value, depth-1)
		}
		if properties != nil && depth > 0 {
			s["properties"] = properties
		}
	}
	return schema
}
