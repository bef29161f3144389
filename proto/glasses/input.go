package glasses

// Events: the glasses tell the app.
const (
	TypeInput      = "input"      // Input
	TypeTranscript = "transcript" // Transcript, while transcription runs
	TypeMotion     = "motion"     // Motion, a stream while motion runs; counted, not logged
	TypeSpeech     = "speech"     // SpeechState: a say is over
	TypeBattery    = "battery"    // Battery
	TypeWear       = "wear"       // {worn}
	TypeHinge      = "hinge"      // {state}
	TypeThermal    = "thermal"    // {state}
	TypeLink       = "link"       // {state}; service -> app too, when glasses attach or leave
	TypeRoute      = "route"      // {to}
	TypeCall       = "call"       // {active}
	TypePermission = "permission" // {part, state}
	TypeDisabled   = "disabled"   // {parts}
	TypeDevice     = "device"     // DeviceChange
	TypeFault      = "fault"      // Fault: a fault was set; for the record, apps ignore it
)

// Binary frames of the glasses (see Binary).
const (
	TypeMedia      = "media"       // the bytes of a result's media, just before it, with the same id
	TypeAudioChunk = "audio.chunk" // a stream while audio runs
	TypeVideoFrame = "video.frame" // a stream while video runs
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

// InputKinds lists the kinds of Input.
func InputKinds() []string {
	return []string{InputTap, InputDoubleTap, InputHold, InputSwipe, InputSelect, InputNavigate, InputBack, InputCapture}
}

// Input is the payload of input.
type Input struct {
	Kind string `json:"kind"`
	// X and Y are panel pixels from the top left, of a tap on a touch panel of a simulator; 0 otherwise.
	X int `json:"x"`
	Y int `json:"y"`
	// Direction of swipe and navigate: up, down, left, right.
	Direction string `json:"direction,omitempty"`
	// Side is the touch bar that was used, where there are two: left or right.
	Side string `json:"side,omitempty"`
	// Target is the id of the node that was tapped, selected or has the focus now. The glasses fill it in.
	Target string `json:"target,omitempty"`
}

// Transcript is the payload of transcript.
type Transcript struct {
	Text       string `json:"text"`
	Final      bool   `json:"final"`
	Language   string `json:"language,omitempty"`   // BCP 47
	Confidence int    `json:"confidence,omitempty"` // percent; 0 where nobody says
}

// Motion is the payload of motion: acceleration in thousandths of g, rotation in thousandths of a degree a second.
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
	ID    string `json:"id"`    // of the speech.say
	State string `json:"state"` // finished or stopped
}

// Payloads of events that tell of one part of State.
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
	}
	// DisabledState is the payload of disabled.
	DisabledState struct {
		Parts []string `json:"parts"`
	}
)

// LinkState is the payload of link.
type LinkState = StateWord

// IsStream tells whether frames of this type are counted instead of logged row by row.
func IsStream(typ string) bool {
	return typ == TypeMotion || typ == TypeAudioChunk || typ == TypeVideoFrame || typ == TypeMedia
}

// FromGlasses tells whether a frame type is an event of the glasses, text or binary: relayed to the apps, never taken
// from one.
func FromGlasses(typ string) bool {
	switch typ {
	case TypeInput, TypeTranscript, TypeMotion, TypeSpeech, TypeBattery, TypeWear, TypeHinge, TypeThermal, TypeLink, TypeRoute, TypeCall,
		TypePermission, TypeDisabled, TypeDevice, TypeFault, TypeMedia, TypeAudioChunk, TypeVideoFrame:
		return true
	}
	return false
}
