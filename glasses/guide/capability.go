package guide

import "github.com/service-dev/service/glasses"

// IDs of capabilities. Tools, guides and generated modules use them to identify functions of glasses.
const (
	Display       = "display"
	Camera        = "camera"
	Microphone    = "microphone"
	Transcription = "transcription"
	Speech        = "speech"
	Sound         = "sound"
	Motion        = "motion"
	Input         = "input"
	State         = "state"
	Phrases       = "phrases"
	Assistant     = "assistant"
	Time          = "time"
)

// Capability is a function of glasses that an app can use.
type Capability struct {
	ID    string
	About string
	// Commands and Events are the frame types that belong to the capability.
	Commands, Events []string
	// Part is the part of the glasses that the wearer may deny or switch off: camera, microphone or speech; empty if
	// there is none.
	Part string
}

// Capabilities returns every capability. Each command belongs to exactly one.
func Capabilities() []Capability {
	return []Capability{
		{ID: Display,
			About:    "Show a tree of text, images, icons, buttons, lists and progress on the panel, and clear it.",
			Commands: []string{glasses.TypeDisplayShow, glasses.TypeDisplayClear}},
		{ID: Camera, About: "Take photos and clips, and stream frames from the camera.", Part: glasses.PartCamera,
			Commands: []string{
				glasses.TypeCameraPhoto, glasses.TypeCameraVideo, glasses.TypeVideoStart, glasses.TypeVideoStop,
			},
			Events: []string{glasses.TypeMedia, glasses.TypeVideoFrame}},
		{ID: Microphone, About: "Stream raw sound from the microphone.", Part: glasses.PartMicrophone,
			Commands: []string{glasses.TypeAudioStart,
				glasses.TypeAudioStop}, Events: []string{glasses.TypeAudioChunk}},
		{ID: Transcription, About: "Receive what the wearer says as text.", Part: glasses.PartMicrophone,
			Commands: []string{glasses.TypeTranscriptionStart, glasses.TypeTranscriptionStop},
			Events:   []string{glasses.TypeTranscript, glasses.TypeTranscription}},
		{ID: Speech, About: "Speak to the wearer.", Part: glasses.PartSpeech,
			Commands: []string{glasses.TypeSpeechSay, glasses.TypeSpeechStop}, Events: []string{glasses.TypeSpeech}},
		{ID: Sound, About: "Play built-in sounds or the app's own.", Commands: []string{glasses.TypeSoundPlay,
			glasses.TypePlaybackStart, glasses.TypePlaybackEnd, glasses.TypePlaybackFlush},
			Events: []string{glasses.TypePlayback}},
		{ID: Motion, About: "Stream head movements.",
			Commands: []string{glasses.TypeMotionStart, glasses.TypeMotionStop}, Events: []string{glasses.TypeMotion}},
		{ID: Input, About: "Receive taps, swipes, selections and buttons.", Events: []string{glasses.TypeInput}},
		{ID: State,
			About: "Receive changes of battery, wear, hinge, heat, link, audio route, calls, permissions and model.",
			Events: []string{
				glasses.TypeBattery, glasses.TypeWear, glasses.TypeHinge, glasses.TypeThermal, glasses.TypeLink,
				glasses.TypeRoute, glasses.TypeCall, glasses.TypePermission, glasses.TypeDisabled, glasses.TypeDevice,
			}},
		{ID: Phrases, About: "Announce the phrases that the app understands, so that people and agents can say them.",
			Commands: []string{glasses.TypePhrasesAnnounce}},
		{ID: Assistant, About: "Ask a language model, which may call the app's tools."},
		{ID: Time, About: "Wait on the session's clock, in real and in virtual time.",
			Commands: []string{glasses.TypeClockSleep, glasses.TypeClockCancel}},
	}
}

// CapabilityOf returns the capability with this ID.
func CapabilityOf(id string) (Capability, bool) {
	for _, c := range Capabilities() {
		if c.ID == id {
			return c, true
		}
	}
	return Capability{}, false
}

// CapabilityIDs returns the IDs in the order of Capabilities.
func CapabilityIDs() []string {
	var ids []string
	for _, c := range Capabilities() {
		ids = append(ids, c.ID)
	}
	return ids
}

// Has reports whether a device model has a capability.
func Has(m glasses.DeviceModel, capability string) bool {
	switch capability {
	case Display:
		return m.Panel != nil
	case Camera:
		return m.Camera != nil
	case Microphone, Transcription:
		return m.Microphone
	case Speech, Sound:
		return m.Speaker
	case Motion:
		return m.Motion
	case Input:
		return len(m.Inputs) > 0
	case State, Phrases, Assistant, Time:
		return true
	}
	return false
}
