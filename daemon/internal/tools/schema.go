package tools

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// schema is a JSON Schema 2020-12 with the keywords that the tools use. Schemas are inferred from the structs of a
// tool's arguments and answer. The jsonschema tag of a field is its description, and the format tag its format. Options
// add keywords without a tag, and descriptions that do not fit on a line.
//
// The package github.com/google/jsonschema-go reads the same tag, but is more than ten times slower, which would delay
// every start of the daemon. It also represents null by a list of types, which some clients reject.
type schema struct {
	Type, Format, Pattern, Description               string
	Enum, Required                                   []string
	Default                                          any
	Minimum, Maximum, MinLength, MaxLength, MaxItems *int
	Items                                            *schema // of a list
	Values                                           *schema // of an object with arbitrary property names
	Properties                                       properties
	AnyOf                                            []*schema
	Closed                                           bool // no other properties are allowed
}

// properties keeps the order of the struct's fields, in which agents read them.
type properties []property

type property struct {
	name string
	*schema
}

// appendTo appends the schema as JSON. encoding/json would parse each inner schema again at every level around it.
func (s *schema) appendTo(out []byte) []byte {
	out = append(out, '{')
	add := func(keyword string, present bool, value any) {
		if !present {
			return
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = appendValue(append(out, `"`+keyword+`":`...), value)
	}
	add("type", s.Type != "", s.Type)
	add("format", s.Format != "", s.Format)
	add("pattern", s.Pattern != "", s.Pattern)
	add("enum", s.Enum != nil, s.Enum)
	add("default", s.Default != nil, s.Default)
	add("minimum", s.Minimum != nil, s.Minimum)
	add("maximum", s.Maximum != nil, s.Maximum)
	add("minLength", s.MinLength != nil, s.MinLength)
	add("maxLength", s.MaxLength != nil, s.MaxLength)
	add("maxItems", s.MaxItems != nil, s.MaxItems)
	add("description", s.Description != "", s.Description)
	add("items", s.Items != nil, s.Items)
	add("properties", s.Properties != nil, s.Properties)
	add("required", s.Required != nil, s.Required)
	add("additionalProperties", s.Values != nil, s.Values)
	add("additionalProperties", s.Closed, false)
	add("anyOf", s.AnyOf != nil, s.AnyOf)
	return append(out, '}')
}

func appendValue(out []byte, value any) []byte {
	switch v := value.(type) {
	case *schema:
		return v.appendTo(out)
	case properties:
		out = append(out, '{')
		for i, p := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = p.appendTo(append(out, `"`+p.name+`":`...))
		}
		return append(out, '}')
	case []*schema:
		out = append(out, '[')
		for i, s := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = s.appendTo(out)
		}
		return append(out, ']')
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic("schema: " + err.Error())
	}
	return append(out, data...)
}

func (p properties) find(name string) *schema {
	for _, one := range p {
		if one.name == name {
			return one.schema
		}
	}
	return nil
}

// rawOf is an argument with the schema of T, which the tool decodes later.
type rawOf[T any] struct{ json.RawMessage }

func (rawOf[T]) shape() reflect.Type { return reflect.TypeFor[T]() }

// infer returns the schema of the values into which t is marshalled. A pointer may be null unless nil is omitted.
func infer(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[glasses.Node]():
		return &schema{Type: "object"}
	case reflect.TypeFor[[]byte]():
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return infer(t.Elem())
	case reflect.Slice:
		return &schema{Type: "array", Items: infer(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Values: infer(t.Elem())}
	case reflect.Struct:
		if raw, ok := reflect.Zero(t).Interface().(interface{ shape() reflect.Type }); ok {
			return infer(raw.shape())
		}
		return &schema{Type: "object", Properties: inferFields(t)}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Interface:
		return &schema{AnyOf: []*schema{{Type: "string"}, {Type: "integer"}, {Type: "boolean"}}}
	default:
		return &schema{Type: "integer"}
	}
}

func inferFields(t reflect.Type) properties {
	fields := jsonFields(t)
	list := make(properties, 0, len(fields))
	for _, f := range fields {
		s := infer(f.Type)
		if f.Type.Kind() == reflect.Pointer && !strings.Contains(f.options, "omit") {
			s = orNull(s)
		}
		s.Description = f.Tag.Get("jsonschema")
		innermost(s).Format = f.Tag.Get("format")
		list = append(list, property{f.json, s})
	}
	return list
}

