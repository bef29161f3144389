package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/proto/glasses"
)

// Error is why a file is no scenario. Path names the place, e.g. steps[3].expect.type; it is empty for the whole file.
type Error struct {
	Path    string
	Message string
}

// Error gives place and reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

func bad(path, format string, args ...any) error {
	return &Error{path, fmt.Sprintf(format, args...)}
}

// Parse reads a file. Unknown fields, steps that are nothing or two things, and values out of bounds are refused. The
// error is an *Error. Files that it names are not looked at.
func Parse(data []byte) (Scenario, error) {
	if len(data) > MaxFile {
		return Scenario{}, bad("", "the file is %d bytes, the limit is %d", len(data), MaxFile)
	}
	if !utf8.Valid(data) {
		return Scenario{}, bad("", "the file is not UTF-8")
	}
	if err := strict(data, reflect.TypeFor[Scenario](), ""); err != nil {
		return Scenario{}, err
	}
	var s Scenario
	if err := json.Unmarshal(data, &s); err != nil {
		return Scenario{}, wrongType(err)
	}
	return s, s.check()
}

// strict walks the JSON along a Go type and refuses what the type does not know, and keys that come twice.
func strict(data []byte, t reflect.Type, at string) error {
	dec := &decoder{Decoder: json.NewDecoder(bytes.NewReader(data))}
	dec.UseNumber()
	if err := walk(dec, t, at, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad(at, "there is more after the end of the JSON")
	}
	return nil
}

// decoder counts the objects that stand in lists: each takes much more to hold than the three bytes that write it, so a
// file is refused before they are made.
type decoder struct {
	*json.Decoder
	objects int
}

// maxObjects is more than any scenario within the other limits holds in lists.
const maxObjects = 4 * MaxTrace

// item counts an item of the list at path.
func (d *decoder) item(t reflect.Type, path string, i int) error {
	if path == "steps" && i >= MaxSteps {
		return bad(path, "there are more than %d", MaxSteps)
	}
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if d.objects++; d.objects > maxObjects {
		return bad(path, "the lists of the file have more than %d items", maxObjects)
	}
	return nil
}

// maxNesting is deeper than anything that a scenario needs.
const maxNesting = 100

func walk(dec *decoder, t reflect.Type, path string, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return bad(path, "it is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if depth > maxNesting {
		return bad(path, "it is nested deeper than %d", maxNesting)
	}
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch tok {
	case json.Delim('{'):
		return walkObject(dec, t, path, depth)
	case json.Delim('['):
		var item reflect.Type
		if t != nil && t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]() {
			item = t.Elem()
		}
		for i := 0; dec.More(); i++ {
			if err := dec.item(item, path, i); err != nil {
				return err
			}
			if err := walk(dec, item, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
		_, err := dec.Token()
		return notJSON(path, err)
	}
	return nil
}

func walkObject(dec *decoder, t reflect.Type, path string, depth int) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return notJSON(path, err)
		}
		name, _ := tok.(string)
		inner := strings.TrimPrefix(path+"."+name, ".")
		if seen[name] {
			return bad(inner, "it is there twice")
		}
		seen[name] = true
		next, ok := fields[name]
		if fields != nil && !ok {
			return bad(inner, "there is no such field here; known are %s", strings.Join(names(fields), ", "))
		}
		if err := walk(dec, next, inner, depth+1); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return notJSON(path, err)
}

func notJSON(path string, err error) error {
	if err == nil {
		return nil
	}
	return bad(path, "it is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// fieldsOf gives the JSON names of a struct; nil for what may hold anything.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Type
	}
	return fields
}

