package tools

import (
	"context"

	"github.com/service-dev/service/glasses"
)

type setDevice struct{ injector }

type setDeviceArgs struct {
	sessionArg
	DeviceModel string `json:"deviceModel"`
}

type deviceAnswer struct {
	injectAnswer
	DeviceModel string `json:"deviceModel"`
}

func (t setDevice) definition() definition {
	return define(Tool{
		Name: "setDevice", Title: "Change the glasses",
		Annotations:  Annotations{Idempotent: true},
		OutputSchema: injectAnswers[deviceAnswer](),
	}, t.run,
		required("deviceModel"),
		on("deviceModel", oneOf(glasses.ModelIDs()...)),
	)
}

func (t setDevice) run(ctx context.Context, c call, args setDeviceArgs) (any, error) {
	if _, ok := glasses.Model(args.DeviceModel); !ok {
		return nil, notOneOf("deviceModel", glasses.ModelIDs())
	}
	out, err := t.inject(ctx, c, args.SessionID, []injection{{
		typ: glasses.SimDevice, payload: glasses.DeviceChoice{DeviceModel: args.DeviceModel},
		done: "the glasses are " + args.DeviceModel + " now",
	}},
		suggest("waitForEvent", `{"type":"display.show"}`, "wait until the app shows its screen again"),
		suggest("getDisplayState", `{}`, "see the screen on the new panel"))
	if answer, ok := out.(injectAnswer); ok {
		return deviceAnswer{answer, args.DeviceModel}, nil
	}
	return out, err
}
