package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/proto/glasses/guide"
)

type getProductionChecklist struct{}

type getProductionChecklistArgs struct {
	Platform     string   `json:"platform"`
	Capabilities []string `json:"capabilities"`
}

// checkItem is an item of the checklist; Prove is a call that shows whether it holds.
type checkItem struct {
	ID    string    `json:"id"`
	Area  string    `json:"area"`
	Must  string    `json:"must"`
	Why   string    `json:"why"`
	Prove *nextCall `json:"prove,omitempty"`
}

// checklistEntry is an item of guides/checklist.json with the capabilities and the platform that it applies to; without
// them it applies to every app.
type checklistEntry struct {
	checkItem
	Needs []string `json:"needs"`
	On    string   `json:"on"`
}

type checklistAnswer struct {
	Items []checkItem `json:"items"`
	// CannotPublishYet is true of every app, whatever the items say.
	CannotPublishYet string     `json:"cannotPublishYet" jsonschema:"What is not in this version."`
	Next             []nextCall `json:"nextCalls"`
	Summary          string     `json:"summary"`
}

func (t getProductionChecklist) definition() definition {
	return define(readOnly("getProductionChecklist", "See what must hold before release",
		answersOf[checklistAnswer](required("items", "cannotPublishYet", "summary"),
			on("items.area", oneOf("robustness", "privacy", "release", "tests")),
			on("items.prove", says("A call that proves it.")),
		),
	), t.run,
		on("platform", oneOf(guide.Platforms()...)),
		usedCapabilities,
	)
}

func (t getProductionChecklist) run(_ context.Context, c call, args getProductionChecklistArgs) (any, error) {
	if args.Platform != "" && !slices.Contains(guide.Platforms(), args.Platform) {
		return nil, notOneOf("platform", guide.Platforms())
	}
	wanted, err := capabilitiesOf(args.Capabilities)
	if err != nil {
		return nil, err
	}
	answer := checklistAnswer{
		Items: []checkItem{}, CannotPublishYet: guide.NotInThisVersion,
		Next: []nextCall{suggest("validateIntegration", `{}`, "let the app's files be checked")},
	}
	for _, item := range readGuide[[]checklistEntry]("checklist") {
		concerns := len(item.Needs) == 0 || anyOf(item.Needs, wanted)
		if concerns && (item.On == "" || args.Platform == "" || item.On == args.Platform) {
			answer.Items = append(answer.Items, item.checkItem)
		}
	}
	answer.Summary = fmt.Sprintf("%d items; those with prove name the call that shows whether they hold. "+
		"Cannot be published yet: %s", len(answer.Items), guide.NotInThisVersion)
	return answer, nil
}
