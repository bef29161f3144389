package tools

import (
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/guide"
)

// example is what goes over the wire: what the app sends, and what the glasses answer and tell.
type example struct {
	App     []json.RawMessage `json:"app"`
	Glasses []json.RawMessage `json:"glasses"`
}

// wordCapability is what cannot be computed of a capability.
type wordCapability struct {
	example  example
	pitfalls []string
	next     []nextCall
}

// frame composes a line of an example; ids of the app begin with a, those of the glasses with g.
func frame(typ, id, payload string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"v":%d,"type":%q,"id":%q,"at":1767225600000,"payload":%s}`, glasses.Version, typ, id, payload))
}

func okFrame(id string) json.RawMessage { return frame(glasses.TypeResult, id, `{"ok":true}`) }

func errorFrame(id, code, message string) json.RawMessage {
	return frame(glasses.TypeResult, id, fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message))
}

func frames(list ...json.RawMessage) []json.RawMessage { return append([]json.RawMessage{}, list...) }

const soundExample = `{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","mime":"audio/L16","bytes":3200,"durationMs":100,"sampleRate":16000}`

const mediaExample = `{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","mime":"image/jpeg","bytes":48211,"width":640,"height":480}`

var seeDisplay = call1("getDisplayState", `{}`, "see the tree, the text and the picture of the panel")

// wordsOf gives the words of a capability; every capability of guide has some.
func wordsOf(capability string) wordCapability {
	return map[string]func() wordCapability{
		guide.Display: displayWords, guide.Camera: cameraWords, guide.Microphone: microphoneWords, guide.Transcription: transcriptionWords,
		guide.Speech: speechWords, guide.Sound: soundWords, guide.Motion: motionWords, guide.Input: inputWords, guide.State: stateWords,
		guide.Phrases: phrasesWords, guide.Time: timeWords,
	}[capability]()
}

func displayWords() wordCapability {
	return wordCapability{
		example: example{
			App: frames(frame(glasses.TypeDisplayShow, "a-1", `{"tree":{"type":"column","gap":8,"padding":16,"children":[{"type":"text","text":"Shopping","style":"title"},`+
				`{"type":"list","overflow":"scroll","grow":1,"children":[{"type":"text","id":"milk","text":"Milk"},{"type":"text","id":"bread","text":"Bread"}]},{"type":"button","id":"done","text":"Done"}]}}`)),
			Glasses: frames(okFrame("a-1"), frame(glasses.TypeInput, "g-1", `{"kind":"select","x":0,"y":0,"target":"done"}`)),
		},
		pitfalls: []string{
			"A show replaces the whole tree: send all of it each time, and keep it, because a panel is clear after a change of glasses (device event) and after a lost link.",
			"Panels add light: black is transparent, so draw light on nothing. On green panels colours become brightness; on 1-bit panels there are only on and off.",
			"Without overflow scroll or paginate what does not fit is not seen. Text wraps at words.",
			"Focus, scroll and page belong to the glasses: after a navigate only an input event with target comes, nothing is to be redrawn for it.",
			"Give every button and list entry an id, or the target of the input event is missing.",
			"On a round panel use padding: the inscribed square is for use.",
		},
		next: []nextCall{
			seeDisplay,
			call1("expectDisplay", `{"text":["Shopping","Done"]}`, "assert what can be read, as a test does"),
			call1("injectInput", `{"kind":"select"}`, "do what the wearer does with the focused button"),
			call1("setDevice", `{"deviceModel":"even_g1"}`, "see the same screen on another panel"),
		},
	}
}

func cameraWords() wordCapability {
	return wordCapability{
		example: example{
			App: frames(frame(glasses.TypeCameraPhoto, "a-1", `{"width":640}`), frame(glasses.TypeVideoStart, "a-2", `{"fps":2}`), frame(glasses.TypeCameraPhoto, "a-3", `{}`)),
			Glasses: frames(frame(glasses.TypeMedia, "a-1", mediaExample), frame(glasses.TypeResult, "a-1", `{"ok":true,"media":`+mediaExample+`}`),
				okFrame("a-2"), frame(glasses.TypeVideoFrame, "g-1", mediaExample), errorFrame("a-3", glasses.CodePermissionDenied, "the camera was refused by the person")),
		},
		pitfalls: []string{
			"The bytes come in the binary media frame before the result, under the command's id; the result only describes them. Compare sha256.",
			"A clip is Motion JPEG: JPEG pictures one after another, no container.",
			"One capture at a time: a second answers busy until the first is over.",
			"The height follows the camera: read width and height of media, do not assume 4:3.",
			"A stream stops by itself when permission, link, heat or hinge take its ground; the event of that state says why. Start it again when it is back.",
		},
		next: []nextCall{
			call1("injectSensor", `{"cameraFile":"fixtures/scene.jpg"}`, "put a picture of your own before the camera"),
			call1("injectFault", `{"command":"camera.photo","code":"busy","times":1}`, "see what the app does when the camera refuses"),
			call1("injectSensor", `{"state":{"permissions":{"camera":"denied"}}}`, "see what the app does without permission"),
		},
	}
}

func microphoneWords() wordCapability {
	return wordCapability{
		example: example{
			App:     frames(frame(glasses.TypeAudioStart, "a-1", `{"sampleRate":16000}`), frame(glasses.TypeAudioStop, "a-2", `{}`)),
			Glasses: frames(okFrame("a-1"), frame(glasses.TypeAudioChunk, "g-1", soundExample), okFrame("a-2")),
		},
		pitfalls: []string{
			"For words use the transcription capability; this one gives sound.",
			"A chunk is 100 ms of 16-bit little-endian PCM, one channel, without a header.",
			"A phone call takes the microphone away: the stream stops and the call event says why.",
		},
		next: []nextCall{call1("injectSensor", `{"microphoneFile":"fixtures/hello.wav"}`, "let the microphone hear a recording")},
	}
}

func transcriptionWords() wordCapability {
	return wordCapability{
		example: example{
			App:     frames(frame(glasses.TypeTranscriptionStart, "a-1", `{"language":"en"}`)),
			Glasses: frames(okFrame("a-1"), frame(glasses.TypeTranscript, "g-1", `{"text":"next pa","final":false}`), frame(glasses.TypeTranscript, "g-2", `{"text":"next page","final":true,"language":"en","confidence":93}`)),
		},
		pitfalls: []string{
			"Act on final transcripts only; earlier ones still change.",
			"Compare what was said without regard to case and punctuation.",
			"Before transcription.start nothing is heard: injectTranscript answers paused then.",
			"confidence is left out where the recogniser does not say it; that is no 0.",
		},
		next: []nextCall{
			call1("injectTranscript", `{"text":"next page"}`, "say something to the glasses"),
			call1("getVoiceCommandGuidance", `{"phrases":["next page","read it out"]}`, "check the phrases that the app listens for"),
		},
	}
}

func speechWords() wordCapability {
	return wordCapability{
		example: example{
			App:     frames(frame(glasses.TypeSpeechSay, "a-1", `{"text":"You have three items left","language":"en"}`)),
			Glasses: frames(okFrame("a-1"), frame(glasses.TypeSpeech, "g-1", `{"id":"a-1","state":"finished"}`)),
		},
		pitfalls: []string{
			"The result comes at once; wait for the speech event with the command's id before the next sentence.",
			"While a phone call is on it answers busy; show the text instead.",
			"Not every model has a speaker: offer the text on the panel too.",
		},
		next: []nextCall{call1("waitForEvent", `{"type":"speech","timeoutSeconds":20}`, "wait until it is said")},
	}
}

func soundWords() wordCapability {
	return wordCapability{
		example:  example{App: frames(frame(glasses.TypeSoundPlay, "a-1", `{"sound":"success"}`)), Glasses: frames(okFrame("a-1"))},
		pitfalls: []string{"Sounds are short signals beside something shown or said; on a model without a speaker the command answers unsupported."},
		next:     []nextCall{call1("getEventLog", `{}`, "see that the sound was asked for")},
	}
}

func motionWords() wordCapability {
	return wordCapability{
		example: example{
			App:     frames(frame(glasses.TypeMotionStart, "a-1", `{"hz":20}`), frame(glasses.TypeMotionStop, "a-2", `{}`)),
			Glasses: frames(okFrame("a-1"), frame(glasses.TypeMotion, "g-1", `{"ax":0,"ay":0,"az":1000,"gx":0,"gy":0,"gz":0}`), okFrame("a-2")),
		},
		pitfalls: []string{"At rest az is 1000: gravity is part of the acceleration.", "Frames are counted in the event log, not listed: wait for what the app does about them."},
		next:     []nextCall{call1("injectSensor", `{"motion":{"ax":0,"ay":700,"az":700,"gx":0,"gy":0,"gz":0}}`, "tilt the head")},
	}
}

func inputWords() wordCapability {
	return wordCapability{
		example: example{App: frames(), Glasses: frames(
			frame(glasses.TypeInput, "g-1", `{"kind":"tap","x":300,"y":120,"target":"done"}`),
			frame(glasses.TypeInput, "g-2", `{"kind":"navigate","x":0,"y":0,"direction":"down","target":"bread"}`),
			frame(glasses.TypeInput, "g-3", `{"kind":"swipe","x":0,"y":0,"direction":"left"}`))},
		pitfalls: []string{
			"Models differ: look at inputs in deviceModel. An app that knows only select cannot be used on one with only tap.",
			"x and y are 0 unless it was a tap on a touch panel: branch on target, not on coordinates.",
			"capture is the button for the camera; what it does is the app's to decide.",
		},
		next: []nextCall{call1("injectInput", `{"kind":"tap"}`, "do what the wearer does"), call1("waitForEvent", `{"type":"display.show"}`, "wait for the app's next screen"), seeDisplay},
	}
}

func stateWords() wordCapability {
	return wordCapability{
		example: example{App: frames(), Glasses: frames(
			frame(glasses.TypeBattery, "g-1", `{"level":15,"charging":false}`), frame(glasses.TypeWear, "g-2", `{"worn":false}`),
			frame(glasses.TypeLink, "g-3", `{"state":"lost"}`), frame(glasses.TypePermission, "g-4", `{"part":"camera","state":"denied"}`))},
		pitfalls: []string{
			"An event comes only when something changes: the first state is in the welcome frame (link, deviceModel), not in events.",
			"While the glasses are not worn display and speech answer paused: keep what to show, and show it at wear with worn true.",
			"The link is late when it is lossy: every result takes 400 ms more.",
			"A device event means another panel, other inputs and a clear display: show the screen again.",
		},
		next: []nextCall{
			call1("injectSensor", `{"state":{"battery":{"level":9,"charging":false}}}`, "run the battery down"),
			call1("injectSensor", `{"state":{"worn":false}}`, "take the glasses off"),
			call1("injectSensor", `{"state":{"link":"lost"}}`, "go out of reach"),
		},
	}
}

func phrasesWords() wordCapability {
	return wordCapability{
		example: example{App: frames(frame(glasses.TypePhrasesAnnounce, "a-1", `{"phrases":["next page","read it out"]}`)), Glasses: frames(okFrame("a-1"))},
		pitfalls: []string{
			"Announcing does not listen: transcription.start does.",
			"It replaces the last announcement: send all phrases of the present screen.",
			"Phrases with a wake word of an assistant never reach the app; getVoiceCommandGuidance finds them.",
		},
		next: []nextCall{call1("getVoiceCommandGuidance", `{"phrases":["next page","read it out"]}`, "check the phrases")},
	}
}

func timeWords() wordCapability {
	return wordCapability{
		example: example{App: frames(frame(glasses.TypeClockSleep, "a-1", `{"ms":1000}`)), Glasses: frames(okFrame("a-1"))},
		pitfalls: []string{
			"In virtual time the clock stands still until advanceTime or a scenario moves it: an app that waits with the machine's own timers waits in vain.",
			`Say "barrier":true in hello and answer each barrier frame with one of the same id once everything before it is handled; then no moment is lost or guessed.`,
			"at of a frame is the session's clock in ms; use it instead of the machine's.",
		},
		next: []nextCall{call1("startLocalSimulation", `{"clock":"virtual"}`, "a session whose clock stands until it is moved"), call1("advanceTime", `{"ms":1000}`, "let a second pass at once")},
	}
}
