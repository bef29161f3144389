package glasses

import "slices"

// DeviceModel describes one model of glasses. Any string may be an ID. Models lists the built-in models.
type DeviceModel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Panel is nil for glasses without a display.
	Panel *Panel `json:"panel"`
	// Inputs lists the kinds of input available to the wearer, e.g. tap.
	Inputs []string `json:"inputs"`
	// Camera is nil for glasses without a camera.
	Camera     *Camera `json:"camera"`
	Microphone bool    `json:"microphone"`
	Speaker    bool    `json:"speaker"`
	Motion     bool    `json:"motion"`
	// Fidelity maps each fact (panel, inputs, camera, microphone, speaker, motion, pace) to its source: measured,
	// documented or guessed.
	Fidelity map[string]string `json:"fidelity"`
	// Proof describes how well the service has been proven with the real glasses.
	Proof Proof `json:"-"`
	// WithoutAddedFonts is set for glasses in a browser page, which cannot use fonts that the user added to
	// this machine.
	WithoutAddedFonts bool `json:"-"`
}

// Panel is the display of a device model.
type Panel struct {
	// Width and Height are the visible pixels.
	Width  int `json:"width"`
	Height int `json:"height"`
	// Shape is rect or round. Only the inscribed square of a round panel is used.
	Shape string `json:"shape"`
	// Colour is rgb, green (one hue) or palette. Bits is the depth of a pixel, 0 if unknown.
	Colour string `json:"colour"`
	Bits   int    `json:"bits"`
	// Additive is set for panels that add light to the wearer's view, so that black is transparent.
	Additive bool `json:"additive"`
	// TextWidth is the maximum width of a line of text in pixels, and TextLines the maximum number of lines. For both,
	// 0 means no limit except the panel.
	TextWidth int `json:"textWidth,omitempty"`
	TextLines int `json:"textLines,omitempty"`
	// FullMs is how long the glasses take to show a whole picture, in ms; 0 if unknown. Its key in Fidelity is "pace".
	// Simulated glasses are this slow only on request (pace real).
	FullMs int64 `json:"fullMs,omitempty"`
}

// Camera is the camera of a device model, with the size of its largest picture.
type Camera struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Values of fields of Panel and Fidelity.
const (
	ShapeRect  = "rect"
	ShapeRound = "round"

	ColourRGB     = "rgb"
	ColourGreen   = "green"
	ColourPalette = "palette"

	Measured   = "measured"
	Documented = "documented"
	Guessed    = "guessed"
)

// DefaultDeviceModel is the model of a new session if none is chosen.
const DefaultDeviceModel = "rayban_display"

// Models returns the known device models, in display order.
func Models() []DeviceModel {
	return []DeviceModel{
		{
			ID: "rayban_display", Name: "Ray-Ban Display",
			Panel:  &Panel{Width: 600, Height: 600, Shape: ShapeRect, Colour: ColourRGB, Bits: 24, Additive: true},
			Inputs: []string{InputTap, InputSelect, InputNavigate, InputBack, InputCapture},
			Camera: &Camera{3024, 4032}, Microphone: true, Speaker: true, Motion: true,
			Fidelity: known("camera", Guessed),
			Proof:    metaPhoneOnly,
		},
		{
			ID: "rayban_meta", Name: "Ray-Ban Meta", Inputs: []string{InputTap, InputSwipe, InputCapture},
			Camera: &Camera{3024, 4032}, Microphone: true, Speaker: true, Fidelity: known("inputs", Guessed),
			Proof: metaPhoneOnly,
		},
		{
			ID: "oakley_meta_hstn", Name: "Oakley Meta HSTN", Inputs: []string{InputTap, InputSwipe, InputCapture},
			Camera: &Camera{3024, 4032}, Microphone: true, Speaker: true, Fidelity: known("inputs", Guessed),
			Proof: metaPhoneOnly,
		},
		{
			ID: "even_g1", Name: "Even G1",
			Panel: &Panel{
				Width: 576, Height: 136, Shape: ShapeRect, Colour: ColourGreen, Bits: 1, Additive: true,
				TextWidth: 488, TextLines: 5,
				FullMs: 1600, // measured by the vendor; a user measured 3 s (EvenDemoApp, issue 36)
			},
			Inputs: []string{InputTap, InputDoubleTap, InputHold}, Microphone: true, Fidelity: known("pace", Measured),
			Proof: emulated,
		},
		{
			ID: "even_g2", Name: "Even G2",
			Panel:  &Panel{Width: 576, Height: 288, Shape: ShapeRect, Colour: ColourGreen, Bits: 4, Additive: true},
			Inputs: []string{InputTap, InputDoubleTap, InputNavigate}, Microphone: true, Fidelity: known(),
			Proof: phoneOnly("the vendor offers apps inside its phone app, without access to Bluetooth"),
		},
		{
			ID: "brilliant_frame", Name: "Brilliant Frame",
			Panel: &Panel{Width: 640, Height: 400, Shape: ShapeRect, Colour: ColourPalette, Bits: 4, Additive: true,
				FullMs: 8000}, // 527 packets, each acknowledged within a connection interval of 15 ms
			Inputs: []string{InputTap}, Camera: &Camera{720, 720}, Microphone: true, Motion: true,
			Fidelity: known("pace", Guessed),
			Proof:    emulated,
		},
		{
			ID: "brilliant_halo", Name: "Brilliant Halo",
			Panel: &Panel{Width: 256, Height: 256, Shape: ShapeRound, Colour: ColourRGB, Bits: 24, Additive: true,
				FullMs: 1000}, // 4 bits per pixel: 65 packets of 512 bytes at an interval of 15 ms
			Inputs: []string{InputTap, InputDoubleTap, InputHold, InputSelect}, Camera: &Camera{640, 480},
			Microphone: true, Speaker: true, Motion: true, Fidelity: known("pace", Guessed),
			Proof: emulated,
		},
		{
			ID: "android_xr_display", Name: "Android XR display glasses",
			Panel:  &Panel{Width: 450, Height: 394, Shape: ShapeRect, Colour: ColourRGB, Bits: 24, Additive: true},
			Inputs: []string{InputTap, InputSwipe}, Camera: &Camera{1920, 1080},
			Microphone: true, Speaker: true, Motion: true,
			Fidelity: known("panel", Guessed, "camera", Guessed, "motion", Guessed),
			Proof:    phoneOnly("apps are projected from an Android phone"),
		},
		{
			ID: "system_audio", Name: "Bluetooth headset", Inputs: []string{}, Microphone: true, Speaker: true,
			Fidelity: known(),
			Proof:    Proof{ProofNone, "a headset has no panel or inputs of its own that this service could drive"},
		},
	}
}

