package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
)

const injectSensorText = `Changes what the glasses of a session are in or sense: state (battery, worn, hinge, thermal, link, route, call, permissions, disabled), ` +
	`how the head moves, what the camera sees (a PNG or JPEG file) and what the microphone hears (a WAV file). The app hears of it by the events of ` +
	`getCapabilityGuide (state), and its commands fail accordingly. Use it for refused permissions, glasses taken off, a phone call, a weak battery. ` +
	`Several may be given at once; they are done in the order camera, microphone, state, motion. ` +
	`For what the wearer does use injectInput, for speech as text injectTranscript, for single failing commands injectFault.`

type injectSensor struct{ injector }

type injectSensorArgs struct {
	SessionID       string          `json:"sessionId"`
	State           json.RawMessage `json:"state"`
	Motion          json.RawMessage `json:"motion"`
	CameraFile      string          `json:"cameraFile"`
	MicrophoneFile  string          `json:"microphoneFile"`
	ResetCamera     bool            `json:"resetCamera"`
	ResetMicrophone bool            `json:"resetMicrophone"`
}

func (t injectSensor) definition() definition {
	parts := quoted(wordParts())
	return definition{run: t.run, Tool: Tool{
		Name: "injectSensor", Title: "Change state, motion, camera or microphone", Description: injectSensorText,
		InputSchema: inputSchema(sessionArgument+`,
			"state":{"type":"object","description":"Only the fields that are there change.","additionalProperties":false,"properties":{
				"battery":{"type":"object","properties":{"level":{"type":"integer","description":"Percent, 0 to 100."},"charging":{"type":"boolean"}}},
				"worn":{"type":"boolean"},
				"hinge":{"type":"string","enum":["open","folded"]},
				"thermal":{"type":"string","enum":["nominal","warm","critical"]},
				"link":{"type":"string","enum":["connected","lossy","lost"],"description":"lossy: results are 400 ms late."},
				"route":{"type":"string","enum":["glasses","phone"]},
				"call":{"type":"boolean","description":"A phone call holds microphone and speaker."},
				"permissions":{"type":"object","additionalProperties":{"type":"string","enum":["granted","denied"]},"description":"Of camera, microphone, speech."},
				"disabled":{"type":"array","items":{"type":"string","enum":[`+parts+`]},"description":"All that the wearer has switched off."}}},
			"motion":{"type":"object","additionalProperties":{"type":"integer"},"description":"ax, ay, az in thousandths of g (at rest az is 1000), gx, gy, gz in thousandths of a degree a second."},
			"cameraFile":{"type":"string","description":"A PNG or JPEG file, at most 1 MiB: what the camera sees from now on. Absolute or below the working directory."},
			"microphoneFile":{"type":"string","description":"A WAV file, at most 1 MiB: what the microphone hears from now on."},
			"resetCamera":{"type":"boolean","default":false,"description":"The camera sees its own picture again."},
			"resetMicrophone":{"type":"boolean","default":false,"description":"The microphone hears its own sound again."}`, ""),
		OutputSchema: injectSchema(""),
	}}
}

func (t injectSensor) run(ctx context.Context, c call) (any, error) {
	var args injectSensorArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	list, err := t.injections(ctx, c, args)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, &Error{Code: CodeInvalidArguments, Message: "nothing is to be changed", FixHint: `pass state, motion, cameraFile or microphoneFile, e.g. {"state":{"worn":false}}; getDisplayState only looks`}
	}
	return t.inject(ctx, c, args.SessionID, list,
		call1("waitForEvent", `{"kind":"request"}`, "wait for what the app does about it"),
		call1("getDisplayState", `{}`, "see display and state"))
}

func (t injectSensor) injections(ctx context.Context, c call, args injectSensorArgs) ([]injection, error) {
	var list []injection
	for _, f := range []struct {
		path, typ, part string
		reset           bool
		kinds           []fileKind
	}{{args.CameraFile, glasses.SimCamera, "camera", args.ResetCamera, pictures}, {args.MicrophoneFile, glasses.SimMicrophone, "microphone", args.ResetMicrophone, sounds}} {
		if f.reset {
			list = append(list, injection{typ: f.typ, payload: struct{}{}, done: "the " + f.part + " is its own again"})
		}
		if f.path != "" {
			data, err := readFile(ctx, c.who, f.part+"File", f.path, session.MaxUpload, f.kinds)
			if err != nil {
				return nil, err
			}
			list = append(list, injection{typ: f.typ, payload: struct{}{}, media: data, done: fmt.Sprintf("the %s has %s (%d bytes)", f.part, clip(f.path), len(data))})
		}
	}
	for _, p := range []struct {
		raw       json.RawMessage
		typ, name string
		known     any
	}{{args.State, glasses.SimState, "state", &glasses.StatePatch{}}, {args.Motion, glasses.SimMotion, "motion", &glasses.Motion{}}} {
		if len(p.raw) == 0 || string(p.raw) == "null" {
			continue
		}
		if err := decodeInner(p.name, p.raw, p.known); err != nil {
			return nil, err
		}
		if err := checkControl(p.typ, p.raw); err != nil {
			return nil, err
		}
		list = append(list, injection{typ: p.typ, payload: p.raw, done: p.name + " " + clip(string(p.raw))})
	}
	return list, nil
}

// decodeInner refuses unknown fields of an argument that is an object.
func decodeInner(name string, raw json.RawMessage, into any) error {
	err := decode(raw, into)
	var refused *Error
	if errors.As(err, &refused) {
		return &Error{Code: refused.Code, Message: name + ": " + refused.Message, FixHint: "the fields of " + name + " are: " + join(fieldsOf(into))}
	}
	return err
}
