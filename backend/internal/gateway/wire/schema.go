package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/internal/problem"
)

// Limits on a body.
const (
	MaxBody   = 4 << 20 // bytes
	maxDepth  = 32
	maxNumber = 64  // characters
	maxList   = 512 // messages, or parts of one
)

// FieldError is a mistake in a request. Param is the path of the field, such as messages[0].role.
type FieldError struct{ Code, Param, Message string }

// Error returns the message.
func (e *FieldError) Error() string { return e.Message }

func invalid(path, format string, args ...any) error {
	return &FieldError{problem.CodeInvalidValue, path, path + " " + fmt.Sprintf(format, args...)}
}

func unsupported(path, why string) error {
	return &FieldError{problem.CodeUnsupportedParameter, path, path + " is not supported here" + why}
}

// decoder is the state of decoding one body.
type decoder struct {
	out        []byte                    // the encoded body
	taken      map[string]jsontext.Value // top-level fields that are kept separate, or noted
	images     int
	imageBytes int
	audio      int // characters of sound, in Base64
}

// rule checks a value and appends its encoding to d.out. To omit the field, it appends nothing.
type rule func(d *decoder, path string, v jsontext.Value) error

// text accepts a string of at most limit bytes.
func text(limit int) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		s, ok := stringOf(v)
		switch {
		case !ok:
			return invalid(path, "is not a string")
		case len(s) > limit:
			return invalid(path, "is over %d bytes", limit)
		}
		return d.quote(s)
	}
}

func stringOf(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// word accepts any of the given strings.
func word(choices ...string) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if s, ok := stringOf(v); ok && slices.Contains(choices, s) {
			return d.quote(s)
		}
		return invalid(path, "is not %s", strings.Join(choices, " or "))
	}
}

// number accepts a number from least to most.
func number(least, most float64) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		f, err := strconv.ParseFloat(string(v), 64)
		if v.Kind() != '0' || err != nil || f < least || f > most {
			return invalid(path, "is not a number from %v to %v", least, most)
		}
		return d.raw(v)
	}
}

// integer accepts a whole number from least to most.
func integer(least, most int64) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		n, err := strconv.ParseInt(string(v), 10, 64)
		if v.Kind() != '0' || err != nil || n < least || n > most {
			return invalid(path, "is not a whole number from %d to %d", least, most)
		}
		return d.raw(strconv.AppendInt(nil, n, 10))
	}
}

func boolean(d *decoder, path string, v jsontext.Value) error {
	if k := v.Kind(); k != 't' && k != 'f' {
		return invalid(path, "is not true or false")
	}
	return d.raw(v)
}

// only accepts a single value and refuses others as unsupported. why may contain an alternative.
func only(value, why string) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if string(v) != value {
			return unsupported(path, " with a value other than "+value+why)
		}
		return d.raw(v)
	}
}

// dropped accepts any value and omits it.
func dropped(*decoder, string, jsontext.Value) error { return nil }

// anything accepts any value. The caller must ensure that no value can cost money.
func anything(d *decoder, path string, v jsontext.Value) (err error) {
	if d.out, err = jsontext.AppendFormat(d.out, v); err != nil {
		return invalid(path, "is not valid JSON")
	}
	return nil
}

// anyObject accepts any object, such as a JSON schema.
func anyObject(d *decoder, path string, v jsontext.Value) error {
	if v.Kind() != '{' {
		return invalid(path, "is not an object")
	}
	return anything(d, path, v)
}

// orNull also accepts null, and omits it.
func orNull(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if v.Kind() == 'n' {
			return nil
		}
		return r(d, path, v)
	}
}

// byKind selects a rule by the kind of the value: string, array or object. If the rule is nil, the value is refused.
func byKind(str, array, object rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		r := map[jsontext.Kind]rule{'"': str, '[': array, '{': object}[v.Kind()]
		if r == nil {
			return invalid(path, "has the wrong type")
		}
		return r(d, path, v)
	}
}

// list accepts an array of at most limit elements.
func list(limit int, element rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if v.Kind() != '[' {
			return invalid(path, "is not a list")
		}
		n := 0
		d.out = append(d.out, '[')
		start := len(d.out)
		err := each(v, func(_ string, e jsontext.Value) error {
			at := fmt.Sprintf("%s[%d]", path, n)
			if n++; n > limit {
				return invalid(path, "has more than %d entries", limit)
			}
			return d.unlessOmitted(start, "", func() error { return element(d, at, e) })
		})
		d.out = append(d.out, ']')
		return err
	}
}

