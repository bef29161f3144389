package tools

import (
	"github.com/service-dev/service/proto/glasses"
)

// wordCommand is a command as a guide tells of it.
type wordCommand struct {
	Type    string   `json:"type"`
	Payload []field  `json:"payload"`
	Answer  string   `json:"answer"`
	Errors  []string `json:"errors"`
}

const wordCommandSchema = `{"type":"object","properties":{
	"type":{"type":"string"},"payload":{"type":"array","items":` + fieldSchema + `},
	"answer":{"type":"string","description":"What its result means, apart from ok."},
	"errors":{"type":"array","items":{"type":"string"},"description":"Codes that can answer it; see errors."}}}`

const justOK = "ok"

// wordCommands tells of every command, in the protocol's order.
func wordCommands() []wordCommand {
	language := text("language", "BCP 47, e.g. en; the glasses' own when left out")
	fps := number("fps", "frames a second", 1, 30).or(5)
	width := number("width", "pixels; the height follows the camera", 64, 1280).or(640)
	return withErrors([]wordCommand{
		{Type: glasses.TypeDisplayShow, Payload: fields(other("tree", "object", "the root node; see nodes").must()), Answer: "ok when the panel shows it; it replaces what was there"},
		{Type: glasses.TypeDisplayClear, Answer: justOK},
		{Type: glasses.TypeSpeechSay, Payload: fields(number("text", "what to say", 1, glasses.MaxSay).as("string").must(), language), Answer: "ok at once; the speech event tells when it is over"},
		{Type: glasses.TypeSpeechStop, Answer: "ok, also when nothing is said"},
		{Type: glasses.TypeSoundPlay, Payload: fields(choice("sound", "a built-in sound", glasses.Sounds()...).must()), Answer: justOK},
		{Type: glasses.TypeAudioStart, Payload: fields(field{Name: "sampleRate", Type: "integer", About: "8000 or 16000", Default: 16000}), Answer: "ok, then audio.chunk frames of 100 ms each"},
		{Type: glasses.TypeAudioStop, Answer: "ok, also when nothing runs"},
		{Type: glasses.TypeTranscriptionStart, Payload: fields(language), Answer: "ok, then transcript events"},
		{Type: glasses.TypeTranscriptionStop, Answer: "ok, also when nothing runs"},
		{Type: glasses.TypePhrasesAnnounce, Payload: fields(number("phrases", "each of 1 to 100 characters; they replace the last ones", 0, glasses.MaxPhrases).as("array").must()), Answer: justOK},
		{Type: glasses.TypeCameraPhoto, Payload: fields(number("width", "pixels; the height follows the camera", 64, 4032).or(1280)), Answer: "a binary media frame with the JPEG under the same id, then ok with media {sha256,mime,bytes,width,height}"},
		{Type: glasses.TypeCameraVideo, Payload: fields(number("durationMs", "length of the clip", 100, glasses.MaxVideo).must(), fps, width), Answer: "when it is taken: a binary media frame with Motion JPEG, then ok with media"},
		{Type: glasses.TypeVideoStart, Payload: fields(fps, width), Answer: "ok, then video.frame frames"},
		{Type: glasses.TypeVideoStop, Answer: "ok, also when nothing runs"},
		{Type: glasses.TypeMotionStart, Payload: fields(number("hz", "frames a second", 1, 100).or(10)), Answer: "ok, then motion frames"},
		{Type: glasses.TypeMotionStop, Answer: "ok, also when nothing runs"},
		{Type: glasses.TypeClockSleep, Payload: fields(number("ms", "how long", 0, glasses.MaxSleep).must()), Answer: "ok when that time has passed on the session's clock"},
	})
}

func withErrors(list []wordCommand) []wordCommand {
	for i := range list {
		if list[i].Payload == nil {
			list[i].Payload = []field{}
		}
		list[i].Errors = commandErrors(list[i].Type, len(list[i].Payload) > 0)
	}
	return list
}

// commandErrors gives the codes that a command can be answered with, in the order of wordErrors.
func commandErrors(typ string, payload bool) []string {
	grounds := commandGrounds[typ]
	var codes []string
	for _, e := range wordErrors() {
		switch e.Code {
		case glasses.CodeBadPayload:
			if payload {
				codes = append(codes, e.Code)
			}
		case glasses.CodeTimeout, glasses.CodePlatform:
			codes = append(codes, e.Code)
		default:
			if grounds[e.Code] {
				codes = append(codes, e.Code)
			}
		}
	}
	return codes
}

func codes(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, code := range list {
		m[code] = true
	}
	return m
}

// commandGrounds are the states of the glasses that a command fails on. timeout and platform_error can answer any.
var commandGrounds = func() map[string]map[string]bool {
	link, part := glasses.CodeNotConnected, glasses.CodeUnsupported
	camera := codes(part, link, glasses.CodeHingeClosed, glasses.CodeThermalCritical, glasses.CodePermissionDenied, glasses.CodeDisabledByUser, glasses.CodeBusy)
	listens := codes(part, link, glasses.CodeHingeClosed, glasses.CodePermissionDenied, glasses.CodeDisabledByUser, glasses.CodeBusy)
	speaks := codes(part, link, glasses.CodeHingeClosed, glasses.CodePaused, glasses.CodePermissionDenied, glasses.CodeDisabledByUser, glasses.CodeBusy)
	plays := codes(part, link, glasses.CodeHingeClosed, glasses.CodePaused, glasses.CodeBusy)
	stops := codes(link)
	return map[string]map[string]bool{
		glasses.TypeDisplayShow:        codes(part, link, glasses.CodeHingeClosed, glasses.CodeThermalCritical, glasses.CodePaused),
		glasses.TypeDisplayClear:       codes(link),
		glasses.TypeSpeechSay:          speaks,
		glasses.TypeSoundPlay:          plays,
		glasses.TypeAudioStart:         listens,
		glasses.TypeTranscriptionStart: listens,
		glasses.TypeCameraPhoto:        camera,
		glasses.TypeCameraVideo:        camera,
		glasses.TypeVideoStart:         camera,
		glasses.TypeMotionStart:        codes(part, link, glasses.CodeBusy),
		glasses.TypeSpeechStop:         stops, glasses.TypeAudioStop: stops, glasses.TypeTranscriptionStop: stops,
		glasses.TypeVideoStop: stops, glasses.TypeMotionStop: stops,
	}
}()

// wordCommandsOf picks those of some types.
func wordCommandsOf(types []string) []wordCommand {
	some := []wordCommand{}
	for _, typ := range types {
		for _, c := range wordCommands() {
			if c.Type == typ {
				some = append(some, c)
			}
		}
	}
	return some
}
