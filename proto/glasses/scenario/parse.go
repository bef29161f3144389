package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/proto/glasses"
)

// Error says why a file is not a valid scenario. Path is the place, e.g. steps[3].expect.type; it is empty for the
// whole file.
type Error struct {
	Path    string
	Message string
}

// Error returns place and reason.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

func bad(path, format string, args ...any) error {
	return &Error{path, fmt.Sprintf(format, args...)}
}

// Parse decodes and checks a file. It refuses unknown fields, steps without or with several actions, and values out
// of bounds. The error is an *Error. Files that the scenario names are not checked.
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

// strict compares the JSON with a Go type and refuses unknown fields and duplicate keys.
func strict(data []byte, t reflect.Type, at string) error {
	dec := &decoder{Decoder: json.NewDecoder(bytes.NewReader(data))}
	dec.UseNumber()
	if err := walk(dec, t, at, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad(at, "unexpected data after the end of the JSON")
	}
	return nil
}

// decoder counts the objects in lists. Each takes much more memory than the three bytes that write it, so a file with
// too many is refused before they are allocated.
type decoder struct {
	*json.Decoder
	objects int
}

// end reads the end of the list or object at path.
func (d *decoder) end(path string) error {
	_, err := d.Token()
	return notJSON(path, err)
}

// maxObjects is more than any scenario within the other limits holds in lists.
const maxObjects = 4 * MaxTrace

// item counts an item of the list at path.
func (d *decoder) item(t reflect.Type, path string, i int) error {
	if path == "steps" && i >= MaxSteps {
		return bad(path, "there are more than %d steps", MaxSteps)
	}
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if d.objects++; d.objects > maxObjects {
		return bad(path, "the lists of the file have more than %d objects", maxObjects)
	}
	return nil
}

// maxNesting is deeper than any scenario needs.
const maxNesting = 100

func walk(dec *decoder, t reflect.Type, path string, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return notJSON(path, err)
	}
	if depth > maxNesting {
		return bad(path, "it is nested more than %d levels deep", maxNesting)
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
		return dec.end(path)
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
			return bad(inner, "it occurs twice")
		}
		seen[name] = true
		next, ok := fields[name]
		if fields != nil && !ok {
			return bad(inner, "unknown field; the fields here are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if err := walk(dec, next, inner, depth+1); err != nil {
			return err
		}
	}
	return dec.end(path)
}

func notJSON(path string, err error) error {
	if err == nil {
		return nil
	}
	return bad(path, "it is not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// fieldsOf returns the types of a struct's fields by their JSON names; nil for a type that may hold anything.
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

// indexPattern finds a list index in the dotted paths of encoding/json.
var indexPattern = regexp.MustCompile(`\.(\d+)`)

func wrongType(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		path := indexPattern.ReplaceAllString(typed.Field, "[$1]")
		return bad(path, "it must not be a %s", strings.Fields(typed.Value)[0])
	}
	return notJSON("", err)
}

func (s *Scenario) check() error {
	switch {
	case s.Scenario != Version:
		return bad("scenario", "it is %d, this version supports %d", s.Scenario, Version)
	case !validName(s.Name):
		return bad("name", "it must have 1 to %d printable characters", MaxName)
	case !slices.Contains([]string{"", "virtual", "real"}, s.Clock):
		return bad("clock", "it must be virtual or real")
	case len(s.Steps) > MaxSteps:
		return bad("steps", "there are %d steps, the limit is %d", len(s.Steps), MaxSteps)
	case s.App != nil && len(s.App.Command) == 0:
		return bad("app.command", "it must name the program to start")
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
		return bad(path, "%q is not a known device model", id)
	}
	return nil
}

// control returns the control frame of a step that makes something happen without a file.
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

// Control returns the control frame of a step that makes something happen; ok is false for other steps. file is the
// path of the picture or sound that belongs to it, if any.
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
		return bad(path, "a step has exactly one of input, transcript, state, motion, fault, device, camera, "+
			"microphone, advance, expect, expectDisplay, expectNothingClipped and picture")
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
			return bad(path, "it is %d ms, must be from 0 to %d", *s.Advance, MaxAdvance)
		}
	case "picture":
		if !validName(*s.Picture) || strings.ContainsAny(*s.Picture, `/\:`) || strings.HasPrefix(*s.Picture, ".") {
			return bad(path, "it must have 1 to %d printable characters, no path and no leading dot", MaxName)
		}
	case "expect":
		return s.Expect.check(path)
	case "expectDisplay":
		return s.ExpectDisplay.check(path)
	case "expectNothingClipped":
		return s.ExpectNothingClipped.check(path)
	}
	return nil
}

func (e *Expect) check(path string) error {
	switch {
	case e.Type == "" || len(e.Type) > glasses.MaxType:
		return bad(path+".type", "it must be the type of a row, e.g. display.show")
	case !slices.Contains([]string{"", glasses.KindRequest, glasses.KindResult, glasses.KindEvent}, e.Kind):
		return bad(path+".kind", "it must be request, result or event")
	case len(e.Payload) > 0 && e.Payload[0] != '{':
		return bad(path+".payload", "it is not an object")
	}
	return checkWithin(path, e.WithinMs)
}

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (e *ExpectDisplay) check(path string) error {
	if len(e.Text)+len(e.Absent)+len(e.Images) == 0 && e.Focus == nil && e.Picture == "" {
		return bad(path, "it must have text, absent, images, focus or picture")
	}
	if e.Picture != "" && !hashPattern.MatchString(e.Picture) {
		return bad(path+".picture", "it is not a SHA-256 in lower-case hex")
	}
	return checkWithin(path, e.WithinMs)
}

func (e *ExpectNothingClipped) check(path string) error {
	for i, id := range e.Models {
		at := fmt.Sprintf("%s.models[%d]", path, i)
		if err := checkModel(at, id); err != nil {
			return err
		}
		if m, _ := glasses.Model(id); m.Panel == nil {
			return bad(at, "%s has no panel", id)
		}
	}
	return checkWithin(path, e.WithinMs)
}

// DeviceModels returns the models that must fit.
func (e *ExpectNothingClipped) DeviceModels() []glasses.DeviceModel {
	var list []glasses.DeviceModel
	for _, m := range glasses.Models() {
		if m.Panel != nil && (len(e.Models) == 0 || slices.Contains(e.Models, m.ID)) {
			list = append(list, m)
		}
	}
	return list
}

func checkWithin(path string, ms *int64) error {
	if ms != nil && (*ms < 0 || *ms > MaxWithin) {
		return bad(path+".withinMs", "it is %d, must be from 0 to %d", *ms, MaxWithin)
	}
	return nil
}

var mediaPattern = regexp.MustCompile(`^[0-9a-f]{64}(\.[a-z0-9]{1,8})?$`)

func (r *Recorded) check() error {
	if r == nil {
		return nil
	}
	if r.Clock != "virtual" && r.Clock != "real" {
		return bad("recorded.clock", "it must be virtual or real")
	}
	if len(r.Trace) > MaxTrace || len(r.Pictures) > MaxTrace || len(r.Media) > MaxTrace {
		return bad("recorded", "one of its lists is longer than %d", MaxTrace)
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
