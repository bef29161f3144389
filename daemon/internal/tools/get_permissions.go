package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/glasses/guide"
)

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

var usedCapabilities = on("capabilities",
	says("Those that the app uses. Default: all."))

func (t getPermissions) definition() definition {
	return define(readOnly("getPermissions", "Learn what an app must declare",
		answersOf[permissionsAnswer](required("platform", "declare", "ask", "summary"),
			on("declare.capabilities", nullable, says("null: any app.")),
			on("declare.when", oneOf("always", "simulator", "glasses"), says("simulator: debug builds only; glasses: real "+
				"ones only.")),
		),
	), t.run,
		required("platform"),
		on("platform", oneOf(guide.Platforms()...)),
		usedCapabilities,
	)
}

func (t getPermissions) run(_ context.Context, c call, args getPermissionsArgs) (any, error) {
	if !slices.Contains(guide.Platforms(), args.Platform) {
		return nil, notOneOf("platform", guide.Platforms())
	}
	wanted, err := capabilitiesOf(args.Capabilities)
	if err != nil {
		return nil, err
	}
	answer := permissionsAnswer{
		Platform: args.Platform, Declare: []guide.Declaration{}, Ask: []guide.Ask{},
		Next: []nextCall{suggest("getVoiceCommandGuidance", `{}`, "if people speak to the app"),
			suggest("getProductionChecklist", `{"platform":"`+args.Platform+`"}`,
				"see what else to check before release")},
	}
	for _, d := range guide.Declarations(args.Platform) {
		if len(d.Capabilities) == 0 || anyOf(d.Capabilities, wanted) {
			answer.Declare = append(answer.Declare, d)
		}
	}
	for _, ask := range guide.Asks() {
		if slices.ContainsFunc(guide.Capabilities(), func(known guide.Capability) bool {
			return known.Part == ask.Part && slices.Contains(wanted, known.ID)
		}) {
			answer.Ask = append(answer.Ask, ask)
		}
	}
	answer.Summary = fmt.Sprintf("%d declarations for %s and %d parts to ask for.", len(answer.Declare), args.Platform,
		len(answer.Ask))
	return answer, nil
}

// anyOf reports whether wanted contains one of ids.
func anyOf(ids, wanted []string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(wanted, id) })
}

// capabilitiesOf returns given, or all capabilities if given is empty.
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