// each calls f with each member of a valid object, or with each element of a valid array and an empty name.
func each(v jsontext.Value, f func(name string, v jsontext.Value) error, o ...jsontext.Options) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(v), o...)
	start, err := d.ReadToken()
	if err != nil {
		return err
	}
	isObject := start.Kind() == '{' // a token is valid only until the next read
	for d.PeekKind() != ']' && d.PeekKind() != '}' {
		var name string
		if isObject {
			token, err := d.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		value, err := d.ReadValue()
		if err == nil {
			err = f(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fields are the allowed members of an object.
type fields map[string]rule

// object accepts an object that has all required members and only allowed ones.
func object(allowed fields, required ...string) rule { return objectRule(allowed, required, false) }

// answered is like object, but for a part of an answer that apps send back unchanged. Providers and clients add
// members and set others to null. It omits both.
func answered(allowed fields, required ...string) rule { return objectRule(allowed, required, true) }

func objectRule(allowed fields, required []string, isAnswer bool) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if v.Kind() != '{' {
			return invalid(path, "is not an object")
		}
		d.out = append(d.out, '{')
		start, seen := len(d.out), map[string]bool{}
		err := each(v, func(name string, value jsontext.Value) error {
			r, ok := allowed[name]
			switch {
			case isAnswer && (!ok || value.Kind() == 'n'):
				return nil
			case !ok:
				return unsupported(join(path, name), "")
			}
			seen[name] = true
			return d.unlessOmitted(start, name, func() error { return r(d, join(path, name), value) })
		})
		if err != nil {
			return err
		}
		for _, name := range required {
			if !seen[name] {
				return invalid(join(path, name), "is missing")
			}
		}
		d.out = append(d.out, '}')
		return nil
	}
}

// unlessOmitted appends a member with this name, or an element if name is empty, to the object or list whose content
// begins at start. If add appends nothing, unlessOmitted appends nothing either.
func (d *decoder) unlessOmitted(start int, name string, add func() error) error {
	before := len(d.out)
	if before > start {
		d.out = append(d.out, ',')
	}
	if name != "" {
		if err := d.quote(name); err != nil {
			return err
		}
		d.out = append(d.out, ':')
	}
	empty := len(d.out)
	if err := add(); err != nil {
		return err
	}
	if len(d.out) == empty {
		d.out = d.out[:before]
	}
	return nil
}

func (d *decoder) quote(s string) (err error) {
	d.out, err = jsontext.AppendQuote(d.out, s)
	return err
}

func (d *decoder) raw(text []byte) error {
	d.out = append(d.out, text...)
	return nil
}

// take checks a top-level field and keeps its value separate from the encoded body.
func take(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		before := len(d.out)
		if err := r(d, path, v); err != nil {
			return err
		}
		if len(d.out) > before {
			d.taken[path], d.out = v.Clone(), d.out[:before]
		}
		return nil
	}
}

// note is like r, and also keeps the value of a top-level field.
func note(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		d.taken[path] = v.Clone()
		return r(d, path, v)
	}
}

// image counts an image, because its size does not determine its number of tokens.
func image(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		before := len(d.out)
		err := r(d, path, v)
		d.images, d.imageBytes = d.images+1, d.imageBytes+len(d.out)-before
		return err
	}
}

// variant accepts an object whose member kind selects the rule. If that member is missing, fallback applies.
func variant(kind, fallback string, choices map[string]rule) rule {
	return variantRule(kind, fallback, choices, nil)
}

// answeredPart is like variant, but for a part of an answer. It omits parts of other types, such as a provider's own.
func answeredPart(choices map[string]rule) rule { return variantRule("type", "", choices, dropped) }

func variantRule(kind, fallback string, choices map[string]rule, other rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if v.Kind() != '{' {
			return invalid(path, "is not an object")
		}
		chosen := fallback
		if err := each(v, func(name string, value jsontext.Value) error {
			if name == kind {
				chosen, _ = stringOf(value)
			}
			return nil
		}); err != nil {
			return err
		}
		r, ok := choices[chosen]
		if !ok {
			r = other
		}
		if r == nil {
			return unsupported(join(path, kind), " with the value "+strconv.Quote(clip(chosen)))
		}
		return r(d, path, v)
	}
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 40)], "") }

func join(path, name string) string {
	name = clip(name)
	if path == "" {
		return name
	}
	return path + "." + name
}
