package tools

import (
	"cmp"
	"context"

	"github.com/service-dev/service/proto/glasses"
)

type injectInput struct{ injector }

type injectInputArgs struct {
	sessionArg
	Kind      string  `json:"kind"`
	Target    string  `json:"target" jsonschema:"Without kind: do what selects this id."`
	X         integer `json:"x" jsonschema:"Of tap, in panel pixels."`
	Y         integer `json:"y"`
	Direction string  `json:"direction" jsonschema:"For swipe and navigate."`
	Side      string  `json:"side" jsonschema:"If there are two touch bars."`
}

func (t injectInput) definition() definition {
	return define(injectTool("injectInput", "Tap, swipe or select"), t.run,
		on("kind", oneOf(glasses.InputKinds()...)),
		on("direction", oneOf("up", "down", "left", "right")),
		on("side", oneOf("left", "right")),
	)
}

func (t injectInput) run(ctx context.Context, c call, args injectInputArgs) (any, error) {
	input := glasses.Input{Kind: args.Kind, X: pixel(args.X), Y: pixel(args.Y), Direction: args.Direction,
		Side: args.Side, Target: args.Target}
	if args.Kind != "" && args.Target != "" {
		return nil, invalid("kind and target exclude each other", `pass {"target":"done"} to select by id, or a kind `+
			`such as {"kind":"tap"}`)
	}
	if err := checkControl(glasses.SimInput, input); err != nil {
		return nil, err
	}
	injected := injection{typ: glasses.SimInput, payload: input, done: "input " + cmp.Or(args.Kind, args.Target)}
	return t.inject(ctx, c, args.SessionID, []injection{injected},
		suggest("waitForEvent", `{"type":"display.show"}`, "wait for the app's next screen"),
		suggest("getDisplayState", `{}`, "see what the wearer sees now"))
}

// pixel clamps a coordinate to what a payload can hold.
func pixel(n integer) int { return int(min(max(int64(n), -glasses.MaxLength), glasses.MaxLength)) }
