// Package scenario is the file format in which people and agents say what happens to an app's glasses and what they
// expect of the app: steps in JSON, strict, so that a misspelt word is an error and not a test that tests nothing. A
// recording is a scenario that also holds what the app did. The package reads and writes; it runs nothing.
package scenario

import (
	"encoding/json"

	"github.com/service-dev/service/proto/glasses"
)

// Version is the value of the field "scenario".
const Version = 1

// Limits of a scenario.
const (
	MaxFile    = 16 << 20 // bytes
	MaxSteps   = 10_000
	MaxName    = 100                 // characters of a name
	MaxAdvance = 24 * 60 * 60 * 1000 // ms in one step
	MaxWithin  = 600_000             // ms
	MaxTrace   = 100_000             // recorded requests
)

// DefaultWithin is how long an expectation waits when it does not say, in ms of the session's clock.
const DefaultWithin = 1000

// Scenario is one file.
type Scenario struct {
	Scenario int    `json:"scenario"` // Version
	Name     string `json:"name"`
	// DeviceModel is the id of a model; empty for what the session has.
	DeviceModel string `json:"deviceModel,omitempty"`
	// Clock is virtual or real; empty for virtual.
	Clock string `json:"clock,omitempty"`
	// App says how the app is started, for those who start it.
	App *App `json:"app,omitempty"`
	// FixturesDir is a folder for camera and microphone, from the file's own folder when it is not absolute.
	FixturesDir string `json:"fixturesDir,omitempty"`
	Steps       []Step `json:"steps"`
	// Recorded is what the app did when this was recorded; a run compares with it.
	Recorded *Recorded `json:"recorded,omitempty"`
}

// App is how an app is started: a command with its arguments, in a folder (from the file's own), with more environment.
type App struct {
	Command []string          `json:"command"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// Step is one thing that happens or is expected: exactly one field but Note is set.
type Step struct {
	// Note is for people.
	Note string `json:"note,omitempty"`

	Input      *glasses.Input      `json:"input,omitempty"`
	Transcript *glasses.Transcript `json:"transcript,omitempty"`
	State      *glasses.StatePatch `json:"state,omitempty"`
	Motion     *glasses.Motion     `json:"motion,omitempty"`
	Fault      *glasses.Fault      `json:"fault,omitempty"`
	Device     *string             `json:"device,omitempty"`     // id of a model
	Camera     *string             `json:"camera,omitempty"`     // path of a picture, from the file's folder; "" for its own
	Microphone *string             `json:"microphone,omitempty"` // path of a WAV; "" for its own
	Advance    *int64              `json:"advance,omitempty"`    // ms; a session with a real clock waits

	Expect        *Expect        `json:"expect,omitempty"`
	ExpectDisplay *ExpectDisplay `json:"expectDisplay,omitempty"`
	Picture       *string        `json:"picture,omitempty"` // keep the panel under this name
}

// Expect is a row of the event log that must come, or with Absent must not, within WithinMs of the session's clock. Rows
// since the last step that made something happen count, each for one expectation.
type Expect struct {
	Type string `json:"type"`
	// Kind is request, result or event; empty for any.
	Kind string `json:"kind,omitempty"`
	// Payload is matched as a part: objects may have more fields, lists and values must be equal.
	Payload  json.RawMessage `json:"payload,omitempty"`
	WithinMs *int64          `json:"withinMs,omitempty"` // 0 to MaxWithin; DefaultWithin when missing
	Absent   bool            `json:"absent,omitempty"`
}

// ExpectDisplay is what the panel must show within WithinMs.
type ExpectDisplay struct {
	// Text lists texts that must all be read on the panel, each as a part of one node's text.
	Text []string `json:"text,omitempty"`
	// Focus is the id of the focused button or list entry.
	Focus *string `json:"focus,omitempty"`
	// Picture is the SHA-256 of the panel as PNG.
	Picture  string `json:"picture,omitempty"`
	WithinMs *int64 `json:"withinMs,omitempty"`
}

// Recorded is what an app did. Times are ms since the app attached.
type Recorded struct {
	// Clock tells by which clock it was recorded; times are compared only between virtual ones.
	Clock      string    `json:"clock"`
	DurationMs int64     `json:"durationMs"`
	Trace      []Request `json:"trace"`
	Pictures   []Picture `json:"pictures"`
	// Media lists the files in the folder "media" beside the recording, <sha256>.<ext>.
	Media []string `json:"media,omitempty"`
}

// Request is a command or an event of the app.
type Request struct {
	At      int64           `json:"at"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// Picture is the panel after a display command, as PNG. Its file is pictures/<sha256>.png beside the recording.
type Picture struct {
	At     int64  `json:"at"`
	SHA256 string `json:"sha256"`
}

// Act names the one thing that a step is, as its field; empty when there is none or more than one.
func (s *Step) Act() string {
	name, count := "", 0
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"input", s.Input != nil}, {"transcript", s.Transcript != nil}, {"state", s.State != nil}, {"motion", s.Motion != nil},
		{"fault", s.Fault != nil}, {"device", s.Device != nil}, {"camera", s.Camera != nil}, {"microphone", s.Microphone != nil},
		{"advance", s.Advance != nil}, {"expect", s.Expect != nil}, {"expectDisplay", s.ExpectDisplay != nil}, {"picture", s.Picture != nil},
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

// Within is how long an expectation waits, in ms.
func Within(ms *int64) int64 {
	if ms == nil {
		return DefaultWithin
	}
	return *ms
}

// Encode gives the file of a scenario.
func (s Scenario) Encode() ([]byte, error) {
	s.Scenario = Version
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}
