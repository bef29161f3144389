package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/guide"
)

const getPlatformInfoText = `Tells what this service is and the way from nothing to a proven app for smart glasses, step by step with the tools' exact names: ` +
	`the device models with panel, inputs, camera, microphone, speaker, motion and how well each fact is known; the capabilities; the transports and ` +
	`which of them needs an account; limits; and how an app attaches (environment variables, first frame). ` +
	`Call it first when you are new here. It needs no account and no network and changes nothing. ` +
	`For one capability with its commands, fields and errors call getCapabilityGuide; for longer texts searchDocs; for how sessions stand getSessionStatus.`

type getPlatformInfo struct{}

type platformStep struct {
	Step  int    `json:"step"`
	Tool  string `json:"tool,omitempty"`
	Do    string `json:"do"`
	Check string `json:"check"`
}

type platformTransport struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Tool         string `json:"tool"`
	NeedsAccount bool   `json:"needsAccount"`
	About        string `json:"about"`
}

type capabilityName struct {
	ID    string `json:"id"`
	About string `json:"about"`
}

// attachment is how an app attaches to a session.
type attachment struct {
	URLVariable    string   `json:"urlVariable"`
	SecretVariable string   `json:"secretVariable"`
	Steps          []string `json:"steps"`
	Hello          any      `json:"hello"`
	Welcome        string   `json:"welcome"`
	Rules          []string `json:"rules"`
}

type platformInfoAnswer struct {
	About        string                `json:"about"`
	Steps        []platformStep        `json:"steps"`
	DeviceModels []glasses.DeviceModel `json:"deviceModels"`
	DefaultModel string                `json:"defaultDeviceModel"`
	Fidelity     map[string]string     `json:"fidelity"`
	Capabilities []capabilityName      `json:"capabilities"`
	Transports   []platformTransport   `json:"transports"`
	Attach       attachment            `json:"attach"`
	Limits       map[string]int64      `json:"limits"`
	Next         []nextCall            `json:"nextCalls"`
	Summary      string                `json:"summary"`
}

const deviceModelSchema = `{"type":"object","properties":{
	"id":{"type":"string"},"name":{"type":"string"},
	"panel":{"anyOf":[{"type":"object"},{"type":"null"}],"description":"width and height in pixels, shape, colour, bits, additive; null: no display."},
	"inputs":{"type":"array","items":{"type":"string"}},
	"camera":{"anyOf":[{"type":"object"},{"type":"null"}],"description":"The largest picture; null: none."},
	"microphone":{"type":"boolean"},"speaker":{"type":"boolean"},"motion":{"type":"boolean"},
	"fidelity":{"type":"object","additionalProperties":{"type":"string"}}}}`

func (t getPlatformInfo) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getPlatformInfo", Title: "Learn what the service is", Description: getPlatformInfoText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema("", ""),
		OutputSchema: outputSchema(`
			"about":{"type":"string"},
			"steps":{"type":"array","items":{"type":"object","properties":{"step":{"type":"integer"},"tool":{"type":"string"},"do":{"type":"string"},"check":{"type":"string"}}}},
			"deviceModels":{"type":"array","items":`+deviceModelSchema+`},
			"defaultDeviceModel":{"type":"string"},
			"fidelity":{"type":"object","additionalProperties":{"type":"string"},"description":"What the marks of a device model mean."},
			"capabilities":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"about":{"type":"string"}}}},
			"transports":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"tool":{"type":"string"},"needsAccount":{"type":"boolean"},"about":{"type":"string"}}}},
			"attach":{"type":"object","description":"How an app attaches to a session."},
			"limits":{"type":"object","additionalProperties":{"type":"integer"}},`+
			nextProperty+`,`+summaryProperty, `"about","steps","deviceModels","capabilities","transports","attach","limits","summary"`, false),
	}}
}

func (t getPlatformInfo) run(_ context.Context, c call) (any, error) {
	if err := decode(c.args, &struct{}{}); err != nil {
		return nil, err
	}
	answer := platformInfoAnswer{
		About: "A toolkit for building apps for smart glasses and proving that they work without hardware. An app opens a WebSocket to a session and sends " +
			"commands as JSON frames; the session's glasses answer each with a result and tell of events. The same app runs on every transport: only the address changes.",
		Steps: platformSteps(), DeviceModels: glasses.Models(), DefaultModel: glasses.DefaultDeviceModel,
		Fidelity: map[string]string{
			glasses.Measured: "read from a device", glasses.Documented: "from the vendor's documents", glasses.Guessed: "not known for certain; leave room",
		},
		Transports: platformTransports(), Attach: attachWords(), Limits: platformLimits(),
		Next: []nextCall{
			call1("getCapabilityGuide", `{"capability":"display"}`, "learn the commands of the first capability the app needs"),
			call1("startLocalSimulation", `{}`, "get glasses to attach to, without an account"),
		},
	}
	for _, known := range guide.Capabilities() {
		answer.Capabilities = append(answer.Capabilities, capabilityName{known.ID, known.About})
	}
	answer.Summary = fmt.Sprintf("%d device models, %d capabilities. Follow steps from 1; nothing before createSimulatorSession and generateConnectionModule needs an account.",
		len(answer.DeviceModels), len(answer.Capabilities))
	return answer, nil
}

