//go:build unix

package e2e

import (
	"encoding/json"
	"slices"

	"github.com/service-dev/service/glasses"
)

// step is one command of an app, with the agent's changes before and after it, and the events that the app must
// receive.
type step struct {
	before  []control // run first
	send    string    // the command; empty if the step has only controls
	payload string
	after   []control // run after the command is acknowledged, before waiting for its result
	want    string    // expected code of the result; empty for success
	hears   []string  // expected types of events, in order; events of streams follow the result
	own     bool      // the transport supplies camera or microphone data, so only the shape is compared
	later   bool      // a later step, or the end, waits for the result
	settles bool
	ms      int // minimum time to the result
}

// control is one tool call of an agent. code is the expected error code; empty means success.
type control struct {
	tool string
	args string
	code string
}

func sensor(state string) control {
	return control{tool: "injectSensor", args: `{"state":` + state + `}`}
}
func fault(args string) control { return control{tool: "injectFault", args: args} }
func wear(model string) control {
	return control{tool: "setDevice", args: `{"deviceModel":"` + model + `"}`}
}
func input(args string) control   { return control{tool: "injectInput", args: args} }
func hearSay(args string) control { return control{tool: "injectTranscript", args: args} }

func (c control) refused(code string) control { c.code = code; return c }

const (
	showGo    = `{"tree":{"type":"column","children":[{"type":"button","id":"go","text":"Go"},{"type":"button","id":"no","text":"No"}]}}`
	showFocus = `{"tree":{"type":"list","focus":"go","children":[{"type":"text","id":"no","text":"No"},{"type":"text","id":"go","text":"Go"}]}}`
	sayHello  = `{"text":"Hello"}`
	playChime = `{"sound":"chime"}`
	clip      = `{"durationMs":400,"fps":5,"width":320}`
	longClip  = `{"durationMs":2500,"fps":5,"width":320}`
)

// contractSteps returns the whole contract, in an order in which each step restores the state of the glasses. camera
// and microphone are file paths.
func contractSteps(camera, microphone string) []step {
	steps := []step{
		{before: []control{fault(`{"command":"display.clear","code":"timeout"}`)}, send: "display.clear",
			hears: []string{"fault"}, want: "timeout", later: true, ms: 9900},
		{send: "display.show", payload: showGo},
		{send: "speech.say", payload: `{"text":"Hello","language":"en"}`, hears: []string{"speech"}},
		{send: "speech.say", payload: `{"text":"This is a long text, so that there is time to stop it."}`},
		{send: "speech.stop", hears: []string{"speech"}},
		{send: "sound.play", payload: playChime},
		{send: "playback.start", payload: `{"sampleRate":16000}`},
		{send: "playback.start", want: "busy"},
		{send: "playback.end", hears: []string{"playback"}},
		{send: "playback.start"},
		{send: "playback.flush", hears: []string{"playback"}},
		{send: "playback.end"},
		{send: "phrases.announce", payload: `{"phrases":["next page","Ωραία"]}`},
		{send: "clock.sleep", payload: `{"ms":250}`, ms: 250},
		{send: "clock.cancel", payload: `{"id":"over"}`},
	}
	return slices.Concat(steps, cameraSteps(camera), voiceSteps(microphone), inputSteps(), stateSteps(),
		refusedSteps(), payloadSteps(), faultSteps(), modelSteps())
}

func cameraSteps(file string) []step {
	eyes := control{tool: "injectSensor", args: `{"cameraFile":` + quote(file) + `}`}
	return []step{
		{send: "camera.photo", payload: `{"width":320}`, own: true},
		{send: "camera.video", payload: clip, own: true, ms: 400},
		{send: "video.start", payload: `{"fps":10,"width":320}`, hears: []string{"video.frame", "video.frame"},
			own: true},
		{send: "video.stop"},
		{before: []control{eyes}},
		{send: "camera.photo", payload: `{}`},
		{send: "camera.photo", payload: `{"width":64}`},
		{send: "camera.video", payload: clip, ms: 400},
		{send: "video.start", payload: `{"width":200}`, hears: []string{"video.frame", "video.frame"}},
		{send: "video.start", want: "busy"},
		{send: "camera.video", payload: longClip, later: true, ms: 2500},
		{send: "camera.photo", want: "busy"},
		{send: "camera.video", payload: clip, want: "busy"},
		{settles: true},
		{send: "video.stop"},
		{send: "video.stop"},
	}
}

