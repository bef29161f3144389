package glasses

// State is the state that glasses of every model report. Simulators display and modify it. Apps receive each change as
// an event named after the changed field.
type State struct {
	Battery Battery `json:"battery"`
	// Worn is false while the glasses are taken off. Display and speech are then paused.
	Worn  bool   `json:"worn"`
	Hinge string `json:"hinge"` // open or folded
	// Thermal is nominal, warm or critical.
	Thermal string `json:"thermal"`
	// Link is connected, lossy or lost.
	Link  string `json:"link"`
	Route string `json:"route"` // the device that plays sound: glasses or phone
	// Call is true while a phone call uses the microphone and speaker.
	Call bool `json:"call"`
	// Permissions maps camera, microphone and speech to granted or denied.
	Permissions map[string]string `json:"permissions"`
	// Disabled lists the parts that the wearer switched off: camera, microphone, speech.
	Disabled []string `json:"disabled"`
	// Running lists the active streams: audio, transcription, video, motion.
	Running []string `json:"running"`
	// Phrases lists the phrases of the app's latest phrases.announce.
	Phrases []string `json:"phrases"`
	// Faults lists the faults that apply to later commands.
	Faults []Fault `json:"faults"`
}

// Battery is a part of State, and the payload of battery.
type Battery struct {
	Level    int  `json:"level"` // percent, 0 to 100
	Charging bool `json:"charging"`
}

// Values of State and of the events that report its changes.
const (
	HingeOpen   = "open"
	HingeFolded = "folded"

	ThermalNominal  = "nominal"
	ThermalWarm     = "warm"
	ThermalCritical = "critical"

	LinkConnected    = "connected"    // glasses are attached and reachable
	LinkLossy        = "lossy"        // answers are delayed by 400 ms
	LinkLost         = "lost"         // attached but unreachable
	LinkDisconnected = "disconnected" // no glasses are attached; reported by the service

	RouteGlasses = "glasses"
	RoutePhone   = "phone"

	PermissionGranted = "granted"
	PermissionDenied  = "denied"

	ByPermission = "permission" // the wearer did not allow a part
	BySwitch     = "switch"     // the wearer switched a part off

	ClockReal    = "real"
	ClockVirtual = "virtual"

	PartCamera     = "camera"
	PartMicrophone = "microphone"
	PartSpeech     = "speech"

	StreamAudio         = "audio"
	StreamTranscription = "transcription"
	StreamVideo         = "video"
	StreamMotion        = "motion"
)

// FreshState returns the initial state of glasses.
func FreshState() State {
	return State{
		Battery: Battery{Level: 100},
		Worn:    true,
		Hinge:   HingeOpen,
		Thermal: ThermalNominal,
		Link:    LinkConnected,
		Route:   RouteGlasses,
		Permissions: map[string]string{
			PartCamera: PermissionGranted, PartMicrophone: PermissionGranted, PartSpeech: PermissionGranted,
		},
		Disabled: []string{},
		Running:  []string{},
		Phrases:  []string{},
		Faults:   []Fault{},
	}
}

// IsDark reports whether the wearer cannot see the panel because the glasses are folded or not worn.
func (s State) IsDark() bool { return s.Hinge == HingeFolded || !s.Worn }

// Seen returns the view that the wearer sees: v, or a clear panel while the glasses are dark.
func (s State) Seen(v View) View {
	if s.IsDark() {
		return View{Focus: -1}
	}
	return v
}

// PanelClears reports whether a change of the link from one state to another clears the panel. While the link is lost,
// the glasses keep their last picture, which cannot be changed. When the link is restored, the panel is clear.
func PanelClears(from, to string) bool { return from == LinkLost && to != LinkLost }

// AppState is the part of State that an app needs when it attaches. The welcome contains it, and events report later
// changes.
type AppState struct {
	Battery Battery `json:"battery"`
	Worn    bool    `json:"worn"`
	Hinge   string  `json:"hinge"`
	Thermal string  `json:"thermal"`
	// Link is connected, lossy, lost, or LinkDisconnected while no glasses are attached.
	Link  string `json:"link"`
	Route string `json:"route"`
	Call  bool   `json:"call"`
	// Permissions maps camera, microphone and speech to granted or denied.
	Permissions map[string]string `json:"permissions"`
	// Disabled lists the parts that the wearer switched off: camera, microphone, speech.
	Disabled []string `json:"disabled"`
	// Clock is ClockReal or ClockVirtual.
	Clock string `json:"clock"`
}

// ForApp returns the part of the state for an app's welcome. link is the state of the connection as reported to the
// app. clock is the session's clock.
func (s State) ForApp(link, clock string) AppState {
	return AppState{
		Battery: s.Battery, Worn: s.Worn, Hinge: s.Hinge, Thermal: s.Thermal, Link: link, Route: s.Route, Call: s.Call,
		Permissions: s.Permissions, Disabled: s.Disabled, Clock: clock,
	}
}

// Patch returns g as a patch. It omits a missing connection, because that is not a state of the glasses.
func (g AppState) Patch() StatePatch {
	p := StatePatch{
		Battery: &g.Battery, Worn: &g.Worn, Hinge: &g.Hinge, Thermal: &g.Thermal, Route: &g.Route, Call: &g.Call,
		Permissions: g.Permissions, Disabled: &g.Disabled,
	}
	if g.Link != LinkDisconnected {
		p.Link = &g.Link
	}
	return p
}

// Standing is state that apps have set and that outlives a pair of glasses. When glasses attach, the service restores
// it with a sim.standing that has this payload.
type Standing struct {
	// Phrases lists the phrases of the latest phrases.announce.
	Phrases []string `json:"phrases"`
	// Transcription is the transcription.start in effect; nil while transcription is off. The service omits it from
	// sim.standing while no app is attached.
	Transcription *TranscriptionStart `json:"transcription"`
}

// View is the content of a panel: the tree, and the focus and scroll position set by the wearer.
type View struct {
	// Tree is nil if the panel is clear.
	Tree *Node `json:"tree"`
	// Focus is the index of the focused target in drawing order; -1 if there is none.
	Focus int `json:"focus"`
	// Scroll is how far the content is scrolled, in panel pixels. With paginate it is a multiple of the page.
	Scroll int `json:"scroll"`
}

// Snapshot is the complete state of a pair of glasses. Simulators use it to resume after a restart.
type Snapshot struct {
	DeviceModel string `json:"deviceModel"`
	State       State  `json:"state"`
	View        View   `json:"view"`
}