func platformSteps() []platformStep {
	steps := []platformStep{
		{Tool: "getCapabilityGuide", Do: "for each capability that the app needs: its commands, fields, bounds, errors and an example", Check: "you know the frames to send and the events to handle"},
		{Tool: "getPermissions", Do: "for the app's platform: what it declares and asks for", Check: "the declarations are in the app"},
		{Tool: "getCodeExample", Do: "a complete app to start from; with includeModule true also the module that it imports, without an account", Check: "its files are written, and run tells how to start it"},
		{Tool: "generateConnectionModule", Do: "or, with a free account, a module of the app's own that attaches, reconnects and speaks the protocol", Check: "its files are in the project, the project key in an ignored file"},
		{Do: "write the app; it reads " + envGlassesURL + " and " + envGlassesSecret, Check: "it builds"},
		{Tool: "startLocalSimulation", Do: "get simulated glasses, without account, window or camera", Check: "appEndpoint and appTokenFile are in the answer"},
		{Do: "start the app with the variables in environment of that answer (" + envGlassesURL + ", " + envGlassesSecret + ")", Check: "waitForEvent with type app.attached answers at once"},
		{Tool: "getDisplayState", Do: "see what the wearer sees: tree, text and picture", Check: "it is what you meant"},
		{Tool: "injectInput", Do: "do what the wearer does; injectTranscript speaks, injectSensor changes battery, permissions, camera and more, injectFault makes commands fail", Check: "waitForEvent and expectDisplay say that the app reacts"},
		{Tool: "setDevice", Do: "look at the app on other glasses", Check: "expectDisplay holds there too"},
		{Tool: "validateIntegration", Do: "find drift, placeholders, missing permissions and phrases that clash", Check: "no finding is left"},
		{Tool: "recordSession", Do: "keep the run as a recording", Check: "replaySession of it, with the next build of the app, answers verdict pass"},
		{Tool: "createSimulatorSession", Do: "with a free account: show the person the app in a browser", Check: "the person has seen it"},
		{Tool: "getProductionChecklist", Do: "before people get it", Check: "every item holds"},
	}
	for i := range steps {
		steps[i].Step = i + 1
	}
	return steps
}

func platformTransports() []platformTransport {
	return []platformTransport{
		{"local", "LocalSimTransport", "startLocalSimulation", false, "Simulated glasses on this machine: no account, network, window or camera; real or virtual clock; fit for tests and CI."},
		{"browser", "browser simulator", "createSimulatorSession", true, "Simulated glasses on a web page that a person sees and clicks, with their webcam and microphone; the account is free."},
	}
}

func attachWords() attachment {
	return attachment{
		URLVariable: envGlassesURL, SecretVariable: envGlassesSecret,
		Steps: []string{
			"Open a WebSocket to the address in " + envGlassesURL + " (appEndpoint of startLocalSimulation or createSimulatorSession); no header, query or cookie is needed.",
			"Within 5 seconds send hello as the first text frame, with the trimmed content of the file that " + envGlassesSecret + " names (appTokenFile) as secret.",
			"Wait for welcome, then send commands; each is answered by one result frame with the command's id.",
			"A generated module also reads " + envGlassesTransport + ": simulator for these sessions. Hand-written apps need not.",
			"Ignore types you do not know. Answer a barrier frame with {type barrier, the same id} once everything before it is handled.",
		},
		Hello:   frame(glasses.TypeHello, "a-0", `{"secret":"<content of the file>","app":{"name":"My app","version":"1.0"},"barrier":true}`),
		Welcome: "payload: sessionId, deviceModel (as in deviceModels), link (connected or disconnected), lastSeq (send it as since in hello after a lost connection)",
		Rules: []string{
			"id: 1 to 64 printable ASCII characters without spaces, never used twice by the app in a session: begin with something random.",
			"at: integer milliseconds, e.g. Unix time.",
			"Never print, log or commit the secret; read the file each time.",
			"After close codes 1001, 1006, 1011, 1012 and 1013 attach again with since, waiting longer each time; after 4400, 4401 and 4410 do not.",
		},
	}
}

func platformLimits() map[string]int64 {
	return map[string]int64{
		"textFrameBytes": glasses.MaxFrame, "binaryFrameBytes": glasses.MaxBinary, "helloBytes": glasses.MaxHello, "idCharacters": glasses.MaxID,
		"treeNodes": glasses.MaxNodes, "treeDepth": glasses.MaxTreeDepth, "speechCharacters": glasses.MaxSay, "phrases": glasses.MaxPhrases,
		"clipMs": glasses.MaxVideo, "sleepMs": glasses.MaxSleep,
	}
}