func voiceSteps(file string) []step {
	ears := control{tool: "injectSensor", args: `{"microphoneFile":` + quote(file) + `}`}
	return []step{
		{send: "audio.start", hears: []string{"audio.chunk", "audio.chunk"}, own: true},
		{send: "audio.stop"},
		{before: []control{ears}},
		{send: "audio.start", payload: `{"sampleRate":16000}`,
			hears: []string{"audio.chunk", "audio.chunk", "audio.chunk"}},
		{send: "audio.start", want: "busy"},
		{send: "audio.stop"},
		{send: "audio.start", payload: `{"sampleRate":8000}`, hears: []string{"audio.chunk"}},
		{send: "audio.stop"},
		{send: "audio.stop"},
		{before: []control{hearSay(`{"text":"nobody listens"}`).refused("paused")}},
		{send: "transcription.start", payload: `{"language":"en"}`},
		{send: "transcription.start", payload: `{"language":"en-GB"}`},
		{before: []control{hearSay(`{"text":"next pa","final":false}`),
			hearSay(`{"text":"next page","language":"en","confidence":93}`)}, hears: []string{"transcript", "transcript"}},
		{send: "transcription.stop"},
		{before: []control{hearSay(`{"text":"nobody listens any more"}`).refused("paused")}},
	}
}

// inputSteps returns every kind of input on the models that support it.
func inputSteps() []step {
	return []step{
		{send: "display.show", payload: showGo},
		{before: []control{input(`{"kind":"navigate","direction":"down"}`), input(`{"kind":"select"}`),
			input(`{"kind":"back"}`), input(`{"kind":"capture"}`),
			input(`{"kind":"tap","x":20,"y":10}`), input(`{"kind":"tap"}`), input(`{"kind":"hold"}`).refused("unsupported")},
			hears: []string{"input", "input", "input", "input", "input", "input"}},
		{before: []control{input(`{"target":"no"}`)}, hears: []string{"input", "input"}},
		{send: "display.show", payload: showGo},
		{before: []control{input(`{"target":"no"}`), input(`{"target":"gone"}`).refused("unreachable")},
			hears: []string{"input"}},
		{send: "display.show", payload: showFocus},
		{before: []control{input(`{"target":"go"}`)}, hears: []string{"input"}},
		{before: []control{wear("even_g1")}, hears: []string{"device"}},
		{send: "display.show", payload: showGo},
		{before: []control{input(`{"target":"no"}`).refused("unreachable"), input(`{"kind":"tap","side":"right"}`), input(`{"kind":"doubleTap","side":"left"}`),
			input(`{"kind":"hold","side":"left"}`)}, hears: []string{"input", "input", "input"}},
		{before: []control{wear("android_xr_display")}, hears: []string{"device"}},
		{send: "display.show", payload: showGo},
		{before: []control{input(`{"kind":"swipe","direction":"down"}`), input(`{"kind":"tap"}`),
			input(`{"target":"go"}`)}, hears: []string{"input", "input", "input", "input"}},
		{before: []control{wear("rayban_display")}, hears: []string{"device"}},
		{send: "motion.start", payload: `{"hz":50}`, hears: []string{"motion"}},
		{send: "motion.start", want: "busy"},
		{before: []control{{tool: "injectSensor",
			args: `{"motion":{"ax":12,"ay":-7,"az":990,"gx":1,"gy":2,"gz":-3}}`}}},
		{send: "motion.stop"},
		{send: "motion.start", hears: []string{"motion", "motion"}},
		{send: "motion.stop"},
		{send: "motion.stop"},
	}
}

