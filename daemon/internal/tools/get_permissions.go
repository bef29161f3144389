package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/proto/glasses/guide"
)

const getPermissionsText = `Tells what an app must declare on its platform (iOS, Android, web, desktop) to use glasses, file by file with key, value and reason, ` +
	`which of it only a debug build against a simulator needs, and when and how to ask the person at run time. ` +
	`Pass the capabilities that the app uses to leave out the rest. Use it when you set a project up or add a capability; ` +
	`validateIntegration checks afterwards that nothing is missing. It needs no account and changes nothing. ` +
	`What an app hears when a permission is refused stands in getCapabilityGuide.`

type getPermissions struct{}

type getPermissionsArgs struct {
	Platform     string   `json:"platform"`
	Capabilities []string `json:"capabilities"`
}

type permissionsAnswer struct {
	Platform string              `json:"platform"`
	Declare  []guide.Declaration `json:"declare"`
	Ask      []guide.Ask         `json:"ask"`
	Next     []nextCall          `json:"nextCalls"`
	Summary  string              `json:"summary"`
}

const capabilitiesArgument = `"capabilities":{"type":"array","items":{"type":"string"},"description":"Capabilities that the app uses, as getPlatformInfo lists them. Left out: all."}`

func (t getPermissions) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getPermissions", Title: "Learn what an app must declare", Description: getPermissionsText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`
			"platform":{"type":"string","enum":[`+quoted(guide.Platforms())+`],"description":"What the app is built for."},`+capabilitiesArgument, `"platform"`),
		OutputSchema: outputSchema(`
			"platform":{"type":"string"},
			"declare":{"type":"array","items":{"type":"object","properties":{
				"file":{"type":"string"},"key":{"type":"string"},"value":{"type":"string"},
				"capabilities":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],"description":"null: any app."},
				"when":{"type":"string","enum":["always","simulator","glasses"],"description":"simulator: debug builds only; glasses: real ones only."},"why":{"type":"string"}}}},
			"ask":{"type":"array","items":{"type":"object","properties":{"part":{"type":"string"},"when":{"type":"string"},"refused":{"type":"string"}}}},`+
			nextProperty+`,`+summaryProperty, `"platform","declare","ask","summary"`, false),
	}}
}

func (t getPermissions) run(_ context.Context, c call) (any, error) {
	var args getPermissionsArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if !slices.Contains(guide.Platforms(), args.Platform) {
		return nil, notOneOf("platform", guide.Platforms())
	}
	wanted, err := capabilitiesOf(args.Capabilities)
	if err != nil {
		return nil, err
	}
	answer := permissionsAnswer{
		Platform: args.Platform, Declare: []guide.Declaration{}, Ask: []guide.Ask{},
		Next: []nextCall{call1("getVoiceCommandGuidance", `{}`, "if people speak to the app"), call1("getProductionChecklist", `{"platform":"`+args.Platform+`"}`, "what else to mind before people get the app")},
	}
	for _, d := range guide.Declarations(args.Platform) {
		if len(d.Capabilities) == 0 || slices.ContainsFunc(d.Capabilities, func(id string) bool { return slices.Contains(wanted, id) }) {
			answer.Declare = append(answer.Declare, d)
		}
	}
	for _, ask := range guide.Asks() {
		if slices.ContainsFunc(guide.Capabilities(), func(known guide.Capability) bool { return known.Part == ask.Part && slices.Contains(wanted, known.ID) }) {
			answer.Ask = append(answer.Ask, ask)
		}
	}
	answer.Summary = fmt.Sprintf("%d declarations for %s and %d parts to ask for.", len(answer.Declare), args.Platform, len(answer.Ask))
	return answer, nil
}

// capabilitiesOf checks a list of capabilities; an empty one means all.
func capabilitiesOf(given []string) ([]string, error) {
	if len(given) == 0 {
		return guide.CapabilityIDs(), nil
	}
	for _, id := range given {
		if _, ok := guide.CapabilityOf(id); !ok {
			return nil, notOneOf("capabilities", guide.CapabilityIDs())
		}
	}
	return given, nil
}
