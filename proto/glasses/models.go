package glasses

// DeviceModel describes one kind of glasses. Ids are open strings; Models lists those that this build knows.
type DeviceModel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Panel is nil for glasses without a display.
	Panel *Panel `json:"panel"`
	// Inputs are the kinds that the wearer can make, e.g. tap.
	Inputs     []string `json:"inputs"`
	Camera     bool     `json:"camera"`
	Microphone bool     `json:"microphone"`
	Speaker    bool     `json:"speaker"`
}

// Panel is the display of a device model.
type Panel struct {
	// Width and Height are the visible pixels.
	Width  int `json:"width"`
	Height int `json:"height"`
	// Shape is rect or round.
	Shape string `json:"shape"`
	// Colour is rgb, green (one hue) or palette; Bits is the depth of a pixel, 0 where nobody says.
	Colour string `json:"colour"`
	Bits   int    `json:"bits"`
	// Fidelity says how these numbers are known: measured, documented or guessed.
	Fidelity string `json:"fidelity"`
}

// DefaultDeviceModel is what a new session gets when nobody names a model.
const DefaultDeviceModel = "rayban_display"

const (
	rect       = "rect"
	round      = "round"
	documented = "documented"
	guessed    = "guessed"
)

// Models lists the known device models, in the order in which people are shown them.
func Models() []DeviceModel {
	return []DeviceModel{
		{ID: "rayban_display", Name: "Ray-Ban Display", Panel: &Panel{600, 600, rect, "rgb", 24, documented},
			Inputs: []string{"tap", "select", "navigate", "back", "capture"}, Camera: true, Microphone: true, Speaker: true},
		{ID: "rayban_meta", Name: "Ray-Ban Meta", Inputs: []string{"tap", "capture"}, Camera: true, Microphone: true, Speaker: true},
		{ID: "oakley_meta_hstn", Name: "Oakley Meta HSTN", Inputs: []string{"tap", "capture"}, Camera: true, Microphone: true, Speaker: true},
		{ID: "even_g1", Name: "Even G1", Panel: &Panel{576, 136, rect, "green", 1, documented},
			Inputs: []string{"tap", "doubleTap", "hold"}, Microphone: true},
		{ID: "even_g2", Name: "Even G2", Panel: &Panel{576, 288, rect, "green", 4, documented},
			Inputs: []string{"tap", "doubleTap", "navigate"}, Microphone: true},
		{ID: "brilliant_frame", Name: "Brilliant Frame", Panel: &Panel{640, 400, rect, "palette", 4, documented},
			Inputs: []string{"tap"}, Camera: true, Microphone: true},
		{ID: "brilliant_halo", Name: "Brilliant Halo", Panel: &Panel{256, 256, round, "rgb", 0, documented},
			Inputs: []string{"tap", "select"}, Camera: true, Microphone: true, Speaker: true},
		{ID: "android_xr_display", Name: "Android XR display glasses", Panel: &Panel{450, 394, rect, "rgb", 24, guessed},
			Inputs: []string{"tap", "swipe"}, Camera: true, Microphone: true, Speaker: true},
		{ID: "system_audio", Name: "Bluetooth headset", Inputs: []string{}, Microphone: true, Speaker: true},
	}
}

// Model finds a device model by its id.
func Model(id string) (DeviceModel, bool) {
	for _, m := range Models() {
		if m.ID == id {
			return m, true
		}
	}
	return DeviceModel{}, false
}