// stateSteps returns changes of every part of the state, including changes that stop running streams.
func stateSteps() []step {
	start := func(stream string) step { return step{send: stream + ".start"} }
	stop := func(stream string) step { return step{send: stream + ".stop"} }
	return []step{
		{before: []control{sensor(`{"battery":{"level":15,"charging":true},"route":"phone"}`),
			sensor(`{"battery":{"level":15,"charging":true},"route":"phone"}`),
			sensor(`{"battery":{"level":80,"charging":false},"route":"glasses"}`)}, hears: []string{"battery", "route", "battery", "route"}},
		{before: []control{sensor(`{"thermal":"warm"}`), sensor(`{"thermal":"nominal"}`)},
			hears: []string{"thermal", "thermal"}},
		{before: []control{sensor(`{"link":"lossy"}`)}, send: "sound.play", payload: playChime,
			hears: []string{"link"}, ms: 400},
		{before: []control{sensor(`{"link":"connected"}`)}, hears: []string{"link"}},
		start("audio"), start("transcription"), start("video"), start("motion"),
		{before: []control{sensor(`{"permissions":{"camera":"denied"},"call":true}`)},
			hears: []string{"transcription", "call", "permission"}},
		start("motion").refusedWith("busy"), stop("video"), stop("audio"), stop("motion"),
		{before: []control{sensor(`{"permissions":{"camera":"granted"},"call":false}`)},
			hears: []string{"transcription", "call", "permission"}},
		stop("transcription"),
		{send: "speech.say", payload: `{"text":"What is said stops when the glasses are taken off."}`},
		{before: []control{sensor(`{"worn":false}`), sensor(`{"worn":true}`)},
			hears: []string{"wear", "speech", "wear"}},
		{send: "camera.video", payload: `{"durationMs":20000,"fps":1,"width":64}`,
			after: []control{sensor(`{"hinge":"folded"}`)}, want: "hinge_closed", hears: []string{"hinge"}},
		{before: []control{sensor(`{"hinge":"open"}`)}, hears: []string{"hinge"}},
		{send: "camera.video", payload: `{"durationMs":20000,"fps":1,"width":64}`,
			after: []control{sensor(`{"link":"lost"}`)}, want: "not_connected", hears: []string{"link"}},
		{before: []control{sensor(`{"link":"connected"}`)}, hears: []string{"link"}},
		{send: "camera.video", payload: `{"durationMs":20000,"fps":1,"width":64}`,
			after: []control{wear("rayban_meta")}, want: "platform_error", hears: []string{"device"}},
		{before: []control{wear("rayban_display")}, hears: []string{"device"}},
	}
}

func (s step) refusedWith(code string) step { s.want = code; return s }

// refusedSteps returns every error caused by the state of the glasses, for each command that it applies to.
func refusedSteps() []step {
	commands := map[string]string{"display.show": showGo, "speech.say": sayHello, "sound.play": playChime,
		"camera.video": clip}
	var steps []step
	under := func(on, off, code string, hears []string, types ...string) {
		steps = append(steps, step{before: []control{sensor(on)}, hears: hears})
		for _, typ := range types {
			steps = append(steps, step{send: typ, payload: commands[typ], want: code})
		}
		steps = append(steps, step{before: []control{sensor(off)}, hears: hears})
	}
	camera := []string{"camera.photo", "camera.video", "video.start"}
	voice := []string{"speech.say", "sound.play", "playback.start", "audio.start", "transcription.start"}
	lost := slices.Concat([]string{"display.show", "display.clear", "speech.stop", "playback.end",
		"playback.flush", "audio.stop",
		"video.stop", "motion.start", "motion.stop"}, camera, voice)
	under(`{"link":"lost"}`, `{"link":"connected"}`, "not_connected", []string{"link"}, lost...)
	under(`{"hinge":"folded"}`, `{"hinge":"open"}`, "hinge_closed", []string{"hinge"},
		slices.Concat([]string{"display.show"}, camera, voice)...)
	under(`{"thermal":"critical"}`, `{"thermal":"nominal"}`, "thermal_critical", []string{"thermal"},
		append(camera, "display.show")...)
	under(`{"worn":false}`, `{"worn":true}`, "paused", []string{"wear"}, "display.show", "speech.say", "sound.play",
		"playback.start")
	under(`{"call":true}`, `{"call":false}`, "busy", []string{"call"}, voice...)
	for _, p := range []struct {
		part  string
		types []string
	}{{"camera", camera}, {"microphone", []string{"audio.start", "transcription.start"}},
		{"speech", []string{"speech.say", "transcription.start"}}} {
		under(`{"permissions":{"`+p.part+`":"denied"}}`, `{"permissions":{"`+p.part+`":"granted"}}`,
			"permission_denied", []string{"permission"}, p.types...)
		under(`{"disabled":["`+p.part+`"]}`, `{"disabled":[]}`, "disabled_by_user", []string{"disabled"}, p.types...)
	}
	// If several errors apply, the first one in PROTOCOL.md's order is reported.
	all := []string{`"link":"lost"`, `"hinge":"folded"`, `"thermal":"critical"`, `"permissions":{"camera":"denied"}`,
		`"disabled":["camera"]`}
	undo := []string{`"link":"connected"`, `"hinge":"open"`, `"thermal":"nominal"`,
		`"permissions":{"camera":"granted"}`, `"disabled":[]`}
	hears := []string{"link", "hinge", "thermal", "permission", "disabled"}
	for i := range all {
		steps = append(steps, step{before: []control{sensor(`{` + all[i] + `}`)}, hears: hears[i : i+1]})
	}
	steps = append(steps, step{send: "camera.photo", payload: `{"width":1}`, want: "bad_payload"})
	for i, code := range []string{"not_connected", "hinge_closed", "thermal_critical", "permission_denied",
		"disabled_by_user"} {
		steps = append(steps, step{send: "camera.photo", want: code},
			step{before: []control{sensor(`{` + undo[i] + `}`)}, hears: hears[i : i+1]})
	}
	return steps
}

