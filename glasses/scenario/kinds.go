package scenario

import (
	"fmt"
	"maps"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/strictjson"
)

// Kind is a kind of step. Its entry in this file and its Go type define everything about its fields: the values that
// Parse accepts, the JSON Schema, the reference page, and the arguments of the tool that performs the step in a single
// call.
type Kind struct {
	// Name is the field of a step.
	Name string
	// What is a sentence that describes the kind.
	What string
	// Expects is set for a kind that checks something.
	Expects bool
	// Tool is the tool that performs the step in a single call, or "" if there is none. Argument is the tool's argument
	// for the step's value. If it is empty, the value's fields are the arguments.
	Tool, Argument string
	// OnlyStep lists the fields of the value that the tool does not accept.
	OnlyStep []string
	// Example is a complete step.
	Example string
	// rules maps places in the value to their rules.
	rules strictjson.Rules
}

// integers returns the rule for an integer between low and high.
func integers(what string, low, high int64) strictjson.Rule {
	return strictjson.Rule{What: what, Min: &low, Max: &high}
}

func words(what string, list ...string) strictjson.Rule {
	return strictjson.Rule{What: what, Words: list}
}

func says(what string) strictjson.Rule { return strictjson.Rule{What: what} }

func within() strictjson.Rule {
	rule := integers("How long to wait, in milliseconds on the session's clock.", 0, MaxWithin)
	rule.Default = int64(DefaultWithin)
	return rule
}

// Kinds returns every kind of step in the order of the reference page. The caller may modify the result.
func Kinds() []Kind { return append(actions(), expectations()...) }

func actions() []Kind {
	parts := []string{glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech}
	return []Kind{
		{Name: "input", What: "The wearer taps, swipes or selects. target alone performs the inputs with which this " +
			"model's wearer reaches that id, and fails with unreachable if there are none.",
			Tool: "injectInput", Example: `{"input": {"kind": "tap", "x": 300, "y": 240}}`,
			rules: strictjson.Rules{
				"":     {ExactlyOne: []string{"kind", "target"}},
				"kind": words("", glasses.InputKinds()...),
				"target": {What: "Without kind: perform the inputs that select this id.", Pattern: word, MaxLength: glasses.MaxID,
					Form: idForm},
				"x":         says("Of tap, in panel pixels."),
				"direction": words("For swipe and navigate.", "up", "down", "left", "right"),
				"side":      words("If there are two touch bars.", "left", "right"),
			}},
		{Name: "transcript", What: "Someone speaks. The app must have started transcription.",
			Tool: "injectTranscript", Example: `{"transcript": {"text": "add milk"}}`,
			rules: strictjson.Rules{
				"":           {Required: []string{"text"}},
				"text":       {MinLength: 1, MaxLength: glasses.MaxSay},
				"final":      {What: "false: may still change.", Default: true},
				"language":   {What: "E.g. en.", Pattern: word, MaxLength: 35, Form: "a BCP 47 tag such as en"},
				"confidence": integers("Percent.", 0, 100),
			}},
		{Name: "state", What: "The state of the glasses changes. Omitted fields stay unchanged.",
			Tool: "injectSensor", Argument: "state", Example: `{"state": {"battery": {"level": 5, "charging": false}}}`,
			rules: strictjson.Rules{
				"battery.level": integers("Percent.", 0, 100),
				"hinge":         words("", glasses.HingeOpen, glasses.HingeFolded),
				"thermal":       words("", glasses.ThermalNominal, glasses.ThermalWarm, glasses.ThermalCritical),
				"link":          words("", glasses.LinkConnected, glasses.LinkLossy, glasses.LinkLost),
				"route":         words("", glasses.RouteGlasses, glasses.RoutePhone),
				"permissions":   {What: "Of camera, microphone, speech.", Keys: parts},
				"permissions.*": words("", glasses.PermissionGranted, glasses.PermissionDenied),
				"disabled[]":    words("", parts...),
			}},
		{Name: "motion", What: "The head moves: acceleration in thousandths of g, rotation in thousandths of a degree " +
			"per second; x right, y forward, z up.", Tool: "injectSensor", Argument: "motion",
			Example: `{"motion": {"az": 1000, "gz": 90000}}`},
		{Name: "fault", What: "The app's next commands fail or are late, or it loses its connection.", Tool: "injectFault",
			Example: `{"fault": {"command": "camera.photo", "code": "busy"}}`,
			rules: strictjson.Rules{
				"":          {AnyOf: []string{"code", "latencyMs", "clear", "dropApp"}},
				"command":   words("Default: any.", glasses.CommandTypes()...),
				"code":      words("", glasses.CommandCodes()...),
				"latencyMs": integers("", 0, 60_000),
				"times":     {What: "Commands.", Min: new(int64(1)), Max: new(int64(1000)), Default: int64(1)},
				"clear":     says("Clear all faults first."),
				"dropApp":   says("Without command, code, latencyMs: close the app's connection; it must attach again."),
			}},
		{Name: "device", What: "The wearer puts on other glasses.", Tool: "setDevice", Argument: "deviceModel",
			Example: `{"device": "even_g1"}`, rules: strictjson.Rules{"": words("", glasses.ModelIDs()...)}},
		{Name: "camera", What: "The camera sees this picture (PNG or JPEG) from now on; an empty path means its own picture.",
			Tool: "injectSensor", Argument: "cameraFile", Example: `{"camera": "milk.png"}`,
			rules: strictjson.Rules{"": {Form: "the path of a picture"}}},
		{Name: "microphone", What: "The microphone hears this sound (WAV) from now on; an empty path means its own " +
			"sound. A WebVTT file of the same name (.vtt) tells what is said in it; alone, it sounds like speech.",
			Tool: "injectSensor", Argument: "microphoneFile", Example: `{"microphone": "hello.vtt"}`,
			rules: strictjson.Rules{"": {Form: "the path of a WAV or WebVTT file"}}},
		{Name: "advance", What: "Milliseconds pass. On a session in real time the step waits that long.",
			Tool: "advanceTime", Argument: "ms", Example: `{"advance": 1000}`,
			rules: strictjson.Rules{"": integers("", 0, MaxAdvance)}},
	}
}

