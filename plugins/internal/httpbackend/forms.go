package httpbackend

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/proto/backendapi"
)

// form reports whether a value is valid for a field. Empty values are not checked; required lists the fields that
// must not be empty.
type form func(value string) bool

// forms maps the JSON names of all text fields in all responses of a backend to their forms. A response that contains
// a text field without a form is refused, so a new field needs a line here.
var forms = map[string]form{
	// Credentials. The backend defines the format of authToken; any token of RFC 6750 fits in a header.
	"authToken":  token68(4096),
	"deviceCode": visible(512),
	"projectKey": token68(512),
	"appSecret":  token68(512),
	"userCode":   regexp.MustCompile(`^[A-Z0-9]{4}-[A-Z0-9]{4}$`).MatchString,

	// Identifiers.
	"accountId": name(64),
	"tier":      name(64),
	"sessionId": name(128),
	"id":        modelID,
	"provider":  name(64),
	"project":   text(200),
	"hint":      text(64),
	"setBy":     text(200),
	"updatedBy": text(200),
	"email":     text(254),

	// Values of enumerations.
	"state": name(32), "platform": name(64), "platforms": name(64), "deviceModel": name(64), "theme": name(32),
	"capabilities": name(64), "testResult": name(32), "interval": name(32), "approximate": text(100),
	"realtimeModel": name(128), "voice": name(128), "memoryModel": name(128), "voices": name(128),
	"textModel": name(128), "why": prose(1000), "model": modelID, "resolves": modelID, "api": name(32),
	"source": name(32), "keySource": name(32), "code": name(64),
	"access": name(64), "assistantConfig": name(64), "credentials": name(64), "analytics": name(64),
	"accent": name(32), "sha256": name(64), "changed": name(64),

	// Times.
	"linkedAt": timestamp, "expiresAt": timestamp, "createdAt": timestamp, "lastActiveAt": timestamp,
	"closedAt": timestamp, "updatedAt": timestamp, "setAt": timestamp, "testedAt": timestamp,
	"from": timestamp, "to": timestamp, "at": timestamp, "resetsAt": timestamp, "lastAt": timestamp,

	// URLs. The code that opens verificationUrl decides whether it may be opened; it is always shown.
	"verificationUrl": printableASCII(512),
	"sessionUrl":      encrypted(address("http", "https"), loopback.IsBrowserHost),
	"appEndpoint":     encrypted(address("ws", "wss"), loopback.IsHost),
	"dashboardUrl":    encrypted(address("http", "https"), loopback.IsBrowserHost),
	"pageUrl":         encrypted(address("http", "https"), loopback.IsBrowserHost),
	"url":             encrypted(address("http", "https"), loopback.IsBrowserHost),
	"topUp":           encrypted(address("http", "https"), loopback.IsBrowserHost),
	"supportUrl":      address("http", "https", "mailto"),
	"privacyUrl":      address("http", "https"),

	// Texts for users.
	"displayName": text(200), "name": text(200), "title": text(200), "label": text(200), "phrase": text(200),
	"does": text(500), "description": prose(4000), "note": prose(1000), "reading": prose(2000), "summary": prose(2000),
	"fixHint": prose(1000), "html": prose(maxBody),

	// Health.
	"service": text(64), "version": text(64), "commit": text(64), "builtAt": text(64), "phase": text(64),
	"hints": text(500),
}

// Limits of the lists and maps in a response. An entry can be as short as three bytes on the wire but takes many
// times that in memory, here and in the daemon. Backends list at most 500 projects or events.
const (
	maxEntries = 1000   // per list or map
	maxInAll   = 20_000 // in all lists and maps of a response together
)

var errMissing = errors.New("a required field is missing")

// checkForms checks every text of a decoded response, the number of entries, and that every required field is
// present. Its error names the field but never quotes the value, and wraps errMissing if a field is missing.
func checkForms(answer any) error {
	var w walker
	return w.walk("", reflect.ValueOf(answer))
}

// walker checks one response and counts the entries of its lists and maps.
type walker struct{ entries int }

