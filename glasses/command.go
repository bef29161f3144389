package glasses

import "encoding/json"

// Commands are sent by an app. The glasses answer each one with a result that has the same ID.
const (
	TypeDisplayShow  = "display.show"
	TypeDisplayClear = "display.clear"

	TypeSpeechSay  = "speech.say"
	TypeSpeechStop = "speech.stop"
	TypeSoundPlay  = "sound.play"

	TypePlaybackStart = "playback.start" // plays the playback.chunk frames that follow
	TypePlaybackEnd   = "playback.end"   // no more chunks follow; the result does not wait for the rest
	TypePlaybackFlush = "playback.flush" // ends playback at once

	TypeAudioStart         = "audio.start" // streams the microphone as audio.chunk frames
	TypeAudioStop          = "audio.stop"
	TypeTranscriptionStart = "transcription.start" // sends speech as transcript events
	TypeTranscriptionStop  = "transcription.stop"
	TypeVideoStart         = "video.start" // streams the camera as video.frame frames
	TypeVideoStop          = "video.stop"
	TypeMotionStart        = "motion.start" // streams motion frames
	TypeMotionStop         = "motion.stop"

	TypeCameraPhoto = "camera.photo"
	TypeCameraVideo = "camera.video"

	// TypePhrasesAnnounce announces the phrases that the app understands, so that users and agents can say them.
	TypePhrasesAnnounce = "phrases.announce"
	// TypeClockSleep is answered after its duration on the session's clock. An app that waits with it behaves the same
	// in real and virtual time.
	TypeClockSleep = "clock.sleep"
	// TypeClockCancel ends a clock.sleep early, so that a timer that is no longer needed does not count as pending.
	TypeClockCancel = "clock.cancel"
)

// Commands returns every command of this protocol version with its chip, in display order.
func Commands() []CommandInfo {
	return []CommandInfo{
		{TypeDisplayShow, ChipDisplay}, {TypeDisplayClear, ChipDisplay},
		{TypeSpeechSay, ChipVoice}, {TypeSpeechStop, ChipVoice}, {TypeSoundPlay, ChipVoice},
		{TypePlaybackStart, ChipVoice}, {TypePlaybackEnd, ChipVoice}, {TypePlaybackFlush, ChipVoice},
		{TypeAudioStart, ChipVoice}, {TypeAudioStop, ChipVoice},
		{TypeTranscriptionStart, ChipVoice}, {TypeTranscriptionStop, ChipVoice}, {TypePhrasesAnnounce, ChipVoice},
		{TypeCameraPhoto, ChipCamera}, {TypeCameraVideo, ChipCamera},
		{TypeVideoStart, ChipCamera}, {TypeVideoStop, ChipCamera},
		{TypeMotionStart, ChipLifecycle}, {TypeMotionStop, ChipLifecycle}, {TypeClockSleep, ChipLifecycle},
		{TypeClockCancel, ChipLifecycle},
	}
}

// CommandInfo is the type of a command and the chip of its rows.
type CommandInfo struct{ Type, Chip string }

var commandChips = func() map[string]string {
	m := map[string]string{}
	for _, c := range Commands() {
		m[c.Type] = c.Chip
	}
	return m
}()

// IsCommand reports whether typ is a command, which must be answered by a result.
func IsCommand(typ string) bool { _, ok := commandChips[typ]; return ok }

// Say is the payload of speech.say: text of 1 to MaxSay characters. The speech event reports its end.
type Say struct {
	Text     string `json:"text"`
	Language string `json:"language,omitempty"` // BCP 47; empty means the language of the glasses
}

// Play is the payload of sound.play: one of Sounds.
type Play struct {
	Sound string `json:"sound"`
}

// Sounds returns the names of the sounds that all glasses can play.
func Sounds() []string { return []string{"chime", "success", "error", "tick"} }

// PlaybackStart is the payload of playback.start.
type PlaybackStart struct {
	SampleRate int `json:"sampleRate,omitempty"` // 16000 or 24000, the default
}