func expectations() []Kind {
	return []Kind{
		{Name: "expect", What: "A row must be added to the event log or, with absent, must not. Only rows since the last " +
			"step that made something happen count, each for one expectation.", Expects: true,
			Tool: "waitForEvent", OnlyStep: []string{"absent", "atMost", "withinMs"},
			Example: `{"expect": {"type": "display.show", "withinMs": 1000}}`,
			rules: strictjson.Rules{
				"":        {AnyOf: []string{"type", "kind", "chip", "sender", "payload"}},
				"type":    {What: "Such as display.show, input or app.attached.", MinLength: 1, MaxLength: glasses.MaxType},
				"kind":    words("request: a command of the app.", glasses.KindRequest, glasses.KindResult, glasses.KindEvent),
				"chip":    words("", glasses.Chips()...),
				"sender":  words("", glasses.SenderApp, glasses.SenderGlasses, glasses.SenderService),
				"payload": {What: "Fields that it must have; lists and values must be equal.", Object: true},
				"atMost": {What: "Numbers of the payload that must not be larger, such as {\"afterSpeechMs\": 800}.",
					Object: true},
				"withinMs": within(),
				"absent":   says("It must not arrive within withinMs."),
			}},
		{Name: "expectDisplay", What: "The wearer sees this within withinMs.", Expects: true,
			Tool: "expectDisplay", Example: `{"expectDisplay": {"text": ["Milk"], "absent": ["Eggs"]}}`,
			rules: strictjson.Rules{
				"":             {AnyOf: []string{"text", "absent", "images", "progress", "focus", "picture"}},
				"text":         says("Each must be the whole text of a node, readable in full, e.g. [\"Milk\",\"2 of 5\"]."),
				"contains":     says("A part of a node's text is enough for text."),
				"inOrder":      says("text from top to bottom."),
				"absent":       says("No readable text contains it, and no visible image or icon has this name."),
				"images":       says("Alts of images, names of icons, or ids; fully visible."),
				"progress":     says("Values of progress bars by id, e.g. {\"rest\":40}."),
				"progress.*":   integers("", 0, 100),
				"allowPartial": says("Partly visible content counts."),
				"focus":        says("Id of a node; empty: none."),
				"picture": {What: "SHA-256 of the picture, from getDisplayState or a saved picture.", Pattern: hashPattern,
					Form: "a SHA-256 in lower-case hex"},
				"withinMs": integers(fmt.Sprintf("How long to wait, in milliseconds on the session's clock. Default: %d; "+
					"longer for a slow panel.", DefaultWithin), 0, MaxWithin),
			}},
		{Name: "expectNothingClipped", What: "The display fits device models: nothing is clipped or cut, no word of a " +
			"button is broken, and every target can be reached. {} means every model with a display.", Expects: true,
			Example: `{"expectNothingClipped": {"models": ["even_g1"]}}`,
			rules: strictjson.Rules{
				"models":   says("Default: every model with a display."),
				"models[]": words("", panelModels()...),
				"withinMs": within(),
			}},
		{Name: "expectMemory", What: "The app's assistant remembers this about the wearer within withinMs. Only in local " +
			"sessions.", Expects: true, Example: `{"expectMemory": {"text": ["Name: Ann"]}}`,
			rules: strictjson.Rules{
				"":         {ExactlyOne: []string{"text", "empty"}},
				"text":     says("Each must be part of the profile."),
				"text[]":   {MinLength: 1},
				"empty":    says("true: nothing is remembered."),
				"withinMs": within(),
			}},
		{Name: "picture", What: "Saves what the wearer sees under this name.", Example: `{"picture": "end"}`,
			rules: strictjson.Rules{"": {Pattern: pictureName,
				Form: "a name of 1 to 100 printable characters without a path or a leading dot"}}},
	}
}

