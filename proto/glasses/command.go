package glasses

import "encoding/json"

// Commands: an app asks, the glasses answer with a result of the same id.
const (
	TypeDisplayShow  = "display.show"
	TypeDisplayClear = "display.clear"

	TypeSpeechSay  = "speech.say"
	TypeSpeechStop = "speech.stop"
	TypeSoundPlay  = "sound.play"

	TypeAudioStart         = "audio.start" // microphone as audio.chunk stream frames
	TypeAudioStop          = "audio.stop"
	TypeTranscriptionStart = "transcription.start" // speech as transcript events
	TypeTranscriptionStop  = "transcription.stop"
	TypeVideoStart         = "video.start" // camera as video.frame stream frames
	TypeVideoStop          = "video.stop"
	TypeMotionStart        = "motion.start" // motion stream frames
	TypeMotionStop         = "motion.stop"

	TypeCameraPhoto = "camera.photo"
	TypeCameraVideo = "camera.video"

	// TypePhrasesAnnounce tells which phrases the app understands, so that people and agents can say them.
	TypePhrasesAnnounce = "phrases.announce"
	// TypeClockSleep is answered when its time has passed on the session's clock: an app that waits this way runs alike
	// in real and in virtual time.
	TypeClockSleep = "clock.sleep"
)

// Commands lists every command of this version with its chip, in the order in which people are told of them.
func Commands() []CommandInfo {
	return []CommandInfo{
		{TypeDisplayShow, ChipDisplay}, {TypeDisplayClear, ChipDisplay},
		{TypeSpeechSay, ChipVoice}, {TypeSpeechStop, ChipVoice}, {TypeSoundPlay, ChipVoice},
		{TypeAudioStart, ChipVoice}, {TypeAudioStop, ChipVoice},
		{TypeTranscriptionStart, ChipVoice}, {TypeTranscriptionStop, ChipVoice}, {TypePhrasesAnnounce, ChipVoice},
		{TypeCameraPhoto, ChipCamera}, {TypeCameraVideo, ChipCamera}, {TypeVideoStart, ChipCamera}, {TypeVideoStop, ChipCamera},
		{TypeMotionStart, ChipLifecycle}, {TypeMotionStop, ChipLifecycle}, {TypeClockSleep, ChipLifecycle},
	}
}

// CommandInfo is a command's type and the chip of its rows.
type CommandInfo struct{ Type, Chip string }

var commandChips = func() map[string]string {
	m := map[string]string{}
	for _, c := range Commands() {
		m[c.Type] = c.Chip
	}
	return m
}()

// IsCommand tells whether a frame type is a command that must be answered by a result.
func IsCommand(typ string) bool { _, ok := commandChips[typ]; return ok }

// Say is the payload of speech.say: text of 1 to MaxSay characters. The speech event tells when it is over.
type Say struct {
	Text     string `json:"text"`
	Language string `json:"language,omitempty"` // BCP 47; the glasses' own when empty
}

// Play is the payload of sound.play: one of Sounds.
type Play struct {
	Sound string `json:"sound"`
}

// Sounds lists the sounds that every pair of glasses has.
func Sounds() []string { return []string{"chime", "success", "error", "tick"} }

// AudioStart is the payload of audio.start. Chunks are 16-bit little-endian PCM, one channel, 100 ms each.
type AudioStart struct {
	SampleRate int `json:"sampleRate,omitempty"` // 8000 or 16000, the default
}

// TranscriptionStart is the payload of transcription.start.
type TranscriptionStart struct {
	Language string `json:"language,omitempty"` // BCP 47
}

// VideoStart is the payload of video.start. Frames are JPEG.
type VideoStart struct {
	FPS   int `json:"fps,omitempty"`   // 1 to 30, default 5
	Width int `json:"width,omitempty"` // 64 to 1280, default 640; the height follows the camera
}

// MotionStart is the payload of motion.start.
type MotionStart struct {
	Hz int `json:"hz,omitempty"` // 1 to 100, default 10
}

// Photo is the payload of camera.photo. The result has media, a JPEG.
type Photo struct {
	Width int `json:"width,omitempty"` // 64 to 4032, default 1280; the height follows the camera
}

// Video is the payload of camera.video. The result comes when it is taken and has media.
type Video struct {
	DurationMs int64 `json:"durationMs"` // 100 to MaxVideo
	FPS        int   `json:"fps,omitempty"`
	Width      int   `json:"width,omitempty"`
}

// Announce is the payload of phrases.announce: up to MaxPhrases phrases of 1 to 100 characters; it replaces the last one.
type Announce struct {
	Phrases []string `json:"phrases"`
}

// Sleep is the payload of clock.sleep.
type Sleep struct {
	Ms int64 `json:"ms"` // 0 to MaxSleep
}

// Bounds of commands.
const (
	MaxSay     = 2000   // characters
	MaxPhrases = 50     // phrases
	MaxVideo   = 30_000 // ms
	MaxSleep   = 600_000
)

// ParseCommand reads the payload of a command into its type: *Show, *Say, *Play, *AudioStart, *TranscriptionStart,
// *VideoStart, *MotionStart, *Photo, *Video, *Announce, *Sleep, or nil for commands without one. Defaults are filled in.
// The error is an *Error with code bad_payload, or unsupported for a type that is no command.
func ParseCommand(typ string, payload []byte) (any, error) {
	switch typ {
	case TypeDisplayShow:
		s, err := ParseShow(payload)
		return &s, err
	case TypeDisplayClear, TypeSpeechStop, TypeAudioStop, TypeTranscriptionStop, TypeVideoStop, TypeMotionStop:
		return nil, nil
	case TypeSpeechSay:
		return parse(typ, payload, &Say{}, (*Say).check)
	case TypeSoundPlay:
		return parse(typ, payload, &Play{}, (*Play).check)
	case TypeAudioStart:
		return parse(typ, payload, &AudioStart{}, (*AudioStart).check)
	case TypeTranscriptionStart:
		return parse(typ, payload, &TranscriptionStart{}, (*TranscriptionStart).check)
	case TypeVideoStart:
		return parse(typ, payload, &VideoStart{}, (*VideoStart).check)
	case TypeMotionStart:
		return parse(typ, payload, &MotionStart{}, (*MotionStart).check)
	case TypeCameraPhoto:
		return parse(typ, payload, &Photo{}, (*Photo).check)
	case TypeCameraVideo:
		return parse(typ, payload, &Video{}, (*Video).check)
	case TypePhrasesAnnounce:
		return parse(typ, payload, &Announce{}, (*Announce).check)
	case TypeClockSleep:
		return parse(typ, payload, &Sleep{}, (*Sleep).check)
	}
	return nil, &Error{Code: CodeUnsupported, Message: typ + " is not a command of this version"}
}

func parse[T any](typ string, payload []byte, into *T, check func(*T) *Error) (any, error) {
	if err := json.Unmarshal(payload, into); err != nil {
		return nil, badPayload("%s payload: %s", typ, plain(err))
	}
	if err := check(into); err != nil {
		return nil, badPayload("%s payload: %s", typ, err.Message)
	}
	return into, nil
}