// Proof describes how well this service has been proven with the real glasses of a device model.
type Proof struct {
	// State is one of the Proof constants.
	State string `json:"state"`
	// Reason explains the state.
	Reason string `json:"reason"`
}

// States of a Proof.
const (
	// ProofEmulated means that our driver passes its tests against an emulated peripheral, and that no run on hardware
	// has been recorded.
	ProofEmulated = "emulated"
	// ProofPhoneOnly means that only an app on a phone can reach the glasses. The app may act as the glasses
	// (PROTOCOL.md).
	ProofPhoneOnly = "phone_only"
	// ProofNone means that there is no driver.
	ProofNone = "none"
)

var (
	emulated = Proof{ProofEmulated, "built from the vendor's published protocol and proven against an emulated " +
		"peripheral; not yet run on real glasses"}
	metaPhoneOnly = phoneOnly("Meta's Device Access Toolkit works in phone apps only")
)

func phoneOnly(why string) Proof { return Proof{ProofPhoneOnly, why} }

// known returns the fidelity of a model, which is documented for every fact not listed in except. except contains pairs
// of fact and fidelity.
func known(except ...string) map[string]string {
	marks := map[string]string{
		"panel": Documented, "inputs": Documented, "camera": Documented,
		"microphone": Documented, "speaker": Documented, "motion": Documented,
	}
	for pair := range slices.Chunk(except, 2) {
		marks[pair[0]] = pair[1]
	}
	return marks
}

// ModelIDs returns the IDs of Models.
func ModelIDs() []string { return namesOf(Models(), func(m DeviceModel) string { return m.ID }) }

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = name(one)
	}
	return names
}

// Model returns the device model with this ID.
func Model(id string) (DeviceModel, bool) {
	for _, m := range Models() {
		if m.ID == id {
			return m, true
		}
	}
	return DeviceModel{}, false
}

// ProofOf returns the proof for a device model, which may be unknown.
func ProofOf(deviceModel string) Proof {
	if m, isKnown := Model(deviceModel); isKnown {
		return m.Proof
	}
	return Proof{ProofNone, "there is no driver yet"}
}

// HasInput reports whether the model has this kind of input.
func (m DeviceModel) HasInput(kind string) bool {
	return slices.Contains(m.Inputs, kind)
}

// SelectKind returns the kind of input that selects the focused target: select, or tap on models without select.
func (m DeviceModel) SelectKind() string {
	if m.HasInput(InputSelect) {
		return InputSelect
	}
	return InputTap
}

// MoveKind returns the kind of input that moves the focus and scrolls: navigate, or swipe on models without navigate.
// It returns "" if the model has neither.
func (m DeviceModel) MoveKind() string {
	for _, kind := range []string{InputNavigate, InputSwipe} {
		if m.HasInput(kind) {
			return kind
		}
	}
	return ""
}
