package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
)

const injectFaultText = `Makes the next commands of the app fail with a typed error, or be answered late, in a session's glasses. ` +
	`Use it to see that the app handles each error of getCapabilityGuide. With code the next times commands of type command get that error; with latencyMs alone ` +
	`they are late; without command any command counts; clear forgets all faults. A timeout is answered after 10 seconds of the session's clock. ` +
	`For errors that come from a state of the glasses (permission, hinge, heat, link, call) rather use injectSensor, which also tells the app by an event. ` +
	`See what the app did with getEventLog (chip errors) or waitForEvent.`

type injectFault struct{ injector }

type injectFaultArgs struct {
	SessionID string   `json:"sessionId"`
	Command   string   `json:"command"`
	Code      string   `json:"code"`
	LatencyMs integer  `json:"latencyMs"`
	Times     *integer `json:"times"`
	Clear     bool     `json:"clear"`
}

func (t injectFault) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "injectFault", Title: "Make commands fail", Description: injectFaultText,
		InputSchema: inputSchema(sessionArgument+`,
			"command":{"type":"string","enum":[`+quoted(commandTypes())+`],"description":"Left out: any command."},
			"code":{"type":"string","enum":[`+quoted(glasses.CommandCodes())+`],"description":"What answers it."},
			"latencyMs":{"type":"integer","description":"How late the answer is, 0 to 60000."},
			"times":{"type":"integer","default":1,"description":"How many commands, 1 to 1000."},
			"clear":{"type":"boolean","default":false,"description":"Forget all faults first."}`, ""),
		OutputSchema: injectSchema(""),
	}}
}

func commandTypes() []string {
	var types []string
	for _, c := range glasses.Commands() {
		types = append(types, c.Type)
	}
	return types
}

func (t injectFault) run(ctx context.Context, c call) (any, error) {
	var args injectFaultArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	fault := glasses.Fault{Command: args.Command, Code: args.Code, LatencyMs: int64(args.LatencyMs), Times: int(clamp(args.Times, 1, -1, 1001)), Clear: args.Clear}
	if err := checkControl(glasses.SimFault, fault); err != nil {
		return nil, err
	}
	return t.inject(ctx, c, args.SessionID, []injection{{typ: glasses.SimFault, payload: fault, done: faultWords(fault)}},
		call1("waitForEvent", `{"chip":"errors","kind":"result"}`, "wait until a command has failed"))
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
