package glasses

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Control frames drive simulated glasses on behalf of an agent, a scenario or a user. The result of each has the same
// ID and contains the state and the view. Apps cannot send control frames. The log contains only the events that they
// cause.
const (
	SimInput      = "sim.input"      // Input: the wearer uses the controls
	SimTranscript = "sim.transcript" // Transcript: someone speaks
	SimState      = "sim.state"      // StatePatch: changes State; {} only reads it
	SimMotion     = "sim.motion"     // Motion: the head moves
	SimFault      = "sim.fault"      // Fault: the next commands fail or are delayed
	SimDevice     = "sim.device"     // DeviceChoice: switches the device model
	SimCamera     = "sim.camera"     // what the camera sees: a binary frame with a picture; {} for the host's camera
	SimMicrophone = "sim.microphone" // what the microphone hears: a binary frame with a WAV, or {} as for sim.camera
	SimAdvance    = "sim.advance"    // Advance: moves virtual time
	// SimStanding has the payload Standing. The service uses it to restore settings made by apps. Agents and scenarios
	// cannot send it.
	SimStanding = "sim.standing"
)

// IsControl reports whether typ is a control frame.
func IsControl(typ string) bool {
	switch typ {
	case SimInput, SimTranscript, SimState, SimMotion, SimFault, SimDevice, SimCamera, SimMicrophone, SimAdvance,
		SimStanding:
		return true
	}
	return false
}

// StatePatch is the payload of sim.state. Missing fields stay unchanged.
type StatePatch struct {
	Battery     *Battery          `json:"battery,omitempty"`
	Worn        *bool             `json:"worn,omitempty"`
	Hinge       *string           `json:"hinge,omitempty"`
	Thermal     *string           `json:"thermal,omitempty"`
	Link        *string           `json:"link,omitempty"`
	Route       *string           `json:"route,omitempty"`
	Call        *bool             `json:"call,omitempty"`
	Permissions map[string]string `json:"permissions,omitempty"`
	Disabled    *[]string         `json:"disabled,omitempty"`
}

// Fault is the payload of sim.fault. With Code, the next Times commands of type Command fail with that error. With only
// LatencyMs, they are delayed. An empty Command applies to every command. Clear removes all earlier faults first.
// DropApp closes the connections of the apps, which then attach again. It cannot be combined with Command, Code or
// LatencyMs.
type Fault struct {
	Command   string `json:"command,omitempty"`
	Code      string `json:"code,omitempty"`
	LatencyMs int64  `json:"latencyMs,omitempty"` // 0 to 60 000
	Times     int    `json:"times,omitempty"`     // 1 to 1000, default 1
	Clear     bool   `json:"clear,omitempty"`
	DropApp   bool   `json:"dropApp,omitempty"`
}

// DropsApp reports whether an event from the glasses makes the service close the connections of the
// apps.
func DropsApp(typ string, payload []byte) bool {
	var f Fault
	return typ == TypeFault && json.Unmarshal(payload, &f) == nil && f.DropApp
}

// DeviceChoice is the payload of sim.device.
type DeviceChoice struct {
	DeviceModel string `json:"deviceModel"`
}

// Advance is the payload of sim.advance. The glasses advance to the next instant with a scheduled event, but not beyond
// ToMs. The result's clock contains the time reached and whether more events are due. In real time, sim.advance is
// unsupported.
type Advance struct {
	ToMs int64 `json:"toMs"`
}

// Clock is the clock in the result of sim.advance.
type Clock struct {
	NowMs int64 `json:"nowMs"`
	// Reached reports whether no more events are pending up to the requested time.
	Reached bool `json:"reached"`
}

var controlParsers = map[string]payloadParser{
	SimInput:      parse[Input],
	SimTranscript: parse[Transcript],
	SimState:      parse[StatePatch],
	SimMotion:     parse[Motion],
	SimFault:      parse[Fault],
	SimDevice:     parse[DeviceChoice],
	SimAdvance:    parse[Advance],
	SimStanding:   parse[Standing],
	SimCamera:     noPayload,
	SimMicrophone: parse[Microphone],
}

// Microphone is the payload of sim.microphone, beside the sound.
type Microphone struct {
	// Transcript is what is said in the sound, in the order in which it is said.
	Transcript []Words `json:"transcript,omitempty"`
}

// Words is a part of what is said in a sound. The chunk of the sound in which it ends carries the text.
type Words struct {
	Text  string `json:"text"`
	EndMs int64  `json:"endMs"` // since the beginning of the sound
}

// Limits on the transcript of a Microphone, because the header of a binary frame is short.
const (
	MaxSoundTranscript = 1000 // bytes of all texts
	maxWords           = 50   // texts
)

// ParseControl decodes and checks the payload of a control frame. It returns an *Input, *Transcript, *StatePatch,
// *Motion, *Fault, *DeviceChoice, *Advance, *Standing or *Microphone, or nil for sim.camera. On failure it
// returns an *Error with code bad_payload, or unsupported for a type that is not a control frame.
func ParseControl(typ string, payload []byte) (any, error) {
	if json.Valid(payload) && TooDeep(payload) {
		return nil, badPayload("%s payload is %s", typ, tooDeep)
	}
	return parsePayload(controlParsers, "control frame", typ, payload)
}

