package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/strictjson"
)

type injectSensor struct{ injector }

type injectSensorArgs struct {
	sessionArg
	State           *glasses.StatePatch `json:"state,omitempty"`
	Motion          *glasses.Motion     `json:"motion,omitempty"`
	CameraFile      string              `json:"cameraFile"`
	MicrophoneFile  string              `json:"microphoneFile"`
	ResetCamera     bool                `json:"resetCamera" jsonschema:"Restore its own picture."`
	ResetMicrophone bool                `json:"resetMicrophone"`
}

func (injectSensorArgs) rules() strictjson.Rules {
	rules := strictjson.Rules{"": {Example: `{"state":{"battery":{"level":5,"charging":false}}}`}}
	for at, rule := range scenario.KindRules("state") {
		rules["state."+at] = rule
	}
	return rules
}

func (t injectSensor) definition() definition {
	return define(injectTool("injectSensor", "Change state, motion, camera or microphone"), t.run,
		on("state", closed),
		on("state.disabled", says("All parts that are switched off.")),
		on("motion", opaque, says("ax (right), ay (forward), az (up; 1000 at rest) in milli-g, gx (positive: looks up), "+
			"gy (tilts right), gz (turns left) in millidegrees a second.")),
		on("cameraFile", says("A PNG or JPEG of up to 1 MiB that the camera sees from now on.")),
		on("microphoneFile", says("A WAV or WebVTT of up to 1 MiB that the microphone hears.")),
	)
}

func (t injectSensor) run(ctx context.Context, c call, args injectSensorArgs) (any, error) {
	list, err := t.injections(ctx, c, args)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid("nothing to change", `Pass state, motion, cameraFile or microphoneFile, e.g. `+
			`{"state":{"worn":false}}; getDisplayState only looks.`)
	}
	return t.inject(ctx, c, args.SessionID, list,
		suggest("waitForEvent", `{"kind":"request"}`, "wait for the app's reaction"),
		suggest("getDisplayState", `{}`, "see display and state"))
}

func (t injectSensor) injections(ctx context.Context, c call, args injectSensorArgs) ([]injection, error) {
	var list []injection
	for _, f := range []struct {
		path, typ, part string
		reset           bool
		kinds           []fileKind
	}{
		{args.CameraFile, glasses.SimCamera, "camera", args.ResetCamera, pictures},
		{args.MicrophoneFile, glasses.SimMicrophone, "microphone", args.ResetMicrophone, sounds},
	} {
		if f.reset {
			list = append(list, injection{typ: f.typ, payload: struct{}{}, done: "the " + f.part + " is restored"})
		}
		if f.path != "" {
			data, err := readFile(ctx, c.who, f.part+"File", f.path, session.MaxUpload, f.kinds)
			if err != nil {
				return nil, err
			}
			in := injection{typ: f.typ, payload: struct{}{}, media: data, file: data,
				done: fmt.Sprintf("the %s now uses %s (%d bytes)", f.part, clip(f.path), len(data))}
			if f.typ == glasses.SimMicrophone {
				if in.media, in.payload, err = microphone(ctx, c.who, f.path, data); err != nil {
					return nil, err
				}
			}
			list = append(list, in)
		}
	}
	if args.State != nil {
		list = append(list, changeOf(glasses.SimState, "state", args.State))
	}
	if args.Motion != nil {
		list = append(list, changeOf(glasses.SimMotion, "motion", args.Motion))
	}
	for _, in := range list {
		if err := checkControl(in.typ, in.payload); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// microphone returns the sound and the payload of sim.microphone for a file with the content data.
func microphone(
	ctx context.Context, who caller.Caller, path string, data []byte,
) (wav []byte, heard *glasses.Microphone, err error) {
	full, err := pathOf(who, "microphoneFile", path)
	if err != nil {
		return nil, nil, err
	}
	wav, heard, err = session.Microphone(ctx, clientio.FilesOf(who), full, data)
	if err != nil {
		return nil, nil, fileError(problem.CodeFileUnreadable, err,
			"Correct the WebVTT file, or rename it if it does not belong to the sound beside it.")
	}
	return wav, heard, nil
}

// changeOf returns the injection of a change of state or a motion.
func changeOf[T any](typ, what string, payload *T) injection {
	words, _ := json.Marshal(payload) // never fails: the struct has no interfaces
	return injection{typ: typ, payload: payload, done: what + " " + clip(string(words))}
}

// decodeInner decodes an argument that is an object. It rejects unknown fields.
func decodeInner(name string, raw json.RawMessage, into any) error {
	err := decodeInto(raw, into)
	var refused *problem.Error
	if errors.As(err, &refused) {
		return &problem.Error{Code: refused.Code, Message: name + ": " + refused.Message,
			FixHint: "Pass in " + name + " only these fields: " + strings.Join(fieldsOf(into), ", ") + "."}
	}
	return err
}
