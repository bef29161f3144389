package glasses

import (
	"slices"
	"unicode/utf8"
)

// Control frames: the service asks simulated glasses on behalf of an agent, a scenario or a person. They are answered by
// a result of the same id with state and view, are not logged themselves, and never come from an app; what they cause is.
const (
	SimInput      = "sim.input"      // the wearer does something: Input
	SimTranscript = "sim.transcript" // somebody says something: Transcript
	SimState      = "sim.state"      // changes part of State: StatePatch; {} only asks
	SimMotion     = "sim.motion"     // the head moves: Motion
	SimFault      = "sim.fault"      // the next commands fail or are late: Fault
	SimDevice     = "sim.device"     // other glasses: DeviceChoice
	SimCamera     = "sim.camera"     // what the camera sees from now on; a binary frame with the picture, or {} for its own
	SimMicrophone = "sim.microphone" // what the microphone hears from now on; a binary frame with a WAV, or {}
	SimAdvance    = "sim.advance"    // virtual time: Advance
)

// IsControl tells whether a frame type is a control frame.
func IsControl(typ string) bool {
	return slices.Contains([]string{SimInput, SimTranscript, SimState, SimMotion, SimFault, SimDevice, SimCamera, SimMicrophone, SimAdvance}, typ)
}

// StatePatch is the payload of sim.state: only the fields that are there change.
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

// Fault is the payload of sim.fault. With Code the next Times commands of type Command are answered by this error; with
// LatencyMs alone they are late. An empty Command means every command; Clear forgets all faults first.
type Fault struct {
	Command   string `json:"command,omitempty"`
	Code      string `json:"code,omitempty"`
	LatencyMs int64  `json:"latencyMs,omitempty"` // 0 to 60 000
	Times     int    `json:"times,omitempty"`     // 1 to 1000, default 1
	Clear     bool   `json:"clear,omitempty"`
}

// DeviceChoice is the payload of sim.device.
type DeviceChoice struct {
	DeviceModel string `json:"deviceModel"`
}

// Advance is the payload of sim.advance. The glasses go to the next instant at which something happens, at most to ToMs;
// the result's clock says where they stand and whether more is to come. It is answered unsupported in real time.
type Advance struct {
	ToMs int64 `json:"toMs"`
}

// Clock is the answer of sim.advance.
type Clock struct {
	NowMs int64 `json:"nowMs"`
	// Reached is true when nothing is left to happen up to the asked time.
	Reached bool `json:"reached"`
}

// ParseControl reads the payload of a control frame into *Input, *Transcript, *StatePatch, *Motion, *Fault,
// *DeviceChoice or *Advance, checked; nil for sim.camera and sim.microphone. The error is an *Error with code
// bad_payload, or unsupported for another type.
func ParseControl(typ string, payload []byte) (any, error) {
	switch typ {
	case SimInput:
		return parse(typ, payload, &Input{}, (*Input).check)
	case SimTranscript:
		return parse(typ, payload, &Transcript{}, (*Transcript).check)
	case SimState:
		return parse(typ, payload, &StatePatch{}, (*StatePatch).check)
	case SimMotion:
		return parse(typ, payload, &Motion{}, func(*Motion) *Error { return nil })
	case SimFault:
		return parse(typ, payload, &Fault{}, (*Fault).check)
	case SimDevice:
		return parse(typ, payload, &DeviceChoice{}, (*DeviceChoice).check)
	case SimAdvance:
		return parse(typ, payload, &Advance{}, (*Advance).check)
	case SimCamera, SimMicrophone:
		return nil, nil
	}
	return nil, &Error{Code: CodeUnsupported, Message: typ + " is not a control frame of this version"}
}

func (p *StatePatch) check() *Error {
	if p.Battery != nil && (p.Battery.Level < 0 || p.Battery.Level > 100) {
		return badPayload("battery.level goes from 0 to 100")
	}
	for _, f := range []struct {
		name  string
		v     *string
		words []string
	}{{"hinge", p.Hinge, []string{HingeOpen, HingeFolded}}, {"thermal", p.Thermal, []string{ThermalNominal, ThermalWarm, ThermalCritical}},
		{"link", p.Link, []string{LinkConnected, LinkLossy, LinkLost}}, {"route", p.Route, []string{RouteGlasses, RoutePhone}}} {
		if f.v != nil && !slices.Contains(f.words, *f.v) {
			return badPayload("%s is not one of %v", f.name, f.words)
		}
	}
	for part, v := range p.Permissions {
		if !slices.Contains(parts(), part) || v != PermissionGranted && v != PermissionDenied {
			return badPayload("permissions maps one of %v to granted or denied", parts())
		}
	}
	if p.Disabled != nil {
		for _, part := range *p.Disabled {
			if !slices.Contains(parts(), part) {
				return badPayload("disabled lists some of %v", parts())
			}
		}
	}
	return nil
}

func parts() []string { return []string{PartCamera, PartMicrophone, PartSpeech} }

func (p *Fault) check() *Error {
	if p.Command != "" && !IsCommand(p.Command) {
		return badPayload("command is not a command of this version")
	}
	if p.Code != "" && !slices.Contains(CommandCodes(), p.Code) {
		return badPayload("code is not one of %v", CommandCodes())
	}
	if p.LatencyMs < 0 || p.LatencyMs > 60_000 {
		return badPayload("latencyMs goes from 0 to 60000")
	}
	if p.Code == "" && p.LatencyMs == 0 && !p.Clear {
		return badPayload("a fault needs code, latencyMs or clear")
	}
	return within("times", &p.Times, 1, 1, 1000)
}

func (p *DeviceChoice) check() *Error {
	if _, ok := Model(p.DeviceModel); !ok {
		return badPayload("deviceModel is not the id of a known model")
	}
	return nil
}

func (p *Advance) check() *Error {
	if p.ToMs < 0 {
		return badPayload("toMs is negative")
	}
	return nil
}

func (p *Input) check() *Error {
	if !slices.Contains(InputKinds(), p.Kind) {
		return badPayload("kind is not one of %v", InputKinds())
	}
	for _, f := range []struct {
		name, v string
		words   []string
	}{{"direction", p.Direction, []string{"up", "down", "left", "right"}}, {"side", p.Side, []string{"left", "right"}}} {
		if f.v != "" && !slices.Contains(f.words, f.v) {
			return badPayload("%s is not one of %v", f.name, f.words)
		}
	}
	if (p.Kind == InputNavigate || p.Kind == InputSwipe) && p.Direction == "" {
		return badPayload("%s needs a direction", p.Kind)
	}
	return nil
}

func (p *Transcript) check() *Error {
	if n := utf8.RuneCountInString(p.Text); n == 0 || n > MaxSay {
		return badPayload("text has %d characters, it needs 1 to %d", n, MaxSay)
	}
	if p.Confidence < 0 || p.Confidence > 100 {
		return badPayload("confidence goes from 0 to 100")
	}
	return checkLanguage(p.Language)
}

// TypeBarrier is a frame without payload that the service sends to an app of a session in virtual time. The app answers with
// a frame of the same type and id once it has handled everything before it and waits for the glasses again.
const TypeBarrier = "barrier"
