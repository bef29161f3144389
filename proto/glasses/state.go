package glasses

// State is what a pair of glasses can be in, whatever their model. Simulators show and change it; apps hear of each
// change by the event of the same name.
type State struct {
	Battery Battery `json:"battery"`
	// Worn is false when the glasses are off: display and speech are paused.
	Worn  bool   `json:"worn"`
	Hinge string `json:"hinge"` // open or folded
	// Thermal is nominal, warm or critical.
	Thermal string `json:"thermal"`
	// Link is connected, lossy or lost.
	Link  string `json:"link"`
	Route string `json:"route"` // glasses or phone: where sound goes
	// Call is true while a phone call holds microphone and speaker.
	Call bool `json:"call"`
	// Permissions of camera, microphone and speech: granted or denied.
	Permissions map[string]string `json:"permissions"`
	// Disabled lists what the wearer switched off: camera, microphone, speech.
	Disabled []string `json:"disabled"`
	// Running lists the streams that run: audio, transcription, video, motion.
	Running []string `json:"running"`
	// Phrases are what the app announced last.
	Phrases []string `json:"phrases"`
	// Faults that wait for a command.
	Faults []Fault `json:"faults"`
}

// Battery is part of State and the payload of battery.
type Battery struct {
	Level    int  `json:"level"` // percent, 0 to 100
	Charging bool `json:"charging"`
}

// Words of State and of the events that tell of it.
const (
	HingeOpen   = "open"
	HingeFolded = "folded"

	ThermalNominal  = "nominal"
	ThermalWarm     = "warm"
	ThermalCritical = "critical"

	LinkConnected    = "connected"    // glasses are attached and reachable
	LinkLossy        = "lossy"        // answers are late: 400 ms
	LinkLost         = "lost"         // attached, out of reach
	LinkDisconnected = "disconnected" // none is attached; said by the service

	RouteGlasses = "glasses"
	RoutePhone   = "phone"

	PermissionGranted = "granted"
	PermissionDenied  = "denied"

	PartCamera     = "camera"
	PartMicrophone = "microphone"
	PartSpeech     = "speech"

	StreamAudio         = "audio"
	StreamTranscription = "transcription"
	StreamVideo         = "video"
	StreamMotion        = "motion"
)

// FreshState is what new glasses are in.
func FreshState() State {
	return State{
		Battery: Battery{Level: 100}, Worn: true, Hinge: HingeOpen, Thermal: ThermalNominal, Link: LinkConnected, Route: RouteGlasses,
		Permissions: map[string]string{PartCamera: PermissionGranted, PartMicrophone: PermissionGranted, PartSpeech: PermissionGranted},
		Disabled:    []string{}, Running: []string{}, Phrases: []string{}, Faults: []Fault{},
	}
}

// View is what a panel shows and how: the tree, and what the wearer did to it.
type View struct {
	// Tree is nil while the panel is clear.
	Tree *Node `json:"tree"`
	// Focus is the index of the focused target in drawing order; -1 for none.
	Focus int `json:"focus"`
	// Scroll is panel pixels that the content moved up; with paginate it is a multiple of the page.
	Scroll int `json:"scroll"`
}

// Snapshot is all that a pair of glasses remembers: what a simulator takes up after a restart.
type Snapshot struct {
	DeviceModel string `json:"deviceModel"`
	State       State  `json:"state"`
	View        View   `json:"view"`
}