// AudioStart is the payload of audio.start. Chunks are 16-bit little-endian PCM, mono, 100 ms each.
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

// Photo is the payload of camera.photo. The result's media is a JPEG.
type Photo struct {
	Width int `json:"width,omitempty"` // 64 to 4032, default 1280; the height follows the camera
}

// Video is the payload of camera.video. The result is sent when the recording ends, and contains
// media.
type Video struct {
	DurationMs int64 `json:"durationMs"` // 100 to MaxVideo
	FPS        int   `json:"fps,omitempty"`
	Width      int   `json:"width,omitempty"`
}

// Announce is the payload of phrases.announce: at most MaxPhrases phrases of 1 to 100 characters. It replaces earlier
// phrases.
type Announce struct {
	Phrases []string `json:"phrases"`
}

// Sleep is the payload of clock.sleep.
type Sleep struct {
	Ms int64 `json:"ms"` // 0 to MaxSleep
}

// Cancel is the payload of clock.cancel.
type Cancel struct {
	ID string `json:"id"` // id of a clock.sleep; an answered one is not an error
}

// Limits of commands.
const (
	MaxSay     = 2000   // characters
	MaxPhrases = 50     // phrases
	MaxVideo   = 30_000 // ms
	MaxSleep   = 600_000
)

// payloadParser decodes and checks the payload of one type.
type payloadParser func(typ string, payload []byte) (any, error)

var commandParsers = map[string]payloadParser{
	TypeDisplayShow: func(_ string, payload []byte) (any, error) {
		s, err := ParseShow(payload)
		return &s, err
	},
	TypeSpeechSay:          parse[Say],
	TypeSoundPlay:          parse[Play],
	TypePlaybackStart:      parse[PlaybackStart],
	TypeAudioStart:         parse[AudioStart],
	TypeTranscriptionStart: parse[TranscriptionStart],
	TypeVideoStart:         parse[VideoStart],
	TypeMotionStart:        parse[MotionStart],
	TypeCameraPhoto:        parse[Photo],
	TypeCameraVideo:        parse[Video],
	TypePhrasesAnnounce:    parse[Announce],
	TypeClockSleep:         parse[Sleep],
	TypeClockCancel:        parse[Cancel],
	TypeDisplayClear:       noPayload,
	TypeSpeechStop:         noPayload,
	TypePlaybackEnd:        noPayload,
	TypePlaybackFlush:      noPayload,
	TypeAudioStop:          noPayload,
	TypeTranscriptionStop:  noPayload,
	TypeVideoStop:          noPayload,
	TypeMotionStop:         noPayload,
}

// CommandTypes returns the types of all Commands.
func CommandTypes() []string {
	return namesOf(Commands(), func(c CommandInfo) string { return c.Type })
}

// ParseCommand decodes the payload of a command into its type: *Show, *Say, *Play, *PlaybackStart, *AudioStart,
// *TranscriptionStart, *VideoStart, *MotionStart, *Photo, *Video, *Announce, *Sleep, *Cancel, or nil for commands
// without a payload. It fills in defaults. On failure it returns an *Error with code bad_payload, or unsupported for a type
// that is not a command.
func ParseCommand(typ string, payload []byte) (any, error) {
	return parsePayload(commandParsers, "command", typ, payload)
}

func parsePayload(parsers map[string]payloadParser, kind, typ string, payload []byte) (any, error) {
	if parse := parsers[typ]; parse != nil {
		return parse(typ, payload)
	}
	return nil, &Error{Code: CodeUnsupported, Message: typ + " is not a " + kind + " of this version"}
}

func noPayload(string, []byte) (any, error) { return nil, nil }

func parse[T any, P interface {
	*T
	check() *Error
}](typ string, payload []byte) (any, error) {
	into := P(new(T))
	if err := json.Unmarshal(payload, into); err != nil {
		return nil, badPayload("%s payload: %s", typ, plain(err))
	}
	if err := into.check(); err != nil {
		return nil, badPayload("%s payload: %s", typ, err.Message)
	}
	return into, nil
}
