package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
)

type injectSensor struct{ injector }

type injectSensorArgs struct {
	sessionArg
	State           rawOf[glasses.StatePatch] `json:"state"`
	Motion          rawOf[map[string]int]     `json:"motion"`
	CameraFile      string                    `json:"cameraFile"`
	MicrophoneFile  string                    `json:"microphoneFile"`
	ResetCamera     bool                      `json:"resetCamera" jsonschema:"Back to its own picture."`
	ResetMicrophone bool                      `json:"resetMicrophone"`
}

func (t injectSensor) definition() definition {
	return define(injectTool("injectSensor", "Change state, motion, camera or microphone"), t.run,
		on("state", closed),
		on("state.battery.level", says("Percent.")),
		on("state.hinge", oneOf("open", "folded")),
		on("state.thermal", oneOf("nominal", "warm", "critical")),
		on("state.link", oneOf("connected", "lossy", "lost")),
		on("state.route", oneOf("glasses", "phone")),
		on("state.permissions", oneOf("granted", "denied"), says("Of camera, microphone, speech.")),
		on("state.disabled", oneOf(partNames()...), says("All parts that are switched off.")),
		on("motion", says("ax, ay, az in milli-g (at rest az is 1000), gx, gy, gz in millidegrees a second.")),
		on("cameraFile", says("A PNG or JPEG of up to 1 MiB that the camera sees from now on.")),
		on("microphoneFile", says("A WAV of up to 1 MiB that the microphone hears.")),
	)
}

func (t injectSensor) run(ctx context.Context, c call, args injectSensorArgs) (any, error) {
	list, err := t.injections(ctx, c, args)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid("nothing is to be changed", `pass state, motion, cameraFile or microphoneFile, e.g. `+
			`{"state":{"worn":false}}; getDisplayState only looks`)
	}
	return t.inject(ctx, c, args.SessionID, list,
		suggest("waitForEvent", `{"kind":"request"}`, "wait for what the app does about it"),
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
			list = append(list, injection{typ: f.typ, payload: struct{}{}, done: "the " + f.part + " is its own again"})
		}
		if f.path != "" {
			data, err := readFile(ctx, c.who, f.part+"File", f.path, session.MaxUpload, f.kinds)
			if err != nil {
				return nil, err
			}
			list = append(list, injection{typ: f.typ, payload: struct{}{}, media: data,
				done: fmt.Sprintf("the %s has %s (%d bytes)", f.part, clip(f.path), len(data))})
		}
	}
	for _, p := range []struct {
		raw       json.RawMessage
		typ, name string
		known     any
	}{
		{args.State.RawMessage, glasses.SimState, "state", &glasses.StatePatch{}},
		{args.Motion.RawMessage, glasses.SimMotion, "motion", &glasses.Motion{}},
	} {
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

// decodeInner decodes an argument that is an object; unknown fields are errors.
func decodeInner(name string, raw json.RawMessage, into any) error {
	err := decode(raw, into)
	var refused *Error
	if errors.As(err, &refused) {
		return &Error{Code: refused.Code, Message: name + ": " + refused.Message,
			FixHint: "the fields of " + name + " are: " + strings.Join(fieldsOf(into), ", ")}
	}
	return err
}