func (*Motion) check() *Error { return nil }

func (m *Microphone) check() *Error {
	last, bytes := int64(0), 0
	if len(m.Transcript) > maxWords {
		return badPayload("transcript must have at most %d texts", maxWords)
	}
	for _, w := range m.Transcript {
		if bytes += len(w.Text); w.Text == "" || !utf8.ValidString(w.Text) || bytes > MaxSoundTranscript {
			return badPayload("transcript must have texts that are not empty and together at most %d bytes long",
				MaxSoundTranscript)
		}
		if w.EndMs <= last {
			return badPayload("transcript[].endMs must be positive and ascend")
		}
		last = w.EndMs
	}
	return nil
}

func (p *StatePatch) check() *Error {
	if p.Battery != nil && (p.Battery.Level < 0 || p.Battery.Level > 100) {
		return badPayload("battery.level must be from 0 to 100")
	}
	for _, f := range []struct {
		name    string
		v       *string
		allowed []string
	}{
		{"hinge", p.Hinge, []string{HingeOpen, HingeFolded}},
		{"thermal", p.Thermal, []string{ThermalNominal, ThermalWarm, ThermalCritical}},
		{"link", p.Link, []string{LinkConnected, LinkLossy, LinkLost}},
		{"route", p.Route, []string{RouteGlasses, RoutePhone}},
	} {
		if f.v != nil && !slices.Contains(f.allowed, *f.v) {
			return badPayload("%s must be one of %v", f.name, f.allowed)
		}
	}
	for part, v := range p.Permissions {
		if !slices.Contains(parts(), part) || v != PermissionGranted && v != PermissionDenied {
			return badPayload("permissions must map some of %v to granted or denied", parts())
		}
	}
	if p.Disabled != nil {
		for _, part := range *p.Disabled {
			if !slices.Contains(parts(), part) {
				return badPayload("disabled must list some of %v", parts())
			}
		}
	}
	return nil
}

func parts() []string { return []string{PartCamera, PartMicrophone, PartSpeech} }

func (p *Fault) check() *Error {
	if p.Command != "" && !IsCommand(p.Command) {
		return badPayload("command must be a command of this protocol version")
	}
	if p.Code != "" && !slices.Contains(CommandCodes(), p.Code) {
		return badPayload("code must be one of %v", CommandCodes())
	}
	if p.LatencyMs < 0 || p.LatencyMs > 60_000 {
		return badPayload("latencyMs must be from 0 to 60000")
	}
	isForCommand := p.Code != "" || p.LatencyMs > 0
	if p.DropApp && (isForCommand || p.Command != "") {
		return badPayload("dropApp cannot be combined with command, code or latencyMs")
	}
	if !isForCommand && !p.Clear && !p.DropApp {
		return badPayload("a fault needs code, latencyMs, clear or dropApp")
	}
	return within("times", &p.Times, 1, 1, 1000)
}

func (p *DeviceChoice) check() *Error {
	if _, ok := Model(p.DeviceModel); !ok {
		return badPayload("deviceModel must be a known device model")
	}
	return nil
}

func (p *Advance) check() *Error {
	if p.ToMs < 0 {
		return badPayload("toMs is negative")
	}
	return nil
}

// ByTarget reports whether a sim.input names a target to select instead of an input.
func (p *Input) ByTarget() bool { return p.Kind == "" && p.Target != "" }

func (p *Standing) check() *Error {
	announced := Announce{Phrases: p.Phrases}
	if err := announced.check(); err != nil || p.Transcription == nil {
		return err
	}
	return p.Transcription.check()
}

func (p *Input) check() *Error {
	if p.ByTarget() {
		return p.checkTarget()
	}
	if !slices.Contains(InputKinds(), p.Kind) {
		return badPayload("kind must be one of %v; to select by id, pass only target", InputKinds())
	}
	if err := (enum{"direction", p.Direction, []string{"up", "down", "left", "right"}}).check(); err != nil {
		return err
	}
	if err := (enum{"side", p.Side, []string{"left", "right"}}).check(); err != nil {
		return err
	}
	if (p.Kind == InputNavigate || p.Kind == InputSwipe) && p.Direction == "" {
		return badPayload("%s needs a direction", p.Kind)
	}
	return nil
}

// checkTarget rejects a target combined with other fields of an input, because the glasses choose the inputs.
func (p *Input) checkTarget() *Error {
	switch {
	case *p != Input{Target: p.Target}:
		return badPayload("target without kind must not be combined with x, y, direction or side: " +
			"the glasses choose the inputs")
	case !validWord(p.Target, MaxID):
		return badPayload("target must be 1 to %d printable ASCII characters without spaces", MaxID)
	}
	return nil
}

func (p *Transcript) check() *Error {
	if n := utf8.RuneCountInString(p.Text); n == 0 || n > MaxSay {
		return badPayload("text must be 1 to %[2]d characters long, not %[1]d", n, MaxSay)
	}
	if p.Confidence < 0 || p.Confidence > 100 {
		return badPayload("confidence must be from 0 to 100")
	}
	return checkLanguage(p.Language)
}

// TypeBarrier is a frame without payload that the service sends to an app of a session in virtual time. The app answers
// with a frame of the same type and id after it has handled all earlier frames and is waiting for the glasses again.
const TypeBarrier = "barrier"
