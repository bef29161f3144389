// Package scenario defines the file format of tests for apps. The files contain JSON steps that act on the glasses and
// check the app's reactions. Parsing is strict, so that a misspelt name is an error rather than a test that checks
// nothing. A recording is a scenario that also contains the app's commands and events. The package encodes and decodes
// scenarios but does not run them.
package scenario

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/jsonlimit"
)

// Version is the value of the field "scenario" in new files. Files of version 1 run unchanged: see ExpectDisplay.Loose.
const Version = 2

// Limits of a scenario.
const (
	MaxFile    = 16 << 20 // bytes
	MaxSteps   = 10_000
	MaxName    = 100                 // characters of a name
	MaxAdvance = 24 * 60 * 60 * 1000 // ms in one step
	MaxWithin  = 600_000             // ms
	MaxTrace   = 100_000             // recorded requests
	MaxFonts   = 64                  // added fonts
)

// SchemaURI identifies the JSON Schema for scenarios. MCP clients read it as a resource, and `servicectl session
// schema` prints it.
const SchemaURI = "docs://service/scenario.schema.json"

// DefaultWithin is how long an expectation without withinMs waits, in milliseconds on the session's clock.
const DefaultWithin = 1000

// Scenario is the content of a scenario's file.
type Scenario struct {
	// Schema is SchemaURI. It is meant for editors and otherwise ignored.
	Schema   string `json:"$schema,omitempty"`
	Scenario int    `json:"scenario"` // 1 or Version
	Name     string `json:"name"`
	// DeviceModel is the ID of a model; empty means the session's model.
	DeviceModel string `json:"deviceModel,omitempty"`
	// Clock is virtual or real; empty means virtual.
	Clock string `json:"clock,omitempty"`
	// App describes how to start the app, for programs that start it.
	App *App `json:"app,omitempty"`
	// FixturesDir is the directory with fixtures for the camera and microphone. A relative path starts at the file's
	// directory.
	FixturesDir string `json:"fixturesDir,omitempty"`
	// Assistant answers the calls of the app's assistant.
	Assistant *Assistant `json:"assistant,omitempty"`
	// Memory is what the app's assistant remembers about the wearer at the beginning. Sessions that a scenario drives do
	// not use the profiles that other sessions remember.
	Memory string `json:"memory,omitempty"`
	// Fonts lists the added fonts with which the app's texts were drawn.
	Fonts []Font `json:"fonts,omitempty"`
	Steps []Step `json:"steps"`
	// Recorded contains the app's commands and events during the recording. Runs are compared with them.
	Recorded *Recorded `json:"recorded,omitempty"`
}

// Font identifies a font file that is not built into the service.
type Font struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Assistant is an assistant script. Exactly one of its fields is set.
type Assistant struct {
	// File is the path of the script. A relative path starts at the scenario's directory.
	File string `json:"file,omitempty"`
	// Rules are the script itself.
	Rules []assistantscript.Rule `json:"rules,omitempty"`
}

// Script returns the script that the scenario itself contains, or nil if there is none.
func (a *Assistant) Script() *assistantscript.Script {
	if a == nil || a.File != "" {
		return nil
	}
	return &assistantscript.Script{Rules: a.Rules}
}

// App describes how to start an app. It contains a command with arguments, a working directory relative to the file's
// directory, and additional environment variables.
type App struct {
	Command []string          `json:"command"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// Step is an action or an expectation. Exactly one field besides Note is set.
type Step struct {
	// Note is a comment for readers.
	Note string `json:"note,omitempty"`

	Input      *glasses.Input      `json:"input,omitempty"`
	Transcript *glasses.Transcript `json:"transcript,omitempty"`
	State      *glasses.StatePatch `json:"state,omitempty"`
	Motion     *glasses.Motion     `json:"motion,omitempty"`
	Fault      *glasses.Fault      `json:"fault,omitempty"`
	Device     *string             `json:"device,omitempty"`     // id of a model
	Camera     *string             `json:"camera,omitempty"`     // path of a picture; "" for the host's camera
	Microphone *string             `json:"microphone,omitempty"` // path of a WAV file; "" for the host's microphone
	Advance    *int64              `json:"advance,omitempty"`    // ms; in real time the step waits

	Expect               *Expect               `json:"expect,omitempty"`
	ExpectDisplay        *ExpectDisplay        `json:"expectDisplay,omitempty"`
	ExpectNothingClipped *ExpectNothingClipped `json:"expectNothingClipped,omitempty"`

	ExpectMemory *ExpectMemory `json:"expectMemory,omitempty"`

	Picture *string `json:"picture,omitempty"` // saves the panel under this name
}

// Expect describes a row that must be added to the event log within WithinMs on the session's clock or, with Absent,
// must not be added. Only rows since the latest action match, and each row matches only one expectation.
type Expect struct {
	// Type, Kind, Chip and Sender must equal the fields of the row. An empty field matches any value.
	Type   string `json:"type,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Chip   string `json:"chip,omitempty"`
	Sender string `json:"sender,omitempty"`
	// Payload may match partially: objects may have more fields, but lists and values must be equal.
	Payload json.RawMessage `json:"payload,omitempty"`
	// AtMost limits numbers of the payload, by field.
	AtMost   map[string]int64 `json:"atMost,omitempty"`
	WithinMs *int64           `json:"withinMs,omitempty"` // 0 to MaxWithin; DefaultWithin if missing
	Absent   bool             `json:"absent,omitempty"`
}

