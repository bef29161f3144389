package tools

import (
	"context"

	"github.com/service-dev/service/proto/glasses"
)

const injectInputText = `Does what the wearer does with the glasses of a session: taps, holds, swipes, navigates, selects, goes back, presses the camera button. ` +
	`The app gets an input event; target is filled in by the glasses (of tap with x and y: the node there; of select: the focused one; navigate moves the focus). ` +
	`Use it to drive an app as a person would. A kind that the device model lacks is refused with unsupported. ` +
	`See what came of it with waitForEvent (e.g. type display.show), expectDisplay or getDisplayState, whose targets tell where to tap. ` +
	`Speech is injectTranscript; battery, wear, permissions and the rest are injectSensor.`

type injectInput struct{ injector }

type injectInputArgs struct {
	SessionID string  `json:"sessionId"`
	Kind      string  `json:"kind"`
	X         integer `json:"x"`
	Y         integer `json:"y"`
	Direction string  `json:"direction"`
	Side      string  `json:"side"`
}

func (t injectInput) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "injectInput", Title: "Tap, swipe or select", Description: injectInputText,
		InputSchema: inputSchema(sessionArgument+`,
			"kind":{"type":"string","enum":[`+quoted(glasses.InputKinds())+`],"description":"What the wearer does."},
			"x":{"type":"integer","description":"Of tap: panel pixels from the left."},
			"y":{"type":"integer","description":"Of tap: panel pixels from the top."},
			"direction":{"type":"string","enum":["up","down","left","right"],"description":"Of swipe and navigate, which need it."},
			"side":{"type":"string","enum":["left","right"],"description":"The touch bar, where there are two."}`, `"kind"`),
		OutputSchema: injectSchema(""),
	}}
}

func (t injectInput) run(ctx context.Context, c call) (any, error) {
	var args injectInputArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	input := glasses.Input{Kind: args.Kind, X: pixel(args.X), Y: pixel(args.Y), Direction: args.Direction, Side: args.Side}
	if err := checkControl(glasses.SimInput, input); err != nil {
		return nil, err
	}
	return t.inject(ctx, c, args.SessionID, []injection{{typ: glasses.SimInput, payload: input, done: "input " + args.Kind}},
		call1("waitForEvent", `{"type":"display.show"}`, "wait for the app's next screen"),
		call1("getDisplayState", `{}`, "see what the wearer sees now"))
}

// pixel keeps a coordinate in what a payload can hold.
func pixel(n integer) int { return int(min(max(int64(n), -glasses.MaxLength), glasses.MaxLength)) }
