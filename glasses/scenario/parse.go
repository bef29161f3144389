package scenario

import (
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/strictjson"
	"github.com/service-dev/service/internal/textfile"
)

// Error explains why a file or a list of steps is invalid. It contains the place, e.g. steps[3].expect.type, the
// problem, the expected value and an example.
type Error = strictjson.Error

var (
	fileShape  = sync.OnceValue(func() *strictjson.Shape[Scenario] { return strictjson.Of[Scenario](rulesOfFile()) })
	stepsShape = sync.OnceValue(func() *strictjson.Shape[list] { return strictjson.Of[list](rulesOfSteps("steps")) })
)

// list is a list of steps outside a file.
type list struct {
	Steps []Step `json:"steps"`
}

// Parse decodes and checks a file. It does not check files to which the scenario refers. On failure it returns an
// *Error.
func Parse(data []byte) (Scenario, error) {
	if len(data) > MaxFile {
		return Scenario{}, &Error{Message: fmt.Sprintf("the file is %d bytes long, over the limit of %d", len(data), MaxFile)}
	}
	data, err := textfile.Decode(data)
	if err != nil {
		return Scenario{}, &Error{Message: err.Error()}
	}
	var s Scenario
	if err := fileShape().Decode(data, &s); err != nil {
		return Scenario{}, addStepExample(err)
	}
	if s.App != nil && len(s.App.Command) == 0 {
		return Scenario{}, &Error{Path: "app.command", Message: "it is empty", Want: "the program to start",
			Example: appExample, Beyond: true}
	}
	if script := s.Assistant.Script(); script != nil {
		if err := script.Check("assistant.rules"); err != nil {
			return Scenario{}, err
		}
	}
	if err := assistantscript.CheckProfile(s.Memory); err != nil {
		return Scenario{}, &Error{Path: "memory", Message: err.Error(), Want: "a profile", Example: `"Name: Ann"`,
			Beyond: true}
	}
	if s.Scenario == 1 {
		for _, step := range s.Steps {
			if step.ExpectDisplay != nil {
				step.ExpectDisplay.Loose = true
			}
			if step.ExpectNothingClipped != nil {
				step.ExpectNothingClipped.Loose = true
			}
		}
		return s, check(s.Steps)
	}
	return s, checkMatches(s.Steps)
}

// ParseSteps decodes and checks a JSON list of steps. On failure it returns an *Error whose path begins with
// steps[N].
func ParseSteps(data []byte) ([]Step, error) {
	var l list
	whole := slices.Concat([]byte(`{"steps":`), data, []byte("}"))
	if err := stepsShape().Decode(whole, &l); err != nil {
		return nil, addStepExample(err)
	}
	return l.Steps, checkMatches(l.Steps)
}

//go:embed scenario.schema.json
var schema []byte

// Schema returns the JSON Schema of a file. The result is shared and must not be modified.
func Schema() []byte { return schema }

// writeSchema returns the content of scenario.schema.json.
func writeSchema() ([]byte, error) {
	schema := fileShape().Schema()
	schema["$schema"], schema["$id"] = "https://json-schema.org/draft/2020-12/schema", SchemaURI
	schema["title"] = "Scenario for smart glasses"
	data, err := json.MarshalIndent(schema, "", "  ")
	return append(data, '\n'), err
}

// Fields returns the fields of a kind's value, for documentation. It returns nil if the value is not an object.
func (k Kind) Fields() []strictjson.Field { return stepsShape().Fields("steps[]." + k.Name) }

// Want describes the valid values of a kind.
func (k Kind) Want() string { return stepsShape().Want("steps[]." + k.Name) }

var stepPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^steps\[(\d+)\]`) })

// addStepExample adds an example to an *Error that has none and whose path begins with steps[N].
func addStepExample(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Example == "" && stepPattern().MatchString(e.Path) {
		e.Example = `{"advance": 1000}`
	}
	return err
}

// checkMatches is check for steps of version 2, whose expectations must be able to fail and to pass.
func checkMatches(steps []Step) error {
	for i, s := range steps {
		if e := s.Expect; e != nil {
			if why := glasses.NeverMatches(e.Type, e.Kind, e.Chip, e.Sender); why != "" {
				return &Error{Path: fmt.Sprintf("steps[%d].expect", i), Message: "no entry of the event log can match: " + why,
					Example: `{"expect": {"type": "display.show"}}`, Beyond: true}
			}
		}
		if e := s.ExpectDisplay; e != nil && slices.Contains(slices.Concat(e.Text, e.Absent, e.Images), "") {
			return &Error{Path: fmt.Sprintf("steps[%d].expectDisplay", i), Message: "an empty text is found everywhere",
				Want: "texts of at least one character", Example: `{"expectDisplay": {"text": ["Milk"]}}`, Beyond: true}
		}
	}
	return check(steps)
}

func check(steps []Step) error {
	for i := range steps {
		if err := steps[i].check(fmt.Sprintf("steps[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

// check applies the rules that involve several fields of a step.
func (s *Step) check(path string) error {
	path += "." + s.Act()
	refuse := func(message string) error {
		for _, k := range Kinds() {
			if k.Name == s.Act() {
				return &Error{Path: path, Message: message, Example: k.Example, Beyond: true}
			}
		}
		return &Error{Path: path, Message: message, Beyond: true}
	}
	if typ, payload := s.control(); typ != "" {
		raw, err := json.Marshal(payload)
		if err == nil {
			_, err = glasses.ParseControl(typ, raw)
		}
		if err != nil {
			return refuse(err.Error())
		}
	}
	if e := s.ExpectDisplay; e != nil && e.IsEmpty() {
		return refuse("it expects nothing")
	}
	if e := s.ExpectMemory; e != nil && len(e.Text) == 0 && !e.Empty {
		return refuse("it expects nothing")
	}
	return nil
}

// IsEmpty reports whether an expectation has fields but expects nothing on the display.
func (e *ExpectDisplay) IsEmpty() bool {
	return len(e.Text)+len(e.Absent)+len(e.Images)+len(e.Progress) == 0 && e.Focus == nil && e.Picture == ""
}

// control returns the control frame for an action that needs no file.
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

// Control returns the control frame for an action. ok is false for other steps. file is the path of the step's picture
// or sound, if any.
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

// DeviceModels returns the models that the display must fit.
func (e *ExpectNothingClipped) DeviceModels() []glasses.DeviceModel {
	var list []glasses.DeviceModel
	for _, m := range glasses.Models() {
		if m.Panel != nil && (len(e.Models) == 0 || slices.Contains(e.Models, m.ID)) {
			list = append(list, m)
		}
	}
	return list
}