func names(fields map[string]reflect.Type) []string {
	var list []string
	for name := range fields {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// indexPattern finds a list index in the dotted paths of encoding/json.
var indexPattern = regexp.MustCompile(`\.(\d+)`)

func wrongType(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return bad(indexPattern.ReplaceAllString(typed.Field, "[$1]"), "a %s does not belong here", strings.Fields(typed.Value)[0])
	}
	return bad("", "it is not JSON: %s", err)
}

func (s *Scenario) check() error {
	switch {
	case s.Scenario != Version:
		return bad("scenario", "it is %d, this version reads %d", s.Scenario, Version)
	case !validName(s.Name):
		return bad("name", "it needs 1 to %d printable characters", MaxName)
	case !slices.Contains([]string{"", "virtual", "real"}, s.Clock):
		return bad("clock", "it is neither virtual nor real")
	case len(s.Steps) > MaxSteps:
		return bad("steps", "there are %d, the limit is %d", len(s.Steps), MaxSteps)
	case s.App != nil && len(s.App.Command) == 0:
		return bad("app.command", "it needs the program to start")
	}
	if s.DeviceModel != "" {
		if err := checkModel("deviceModel", s.DeviceModel); err != nil {
			return err
		}
	}
	for i := range s.Steps {
		if err := s.Steps[i].check(fmt.Sprintf("steps[%d]", i)); err != nil {
			return err
		}
	}
	return s.Recorded.check()
}

func validName(name string) bool {
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= MaxName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func checkModel(path, id string) error {
	if _, ok := glasses.Model(id); !ok {
		return bad(path, "%q is not the id of a known model", id)
	}
	return nil
}

// control gives the control frame of a step that makes something happen without a file.
func (s *Step) control() (typ string, payload any) {
	switch s.Act() {
	case "input":
		return glasses.SimInput, s.Input
	case "transcript":
		return glasses.SimTranscript, s.Transcript
	case "state":
		return glasses.SimState, s.State
	case "motion":
		return glasses.SimMotion, s.Motion
	case "fault":
		return glasses.SimFault, s.Fault
	case "device":
		return glasses.SimDevice, glasses.DeviceChoice{DeviceModel: *s.Device}
	}
	return "", nil
}

// Control gives the control frame of a step that makes something happen; ok is false for the others. file is the path
// of the picture or the sound that goes with it, if any.
func (s *Step) Control() (typ string, payload any, file string, ok bool) {
	switch s.Act() {
	case "camera":
		return glasses.SimCamera, struct{}{}, *s.Camera, true
	case "microphone":
		return glasses.SimMicrophone, struct{}{}, *s.Microphone, true
	}
	typ, payload = s.control()
	return typ, payload, "", typ != ""
}

func (s *Step) check(path string) error {
	act := s.Act()
	if act == "" {
		return bad(path, "a step is exactly one of input, transcript, state, motion, fault, device, camera, microphone, advance, expect, expectDisplay and picture")
	}
	path += "." + act
	if typ, payload := s.control(); typ != "" {
		raw, err := json.Marshal(payload)
		if err == nil {
			_, err = glasses.ParseControl(typ, raw)
		}
		if err != nil {
			return bad(path, "%s", err)
		}
		return nil
	}
	switch act {
	case "advance":
		if *s.Advance < 0 || *s.Advance > MaxAdvance {
			return bad(path, "it is %d ms, it goes from 0 to %d", *s.Advance, MaxAdvance)
		}
	case "picture":
		if !validName(*s.Picture) || strings.ContainsAny(*s.Picture, `/\:`) || strings.HasPrefix(*s.Picture, ".") {
			return bad(path, "a picture's name has 1 to %d printable characters, no path and no dot in front", MaxName)
		}
	case "expect":
		return s.Expect.check(path)
	case "expectDisplay":
		return s.ExpectDisplay.check(path)
	}
	return nil
}

func (e *Expect) check(path string) error {
	switch {
	case e.Type == "" || len(e.Type) > glasses.MaxType:
		return bad(path+".type", "it needs the type of a row, e.g. display.show")
	case !slices.Contains([]string{"", glasses.KindRequest, glasses.KindResult, glasses.KindEvent}, e.Kind):
		return bad(path+".kind", "it is none of request, result and event")
	case len(e.Payload) > 0 && e.Payload[0] != '{':
		return bad(path+".payload", "it is not an object")
	}
	return checkWithin(path, e.WithinMs)
}

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (e *ExpectDisplay) check(path string) error {
	if len(e.Text) == 0 && e.Focus == nil && e.Picture == "" {
		return bad(path, "it needs text, focus or picture")
	}
	if e.Picture != "" && !hashPattern.MatchString(e.Picture) {
		return bad(path+".picture", "it is not a SHA-256 in lower-case hex")
	}
	return checkWithin(path, e.WithinMs)
}

func checkWithin(path string, ms *int64) error {
	if ms != nil && (*ms < 0 || *ms > MaxWithin) {
		return bad(path+".withinMs", "it is %d, it goes from 0 to %d", *ms, MaxWithin)
	}
	return nil
}

var mediaPattern = regexp.MustCompile(`^[0-9a-f]{64}(\.[a-z0-9]{1,8})?$`)

func (r *Recorded) check() error {
	if r == nil {
		return nil
	}
	if r.Clock != "virtual" && r.Clock != "real" {
		return bad("recorded.clock", "it is neither virtual nor real")
	}
	if len(r.Trace) > MaxTrace || len(r.Pictures) > MaxTrace || len(r.Media) > MaxTrace {
		return bad("recorded", "it is longer than %d", MaxTrace)
	}
	for i, p := range r.Pictures {
		if !hashPattern.MatchString(p.SHA256) {
			return bad(fmt.Sprintf("recorded.pictures[%d].sha256", i), "it is not a SHA-256 in lower-case hex")
		}
	}
	for i, name := range r.Media {
		if !mediaPattern.MatchString(name) {
			return bad(fmt.Sprintf("recorded.media[%d]", i), "it is not a SHA-256 with an extension")
		}
	}
	return nil
}