// walk checks v, the value of a JSON field. The caller checks raw JSON.
func (w *walker) walk(field string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return w.walk(field, v.Elem())
	case reflect.String:
		return checkForm(field, v.String())
	case reflect.Int, reflect.Int64:
		if counted[field] && v.Int() < 0 {
			return fmt.Errorf("field %q is negative", field)
		}
	case reflect.Struct:
		return w.walkFields(field, v)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		if err := w.count(field, v.Len()); err != nil {
			return err
		}
		for i := range v.Len() {
			if err := w.walk(field, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if err := w.count(field, v.Len()); err != nil {
			return err
		}
		for _, key := range v.MapKeys() {
			if !name(64)(key.String()) {
				return fmt.Errorf("field %q has a malformed key", field)
			}
			if err := w.walk(field, v.MapIndex(key)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) walkFields(parent string, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && field == "" {
			field = parent
		} else if slices.Contains(required[v.Type()], field) && missing(v.Field(i)) {
			return fmt.Errorf("%w: %q", errMissing, field)
		}
		if err := w.walk(field, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// missing reports whether a required field is absent or empty. A required number must be positive, and required raw
// JSON must be an object.
func missing(v reflect.Value) bool {
	if raw, ok := v.Interface().(json.RawMessage); ok {
		return len(raw) == 0 || raw[0] != '{'
	}
	return v.IsZero() || v.CanInt() && v.Int() < 0
}

func (w *walker) count(field string, n int) error {
	if w.entries += n; n > maxEntries || w.entries > maxInAll {
		return fmt.Errorf("field %q has too many entries", field)
	}
	return nil
}

func checkForm(field, value string) error {
	fits, known := forms[field]
	if value == "" || known && fits(value) {
		return nil
	}
	return fmt.Errorf("field %q is malformed", field)
}

// token68 accepts a bearer token of RFC 6750.
func token68(most int) form {
	pattern := regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	return func(s string) bool { return len(s) <= most && pattern.MatchString(s) }
}

// visible accepts printable ASCII without spaces.
func visible(most int) form {
	return func(s string) bool {
		return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
	}
}

// printableASCII accepts printable ASCII with spaces.
func printableASCII(most int) form {
	return func(s string) bool {
		return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	}
}

// name accepts identifiers.
func name(most int) form {
	return func(s string) bool { return backendapi.IsName(s, most) }
}

// modelID accepts model ids; other ids have the same form.
var modelID = name(backendapi.MaxModelID)

// text accepts one line of text for users.
func text(most int) form {
	return func(s string) bool {
		return utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, unsafeInText)
	}
}

// prose accepts multi-line text.
func prose(most int) form {
	return func(s string) bool {
		return utf8.RuneCountInString(s) <= most &&
			!strings.ContainsFunc(s, func(r rune) bool {
				return r != '\n' && r != '\t' && r != '\r' &&
					unsafeInText(r)
			})
	}
}

// unsafeInText reports control characters, and characters that hide text or change the order in which it is shown. It
// allows joiners and other marks of writing systems.
func unsafeInText(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	// Bidirectional embeddings, overrides and isolates.
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f // invisible tag characters
}

// timestamp accepts RFC 3339.
func timestamp(s string) bool {
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil && len(s) <= 40
}

// encrypted restricts f: plain http or ws is accepted only if isOwn reports that the host is this machine, because
// secrets are sent to these URLs.
func encrypted(f form, isOwn func(host string) bool) form {
	return func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && f(s) && (u.Scheme == "https" || u.Scheme == "wss" || isOwn(u.Hostname()))
	}
}

// address accepts an absolute URL with one of the given schemes.
func address(schemes ...string) form {
	plain := visible(2048)
	return func(s string) bool {
		u, err := url.Parse(s)
		if err != nil || !plain(s) || u.User != nil {
			return false
		}
		return slices.Contains(schemes, u.Scheme) && (u.Scheme == "mailto" || u.Host != "")
	}
}