// ExpectDisplay describes what the wearer must see within WithinMs.
type ExpectDisplay struct {
	// Text lists texts that must be completely on the panel, each as the whole text of a node.
	Text []string `json:"text,omitempty"`
	// Contains accepts a part of a node's text for each of Text.
	Contains bool `json:"contains,omitempty"`
	// InOrder requires Text to be readable in this order from top to bottom.
	InOrder bool `json:"inOrder,omitempty"`
	// Absent lists what must not be on the panel: parts of texts in lines that are completely visible, alt texts or IDs
	// of images, names or IDs of icons, and IDs of progress bars. Of those without a text, no pixel may be visible.
	Absent []string `json:"absent,omitempty"`
	// Images lists alt texts or IDs of images, and names or IDs of icons, that must be completely on the panel.
	Images []string `json:"images,omitempty"`
	// Progress lists the values of progress bars that must be completely on the panel, by ID.
	Progress map[string]int64 `json:"progress,omitempty"`
	// AllowPartial treats content that is partly on the panel as completely visible, also texts for Absent.
	AllowPartial bool `json:"allowPartial,omitempty"`
	// Focus is the ID of the focused button or list entry.
	Focus *string `json:"focus,omitempty"`
	// Picture is the SHA-256 of the panel's PNG.
	Picture string `json:"picture,omitempty"`
	// WithinMs is 0 to MaxWithin. If it is missing, the wait is DefaultWithin, or longer while a slow panel has not
	// confirmed its picture.
	WithinMs *int64 `json:"withinMs,omitempty"`
	// Loose is set in scenarios of version 1. Text may then be part of a node's text, icons and progress bars are
	// ignored, an image counts for Images even if something is drawn over it, and for Absent only if it is complete.
	Loose bool `json:"-"`
}

// ExpectNothingClipped requires that the tree on the panel fits device models: no content is clipped or cut, no word on
// a button is broken, and the wearer can reach every target.
type ExpectNothingClipped struct {
	// Models lists IDs of models with a panel; empty means all.
	Models   []string `json:"models,omitempty"`
	WithinMs *int64   `json:"withinMs,omitempty"`
	// Loose is set in scenarios of version 1. Icons and progress bars then need not fit.
	Loose bool `json:"-"`
}

// ExpectMemory describes what the app's assistant must remember about the wearer within WithinMs. Exactly one of Text
// and Empty is set.
type ExpectMemory struct {
	// Text lists texts that the profile must contain.
	Text []string `json:"text,omitempty"`
	// Empty requires that nothing is remembered.
	Empty    bool   `json:"empty,omitempty"`
	WithinMs *int64 `json:"withinMs,omitempty"` // 0 to MaxWithin; DefaultWithin if missing
}

// Recorded contains an app's commands and events. Times are in ms since the app attached.
type Recorded struct {
	// Clock is the clock of the recording. Times are compared only between virtual clocks.
	Clock      string `json:"clock"`
	DurationMs int64  `json:"durationMs"`
	// AppLeft is set if the app had left at the end of the recording. The app may then also leave during a run.
	AppLeft  bool      `json:"appLeft,omitempty"`
	Trace    []Request `json:"trace"`
	Pictures []Picture `json:"pictures"`
	// Media lists the files <sha256>.<ext> in the directory "media" next to the recording.
	Media []string `json:"media,omitempty"`
}

// Request is one of the app's commands or events.
type Request struct {
	At      int64           `json:"at"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// Picture is the panel after a display command. Its PNG is the file pictures/<sha256>.png next to the recording.
type Picture struct {
	At     int64  `json:"at"`
	SHA256 string `json:"sha256"`
}

// Act returns the name of the action or expectation field that is set, or "" if none or several
// are.
func (s *Step) Act() string {
	name, count := "", 0
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"input", s.Input != nil}, {"transcript", s.Transcript != nil}, {"state", s.State != nil},
		{"motion", s.Motion != nil}, {"fault", s.Fault != nil}, {"device", s.Device != nil},
		{"camera", s.Camera != nil}, {"microphone", s.Microphone != nil}, {"advance", s.Advance != nil},
		{"expect", s.Expect != nil}, {"expectDisplay", s.ExpectDisplay != nil},
		{"expectNothingClipped", s.ExpectNothingClipped != nil}, {"expectMemory", s.ExpectMemory != nil},
		{"picture", s.Picture != nil},
	} {
		if f.set {
			name = f.name
			count++
		}
	}
	if count != 1 {
		return ""
	}
	return name
}

// Within returns how long an expectation waits, in ms.
func Within(ms *int64) int64 {
	if ms == nil {
		return DefaultWithin
	}
	return *ms
}

// Encode returns the content of a scenario's file, including the name of the schema. It is indented unless it would
// then be longer than MaxFile.
func (s Scenario) Encode() ([]byte, error) {
	s.Schema, s.Scenario, s.Steps = SchemaURI, cmp.Or(s.Scenario, Version), orEmpty(s.Steps)
	if s.Scenario > 1 {
		s.Steps = slices.Clone(s.Steps)
		for i, step := range s.Steps {
			if e := step.ExpectDisplay; e != nil && e.Loose {
				strict := *e
				strict.Contains, strict.Loose = len(e.Text) > 0, false
				s.Steps[i].ExpectDisplay = &strict
			}
		}
	}
	if s.Recorded != nil {
		recorded := *s.Recorded
		recorded.Trace, recorded.Pictures = orEmpty(recorded.Trace), orEmpty(recorded.Pictures)
		s.Recorded = &recorded
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return append(jsonlimit.Indent(data, MaxFile-1), '\n'), nil
}

// orEmpty returns list, or an empty list for nil, so that JSON contains [] rather than null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
