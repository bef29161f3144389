package glasses

// Types of the events that the glasses send to the app.
const (
	TypeInput      = "input"      // Input
	TypeTranscript = "transcript" // Transcript, while transcription is on
	TypeMotion     = "motion"     // Motion, a stream while motion is on; counted, not logged
	TypeSpeech     = "speech"     // SpeechState: a speech.say ended
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

// Payloads of events that each report one part of State.
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
	return typ == TypeMotion || typ == TypeAudioChunk || typ == TypeVideoFrame || typ == TypeMedia
}

// FromGlasses reports whether typ is an event or a binary frame of the glasses, which is relayed to apps. Apps may not
// send these types, except transcription.
func FromGlasses(typ string) bool {
	switch typ {
	case TypeInput, TypeTranscript, TypeMotion, TypeSpeech, TypeBattery, TypeWear, TypeHinge, TypeThermal, TypeLink,
		TypeRoute, TypeCall, TypePermission, TypeDisabled, TypeDevice, TypeFault, TypeMedia, TypeAudioChunk,
		TypeVideoFrame, TypeTranscription:
		return true
	}
	return false
}
