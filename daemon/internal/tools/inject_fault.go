package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/strictjson"
)

type injectFault struct{ injector }

type injectFaultArgs struct {
	sessionArg
	glasses.Fault
}

func (injectFaultArgs) rules() strictjson.Rules {
	rules := kindRules("fault", `{"command":"camera.photo","code":"busy"}`)
	command := rules["command"] // getCapabilityGuide lists the commands, which are too many to list here
	command.Words, command.What, command.Form = nil, "E.g. camera.photo. Default: any.", "a command such as camera.photo"
	rules["command"] = command
	return rules
}

func (t injectFault) definition() definition {
	return define(injectTool("injectFault", "Make commands fail"), t.run)
}

func (t injectFault) run(ctx context.Context, c call, args injectFaultArgs) (any, error) {
	fault := args.Fault
	if err := checkControl(glasses.SimFault, fault); err != nil {
		return nil, err
	}
	next := suggest("waitForEvent", `{"chip":"errors","kind":"result"}`, "wait until a command has failed")
	if fault.DropApp {
		next = suggest("waitForEvent", `{"type":"app.attached"}`, "wait until the app has reconnected")
	}
	injected := injection{typ: glasses.SimFault, payload: fault, done: faultWords(fault)}
	return t.inject(ctx, c, args.SessionID, []injection{injected}, next)
}

func faultWords(f glasses.Fault) string {
	if f.DropApp {
		return "the app's connection is closed"
	}
	if f.Code == "" && f.LatencyMs == 0 {
		return "all faults are cleared"
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
		words += " fails with " + f.Code
	}
	if f.LatencyMs > 0 {
		words += fmt.Sprintf(" %d ms later", f.LatencyMs)
	}
	return words
}
