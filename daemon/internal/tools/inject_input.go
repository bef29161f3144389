package tools

import (
	"cmp"
	"context"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/strictjson"
)

type injectInput struct{ injector }

type injectInputArgs struct {
	sessionArg
	glasses.Input
}

func (injectInputArgs) rules() strictjson.Rules {
	return kindRules("input", `{"kind":"tap","x":300,"y":240}`)
}

func (t injectInput) definition() definition {
	return define(injectTool("injectInput", "Tap, swipe or select"), t.run)
}

func (t injectInput) run(ctx context.Context, c call, args injectInputArgs) (any, error) {
	input := args.Input
	input.X, input.Y = pixel(input.X), pixel(input.Y)
	if err := checkControl(glasses.SimInput, input); err != nil {
		return nil, err
	}
	injected := injection{typ: glasses.SimInput, payload: input, done: "input " + cmp.Or(input.Kind, input.Target)}
	return t.inject(ctx, c, args.SessionID, []injection{injected},
		suggest("waitForEvent", `{"type":"display.show"}`, "wait for the app's next screen"),
		suggest("getDisplayState", `{}`, "see the wearer's view"))
}

// pixel limits a coordinate to the range of a payload.
func pixel(n int) int { return min(max(n, -glasses.MaxLength), glasses.MaxLength) }
