package glasses

import "encoding/json"

// Types of the events that the glasses send to the app.
const (
	TypeInput      = "input"      // Input
	TypeTranscript = "transcript" // Transcript, while transcription is on
	TypeMotion     = "motion"     // Motion, a stream while motion is on; counted, not logged
	TypeSpeech     = "speech"     // SpeechState: a speech.say ended
	TypePlayback   = "playback"   // PlaybackState: playback began to sound, or ended
	TypeBattery    = "battery"    // Battery
	TypeWear       = "wear"       // {worn}
	TypeHinge      = "hinge"      // {state}
	TypeThermal    = "thermal"    // {state}
	TypeLink       = "link"       // {state}; also from the service when glasses attach or detach
	TypeRoute      = "route"      // {to}
	TypeCall       = "call"       // {active}
	TypePermission = "permission" // {part, state}
	TypeDisabled   = "disabled"   // {parts}
	// TypeTranscription has the payload TranscriptionState. It reports that transcription stopped without a request
	// from the app, or resumed.
	TypeTranscription = "transcription"
	TypeDevice        = "device" // DeviceChange
	TypeFault         = "fault"  // Fault: a fault was set; logged only, apps ignore it
)

// Types of the binary frames that the glasses send.
const (
	TypeMedia      = "media"       // the bytes of a result's media, sent just before it with its id
	TypeAudioChunk = "audio.chunk" // a stream while audio is on
	TypeVideoFrame = "video.frame" // a stream while video is on
)

// TypePlaybackChunk is the type of the binary frames that an app sends: a piece of the sound of a playback.start.
const TypePlaybackChunk = "playback.chunk" // PlaybackChunk

// MaxPlaybackChunk limits the sound in a chunk, in bytes: 100 ms at 24,000 Hz.
const MaxPlaybackChunk = 4800

// PlaybackChunk is the payload of playback.chunk. The body is 16-bit little-endian PCM, mono.
type PlaybackChunk struct {
	Playback string `json:"playback"` // id of the playback.start
}

// CheckPlaybackChunk returns an *Error with code bad_frame if the payload or the body of a playback.chunk is not valid.
func CheckPlaybackChunk(payload, body []byte) error {
	var p PlaybackChunk
	switch {
	case json.Unmarshal(payload, &p) != nil || !validWord(p.Playback, MaxID):
		return badFrame("%s payload must be {playback: the id of a playback.start}", TypePlaybackChunk)
	case len(body) == 0 || len(body)%2 != 0 || len(body) > MaxPlaybackChunk:
		return badFrame("%s must have an even number of bytes from 2 to %d, not %d", TypePlaybackChunk, MaxPlaybackChunk,
			len(body))
	}
	return nil
}

// Kinds of Input.
const (
	InputTap       = "tap"
	InputDoubleTap = "doubleTap"
	InputHold      = "hold"
	InputSwipe     = "swipe"
	InputSelect    = "select"
	InputNavigate  = "navigate"
	InputBack      = "back"
	InputCapture   = "capture"
)

// InputKinds returns every kind of Input.
func InputKinds() []string {
	return []string{InputTap, InputDoubleTap, InputHold, InputSwipe, InputSelect, InputNavigate, InputBack,
		InputCapture}
}

// Input is the payload of input.
type Input struct {
	Kind string `json:"kind,omitempty"`
	// X and Y are the panel pixel of a tap on a simulator's touch panel, counted from the top left; 0 for other inputs.
	X int `json:"x"`
	Y int `json:"y"`
	// Direction is up, down, left or right, for swipe and navigate.
	Direction string `json:"direction,omitempty"`
	// Side is left or right, on glasses with two touch bars.
	Side string `json:"side,omitempty"`
	// Target is the ID of the node that was tapped or selected, or that now has the focus. The glasses set it. A
	// sim.input that contains only a target requests the inputs that select it.
	Target string `json:"target,omitempty"`
}

