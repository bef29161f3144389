package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
)

type injectFault struct{ injector }

type injectFaultArgs struct {
	sessionArg
	Command   string   `json:"command" jsonschema:"E.g. camera.photo. Default: any."`
	Code      string   `json:"code"`
	LatencyMs integer  `json:"latencyMs" jsonschema:"0 to 60000."`
	Times     *integer `json:"times" jsonschema:"1 to 1000 commands."`
	Clear     bool     `json:"clear" jsonschema:"Forget all faults first."`
}

func (t injectFault) definition() definition {
	return define(injectTool("injectFault", "Make commands fail"), t.run,
		on("code", oneOf(glasses.CommandCodes()...)),
		on("times", byDefault(1)),
	)
}

func (t injectFault) run(ctx context.Context, c call, args injectFaultArgs) (any, error) {
	fault := glasses.Fault{Command: args.Command, Code: args.Code, LatencyMs: int64(args.LatencyMs),
		Times: int(clamp(args.Times, 1, -1, 1001)), Clear: args.Clear}
	if err := checkControl(glasses.SimFault, fault); err != nil {
		return nil, err
	}
	injected := injection{typ: glasses.SimFault, payload: fault, done: faultWords(fault)}
	return t.inject(ctx, c, args.SessionID, []injection{injected},
		suggest("waitForEvent", `{"chip":"errors","kind":"result"}`, "wait until a command has failed"))
}

func faultWords(f glasses.Fault) string {
	if f.Code == "" && f.LatencyMs == 0 {
		return "all faults are forgotten"
	}
	what := f.Command
	if what == "" {
		what = "command"
	}
	words := fmt.Sprintf("the next %s", what)
	if f.Times > 1 {
		words = fmt.Sprintf("the next %d of %s", f.Times, what)
	}
	if f.Code != "" {
		words += " is answered " + f.Code
	}
	if f.LatencyMs > 0 {
		words += fmt.Sprintf(" %d ms late", f.LatencyMs)
	}
	return words
}
