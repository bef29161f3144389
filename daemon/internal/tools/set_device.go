package tools

import (
	"context"

	"github.com/service-dev/service/proto/glasses"
)

const setDeviceText = `Puts other glasses in the place of a session's: the display is cleared, streams stop, and the app gets a device event with the new model. ` +
	`Use it to see an app on every panel and input that it is offered for. Afterwards the app has to show its screen again; waitForEvent with type display.show tells. ` +
	`What each model has stands in getPlatformInfo. To start with a certain model, pass deviceModel to startLocalSimulation or createSimulatorSession. ` +
	`It does not change the state of the glasses (battery, permissions); injectSensor does.`

type setDevice struct{ injector }

type setDeviceArgs struct {
	SessionID   string `json:"sessionId"`
	DeviceModel string `json:"deviceModel"`
}

func (t setDevice) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "setDevice", Title: "Change the glasses", Description: setDeviceText, Annotations: Annotations{Idempotent: true},
		InputSchema:  inputSchema(sessionArgument+`,"deviceModel":{"type":"string","enum":[`+quoted(modelIDs())+`]}`, `"deviceModel"`),
		OutputSchema: injectSchema(`"deviceModel":{"type":"string"}`),
	}}
}

func (t setDevice) run(ctx context.Context, c call) (any, error) {
	var args setDeviceArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if _, ok := glasses.Model(args.DeviceModel); !ok {
		return nil, notOneOf("deviceModel", modelIDs())
	}
	out, err := t.inject(ctx, c, args.SessionID, []injection{{
		typ: glasses.SimDevice, payload: glasses.DeviceChoice{DeviceModel: args.DeviceModel}, done: "the glasses are " + args.DeviceModel + " now",
	}}, call1("waitForEvent", `{"type":"display.show"}`, "wait until the app shows its screen again"), call1("getDisplayState", `{}`, "see it on the new panel"))
	if answer, ok := out.(injectAnswer); ok {
		answer.DeviceModel = args.DeviceModel
		return answer, nil
	}
	return out, err
}