// Patterns of strings.
const (
	word         = `^[!-~]+$`
	idForm       = "an id of 1 to 64 printable ASCII characters without spaces"
	namePattern  = `^[^\x00-\x1f\x7f]{1,100}$`
	pictureName  = `^[^./\\:\x00-\x1f\x7f][^/\\:\x00-\x1f\x7f]{0,99}$`
	hashPattern  = `^[0-9a-f]{64}$`
	mediaPattern = `^[0-9a-f]{64}(\.[a-z0-9]{1,8})?$`
)

func panelModels() (ids []string) {
	for _, m := range glasses.Models() {
		if m.Panel != nil {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// KindRules returns the rules for the value of the kind called name. Tools whose arguments have the same fields use
// these rules.
func KindRules(name string) strictjson.Rules {
	for _, k := range Kinds() {
		if k.Name == name {
			return k.rules
		}
	}
	return nil
}

// rulesOfSteps returns the rules for a list of steps at place.
func rulesOfSteps(place string) strictjson.Rules {
	step := place + "[]"
	rules := strictjson.Rules{
		place:          {What: "They run in order.", MaxItems: MaxSteps, Example: `[{"advance": 1000}]`},
		step + ".note": says("A comment for people."),
	}
	var names []string
	for _, k := range Kinds() {
		at := step + "." + k.Name
		for inner, rule := range k.rules {
			if inner == "" {
				inner = at
			} else {
				inner = at + "." + inner
			}
			rules[inner] = rule
		}
		value := rules[at]
		value.What, value.Example = k.What, k.Example
		rules[at] = value
		names = append(names, k.Name)
	}
	rules[step] = strictjson.Rule{ExactlyOne: names, Example: `{"advance": 1000}`}
	return rules
}

// rulesOfFile returns the rules for a scenario.
func rulesOfFile() strictjson.Rules {
	clock := words("virtual by default.", "virtual", "real")
	rules := rulesOfSteps("steps")
	version := integers("The version of the format. In version 1, expectDisplay accepts parts of texts.", 1, Version)
	version.Example = `{"scenario": 2, "name": "tap counts", "steps": [{"advance": 1000}]}`
	maps.Copy(rules, assistantscript.ListRules("assistant.rules"))
	for at, rule := range map[string]strictjson.Rule{
		"":         {Required: []string{"scenario", "name", "steps"}, Example: version.Example},
		"scenario": version,
		"name": {Pattern: namePattern, Form: "a name of 1 to 100 printable characters",
			Example: `"tap counts"`},
		"deviceModel": words("Default: the session's.", glasses.ModelIDs()...),
		"clock":       clock,
		"app": {What: "How servicectl session run starts the app.", Required: []string{"command"},
			Example: appExample},
		"app.command": says("The program and its arguments."),
		"app.dir":     says("Its working directory, relative to this file's."),
		"fixturesDir": says("The folder with fixtures for camera and microphone."),
		"assistant": {What: "A script for the app's assistant: its rules, or a file.",
			ExactlyOne: []string{"file", "rules"}, Example: `{"file": "assistant.json"}`},
		"memory": {What: "What the assistant remembers about the wearer at the beginning: a profile of at most 4,096 bytes.",
			MaxLength: assistantscript.MaxProfile},
		"fonts": {What: "Fonts added with servicectl fonts add that the app's texts need.",
			MaxItems: MaxFonts},
		"fonts[]":                    {Required: []string{"name", "sha256"}},
		"fonts[].name":               {Pattern: namePattern, Form: "a name of 1 to 100 printable characters"},
		"fonts[].sha256":             {Pattern: hashPattern, Form: "a SHA-256 in lower-case hex"},
		"assistant.file":             {MinLength: 1, Form: "the path of an assistant script"},
		"recorded":                   {What: "The app's commands and events in a recording.", Required: []string{"clock"}},
		"recorded.clock":             words("", "virtual", "real"),
		"recorded.trace":             {MaxItems: MaxTrace},
		"recorded.pictures":          {MaxItems: MaxTrace},
		"recorded.pictures[].sha256": {Pattern: hashPattern, Form: "a SHA-256 in lower-case hex"},
		"recorded.pictures[]":        {Required: []string{"sha256"}},
		"recorded.trace[]":           {Required: []string{"type"}},
		"recorded.media":             {MaxItems: MaxTrace},
		"recorded.media[]":           {Pattern: mediaPattern, Form: "a SHA-256 with an extension"},
	} {
		rules[at] = rule
	}
	return rules
}

const appExample = `{"command": ["node", "app.js"]}`