// orNull returns the schema of a value that may be null.
func orNull(s *schema) *schema { return &schema{AnyOf: []*schema{s, {Type: "null"}}} }

// jsonField is a field of a struct with its JSON name.
type jsonField struct {
	reflect.StructField
	json, options string
}

// jsonFields lists the fields that encoding/json writes, including the fields of embedded structs.
func jsonFields(t reflect.Type) []jsonField {
	visible := reflect.VisibleFields(t)
	list := make([]jsonField, 0, len(visible))
	for _, f := range visible {
		if tag, ok := f.Tag.Lookup("json"); ok && tag != "-" {
			name, options, _ := strings.Cut(tag, ",")
			list = append(list, jsonField{f, name, options})
		}
	}
	return list
}

// sharedAnswers describes properties that have the same meaning in several answers.
var sharedAnswers = map[string]string{
	"summary":   "The answer in a sentence.",
	"nextCalls": "Useful next calls; use their arguments unchanged.",
	"contents":  "Only for a client that cannot write files: the files to write.",
}

func (s *schema) describeShared() {
	for _, p := range s.Properties {
		if p.Description == "" {
			p.Description = sharedAnswers[p.name]
		}
	}
}

// argumentsOf returns the schema of the arguments A, which is a closed object. It does not specify a dialect, because
// MCP defines schemas as JSON Schema 2020-12.
func argumentsOf[A any](options ...option) json.RawMessage {
	root := infer(reflect.TypeFor[A]())
	for _, p := range root.Properties {
		if p.AnyOf != nil { // may be omitted but not null
			*p.schema = schema{Type: p.AnyOf[0].Type, Items: p.AnyOf[0].Items, Description: p.Description}
		}
	}
	with(options...)(root)
	closed(root)
	return root.appendTo(nil)
}

// answersOf returns the schema for all answers of a tool: successes, which have the fields of T, and errors.
func answersOf[T any](options ...option) json.RawMessage {
	root := infer(reflect.TypeFor[T]())
	always, _ := errorFields()
	root.addAll(always)
	root.addAll(noticeFields())
	root.describeShared()
	with(options...)(root)
	root.AnyOf = []*schema{{Required: root.Required}, {Required: []string{"code", "message", "retryable", "fixHint"}}}
	root.Required = nil
	return root.appendTo(nil)
}

// gatedAnswersOf is like answersOf, for a tool that may answer auth_required. status lists the other values of the
// field status.
func gatedAnswersOf[T any](status []string, options ...option) json.RawMessage {
	status = append([]string{statusAuthRequired}, status...)
	return answersOf[T](required("status", "summary"), on("status", oneOf(status...)),
		with(options...), func(root *schema) { root.addAll(authFields()) })
}

// errorFields returns the properties that every error has and the properties that only some errors have.
var errorFields = sync.OnceValues(func() (always, some properties) {
	t := reflect.TypeFor[problem.Error]()
	list := inferFields(t)
	for i, f := range jsonFields(t) {
		if f.options == "" {
			always = append(always, list[i])
		} else {
			some = append(some, list[i])
		}
	}
	return always, some
})

// NoticeField is the property of an answer that contains a notice for the user. The caller's transport adds it to one
// answer of any tool.
const NoticeField = "notice"

func noticeFields() properties {
	return properties{{NoticeField, &schema{Type: "string", Description: "Once per install: show it to the user."}}}
}

// alsoErrors adds properties that only some errors have.
func alsoErrors(names ...string) option {
	return func(root *schema) {
		_, some := errorFields()
		for _, p := range some {
			if slices.Contains(names, p.name) {
				root.addAll(properties{p})
			}
		}
	}
}

// authFields returns the properties of an answer that asks for a link.
var authFields = sync.OnceValue(func() properties {
	root := infer(reflect.TypeFor[linkRequest]())
	with(
		on("reason", oneOf("not_linked", "revoked", "expired", "corrupt", "other_backend")),
		on("verificationUrl", format("uri")), on("expiresInSeconds", notNegative),
	)(root)
	return root.Properties
})