// Transcript is the payload of transcript.
type Transcript struct {
	Text       string `json:"text"`
	Final      bool   `json:"final"`
	Language   string `json:"language,omitempty"`   // BCP 47
	Confidence int    `json:"confidence,omitempty"` // percent; 0 if unknown
}

// Motion is the payload of motion. Acceleration is in thousandths of g, rotation in thousandths of a degree per second.
// The axes are relative to the head: x points to the wearer's right, y forward, z up. Rotation follows the right-hand
// rule: positive GX looks up, positive GY tilts to the right shoulder, positive GZ turns to the left. At rest, the
// acceleration points up.
type Motion struct {
	AX int `json:"ax"`
	AY int `json:"ay"`
	AZ int `json:"az"`
	GX int `json:"gx"`
	GY int `json:"gy"`
	GZ int `json:"gz"`
}

// SpeechState is the payload of speech.
type SpeechState struct {
	ID    string `json:"id"`    // id of the speech.say
	State string `json:"state"` // finished or stopped
}

// PlaybackState is the payload of playback.
type PlaybackState struct {
	ID       string `json:"id"`       // id of the playback.start
	State    string `json:"state"`    // PlaybackStarted, PlaybackFinished or PlaybackStopped
	PlayedMs int64  `json:"playedMs"` // the sound that was played, without gaps
	// Reason is the code with which playback.start would fail now, if the state of the glasses stopped playback. It is
	// CodeBusy if the app sent too much sound ahead.
	Reason string `json:"reason,omitempty"`
}

// States of PlaybackState.
const (
	PlaybackStarted  = "started"
	PlaybackFinished = "finished" // everything was played
	PlaybackStopped  = "stopped"
)

// Payloads of the events that each report one part of State.
type (
	// WearState is the payload of wear.
	WearState struct {
		Worn bool `json:"worn"`
	}
	// StateWord is the payload of hinge, thermal and link.
	StateWord struct {
		State string `json:"state"`
	}
	// RouteState is the payload of route.
	RouteState struct {
		To string `json:"to"`
	}
	// CallState is the payload of call.
	CallState struct {
		Active bool `json:"active"`
	}
	// PermissionState is the payload of permission.
	PermissionState struct {
		Part  string `json:"part"`
		State string `json:"state"`
		// By is always ByPermission.
		By string `json:"by,omitempty"`
	}
	// DisabledState is the payload of disabled.
	DisabledState struct {
		Parts []string `json:"parts"`
		// By is always BySwitch.
		By string `json:"by,omitempty"`
	}
	// TranscriptionState is the payload of transcription.
	TranscriptionState struct {
		Running bool `json:"running"`
		// Reason is the code with which transcription.start would fail now. It is empty while transcription is running,
		// and if the service ended it because a new app attached.
		Reason string `json:"reason,omitempty"`
		// Part and By are the fields of that error.
		Part string `json:"part,omitempty"`
		By   string `json:"by,omitempty"`
	}
)

// LinkState is the payload of link.
type LinkState = StateWord

// IsStream reports whether frames of this type are counted instead of logged.
func IsStream(typ string) bool {
	switch typ {
	case TypeMotion, TypeAudioChunk, TypeVideoFrame, TypeMedia, TypePlaybackChunk:
		return true
	}
	return false
}

// FromGlasses reports whether typ is an event or a binary frame of the glasses, which is relayed to apps. Apps may not
// send these types, except transcription and playback.
func FromGlasses(typ string) bool {
	switch typ {
	case TypeInput, TypeTranscript, TypeMotion, TypeSpeech, TypeBattery, TypeWear, TypeHinge, TypeThermal, TypeLink,
		TypeRoute, TypeCall, TypePermission, TypeDisabled, TypeDevice, TypeFault, TypeMedia, TypeAudioChunk,
		TypeVideoFrame, TypeTranscription, TypePlayback:
		return true
	}
	return false
}
