package backendapi

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of the lists and maps in a response. An entry can be as short as three bytes on the wire, but needs many times
// that in memory. Backends list at most 500 projects or events.
const (
	maxEntries = 1000   // per list or map
	maxInAll   = 20_000 // in all lists and maps of a response together
)

// FixHintMismatch is the fix hint for every response that does not match this package.
const FixHintMismatch = "Update the service, or check SERVICE_BACKEND_URL: the backend does not match this version."

// ErrMissing is returned if a response lacks a required field.
var ErrMissing = errors.New("a required field is missing")

// lenient accepts text that backends pass on unchanged from apps, such as half of an emoji.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Decode decodes the body of a successful response into answer and checks it. answer points to a response type of this
// package. Unknown fields are ignored. Errors name the field but never quote the body, which may contain a secret.
func Decode(body []byte, answer any) error {
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	err := json.Unmarshal(body, answer, lenient, json.WithUnmarshalers(limitLists()))
	var limit *tooMany
	var wrong *json.SemanticError
	switch {
	case errors.As(err, &limit):
		return limit
	case errors.As(err, &wrong):
		return fmt.Errorf("field %q has the wrong type", fieldAt(wrong.JSONPointer))
	case err != nil:
		return errors.New("it is not valid JSON")
	}
	if err := checkPresent(body, reflect.TypeOf(answer).Elem()); err != nil {
		return err
	}
	return Check(answer)
}

// Check checks every text of a response type of this package, the number of its entries, and that every required field
// is present. A text field without a rule must be empty. Errors name the field but never quote the value. An error for
// a missing field wraps ErrMissing.
func Check(answer any) error {
	var w walker
	if err := w.walk(rule{}, reflect.ValueOf(answer)); err != nil {
		return err
	}
	if c, ok := answer.(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}

// TokenAnswer is the response to a TokenRequest in the form for its caller: the fields of Pending, or a Token.
type TokenAnswer struct {
	Pending             bool  `json:"pending"`
	PollIntervalSeconds int64 `json:"pollIntervalSeconds"`
	*Token
}

// check returns an error unless the response is either pending or a token.
func (a *TokenAnswer) check() error {
	switch {
	case a.Pending && a.Token != nil:
		return errors.New("it is pending and has a token")
	case !a.Pending && a.Token == nil:
		return ErrMissing
	}
	return nil
}

// tooMany is the error for a list or a map with too many entries.
type tooMany struct{ field string }

func (e *tooMany) Error() string { return fmt.Sprintf("field %q has too many entries", e.field) }

// limitLists returns a hook that counts the entries of lists before each entry is decoded, so that a small body cannot
// use much memory. The hook leaves the decoding to package json (ErrUnsupported).
func limitLists() *json.Unmarshalers {
	inAll := 0
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
		kind, length := d.StackIndex(d.StackDepth())
		if kind != '[' {
			return errors.ErrUnsupported
		}
		if inAll++; length >= maxEntries || inAll > maxInAll {
			return &tooMany{fieldAt(d.StackPointer().Parent())}
		}
		return errors.ErrUnsupported
	})
}

// fieldAt returns the name of the field at or around a position, for use in an error.
func fieldAt(at jsontext.Pointer) string {
	const most = 60 // bytes
	name := ""
	for token := range at.Tokens() {
		if _, err := strconv.Atoi(token); err != nil {
			name = token
		}
	}
	return name[:min(len(name), most)]
}

// checkPresent returns an error if body lacks a field with the rule present. Such a field may be zero.
func checkPresent(body []byte, answer reflect.Type) error {
	var given map[string]jsontext.Value
	for i := range answer.NumField() {
		r := ruleOf(answer.Field(i))
		if !r.present {
			continue
		}
		if given == nil {
			if err := json.Unmarshal(body, &given, lenient); err != nil {
				return errors.New("it is not a JSON object")
			}
		}
		if kind := given[r.field].Kind(); kind == jsontext.KindInvalid || kind == jsontext.KindNull {
			return fmt.Errorf("%w: %q", ErrMissing, r.field)
		}
	}
	return nil
}

// rule is the rule for a field of a response. The field's tag check contains a form, which may have a maximum length
// after =, and the words required (neither empty nor zero), present (may be zero) and unsigned.
type rule struct {
	field                       string
	fits                        form // nil if the tag has none
	most                        int
	required, present, unsigned bool
}

func ruleOf(f reflect.StructField) rule {
	var r rule
	r.field, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	tag := f.Tag.Get("check")
	for word := range strings.SplitSeq(tag, ",") {
		name, most, _ := strings.Cut(word, "=")
		switch name {
		case "required":
			r.required = true
		case "present":
			r.present = true
		case "unsigned":
			r.unsigned = true
		default:
			r.fits = forms[name]
			r.most, _ = strconv.Atoi(most)
		}
	}
	return r
}

// walker checks one response and counts the entries of its lists and maps.
type walker struct{ entries int }

// walk checks v, the value of a field with the rule r. The caller checks raw JSON.
func (w *walker) walk(r rule, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return w.walk(r, v.Elem())
	case reflect.String:
		if text := v.String(); text != "" && (r.fits == nil || !r.fits(text, r.most)) {
			return fmt.Errorf("field %q is malformed", r.field)
		}
	case reflect.Int, reflect.Int64:
		if r.unsigned && v.Int() < 0 {
			return fmt.Errorf("field %q is negative", r.field)
		}
	case reflect.Struct:
		return w.walkFields(r, v)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return w.walkList(r, v)
	case reflect.Map:
		return w.walkMap(r, v)
	}
	return nil
}

func (w *walker) walkFields(parent rule, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		r := ruleOf(f)
		if f.Anonymous && r.field == "" {
			r = parent
		} else if r.required && isMissing(v.Field(i)) {
			return fmt.Errorf("%w: %q", ErrMissing, r.field)
		}
		if err := w.walk(r, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// isMissing reports whether a required field is absent or empty. A required number must be positive, and required raw
// JSON must be an object.
func isMissing(v reflect.Value) bool {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return !bytes.HasPrefix(v.Bytes(), []byte("{"))
	}
	return v.IsZero() || v.CanInt() && v.Int() < 0
}

func (w *walker) walkList(r rule, v reflect.Value) error {
	if err := w.count(r, v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := w.walk(r, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) walkMap(r rule, v reflect.Value) error {
	if err := w.count(r, v.Len()); err != nil {
		return err
	}
	for _, key := range v.MapKeys() {
		if !IsName(key.String(), maxKey) {
			return fmt.Errorf("field %q has a malformed key", r.field)
		}
		if err := w.walk(r, v.MapIndex(key)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) count(r rule, n int) error {
	if w.entries += n; n > maxEntries || w.entries > maxInAll {
		return &tooMany{r.field}
	}
	return nil
}