// payloadSteps returns the invalid payloads of each command.
func payloadSteps() []step {
	var steps []step
	for _, bad := range [][2]string{
		{"display.show", `{}`}, {"display.show", `{"tree":{"type":"text","colour":"red"}}`},
		{"display.show", `{"tree":{"type":"image","data":"AAAA"}}`},
		{"speech.say", `{"text":""}`}, {"sound.play", `{"sound":"gong"}`},
		{"playback.start", `{"sampleRate":8000}`},
		{"audio.start", `{"sampleRate":44100}`}, {"transcription.start", `{"language":"not a tag"}`},
		{"phrases.announce", `{"phrases":[""]}`}, {"camera.photo", `{"width":"wide"}`},
		{"camera.video", `{"durationMs":1}`}, {"video.start", `{"fps":31}`},
		{"motion.start", `{"hz":101}`}, {"clock.sleep", `{"ms":-1}`},
		{"clock.cancel", `{}`},
	} {
		steps = append(steps, step{send: bad[0], payload: bad[1], want: "bad_payload"})
	}
	return steps
}

// faultSteps returns every error code as a fault of one command, of any command, and with a delay.
func faultSteps() []step {
	steps := []step{
		{before: []control{fault(`{"latencyMs":300}`)}, send: "clock.sleep", payload: `{"ms":0}`,
			hears: []string{"fault"}, ms: 300},
		{before: []control{fault(`{"command":"camera.photo","code":"busy","times":2}`)}, send: "camera.photo",
			want: "busy", hears: []string{"fault"}},
		{send: "camera.photo", want: "busy"},
		{send: "camera.photo", own: true},
		{before: []control{fault(`{"code":"paused","times":5}`)}, send: "motion.stop", want: "paused",
			hears: []string{"fault"}},
		{before: []control{fault(`{"clear":true}`)}, send: "motion.stop", hears: []string{"fault"}},
	}
	for _, code := range glasses.CommandCodes() {
		if code == glasses.CodeTimeout {
			continue // this step takes ten seconds and was started at the beginning
		}
		args, _ := json.Marshal(map[string]string{"command": "clock.sleep", "code": code})
		steps = append(steps, step{before: []control{fault(string(args))}, send: "clock.sleep", payload: `{"ms":0}`,
			want: code, hears: []string{"fault"}})
	}
	return steps
}

// modelSteps returns the commands that fail on a model without the hardware.
func modelSteps() []step {
	steps := []step{{before: []control{wear("even_g1")}, hears: []string{"device"}}}
	for _, typ := range [][2]string{{"camera.photo", ""}, {"camera.video", clip}, {"video.start", ""},
		{"sound.play", playChime}, {"speech.say", sayHello}, {"motion.start", ""}} {
		steps = append(steps, step{send: typ[0], payload: typ[1], want: "unsupported"})
	}
	return append(steps,
		step{before: []control{{tool: "injectSensor", args: `{"motion":{"ax":1}}`, code: "unsupported"}}},
		step{before: []control{wear("rayban_meta")}, hears: []string{"device"}},
		step{send: "display.show", payload: showGo, want: "unsupported"},
		step{send: "motion.start", want: "unsupported"},
		step{before: []control{wear("system_audio")}, hears: []string{"device"}},
		step{send: "camera.photo", want: "unsupported"},
		step{before: []control{input(`{"kind":"tap"}`).refused("unsupported")}},
		step{send: "audio.start", hears: []string{"audio.chunk"}, own: true},
		step{send: "audio.stop"},
		step{before: []control{wear("rayban_display")}, hears: []string{"device"}},
		step{send: "display.clear"})
}
