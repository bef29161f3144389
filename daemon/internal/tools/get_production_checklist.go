package tools

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/proto/backendapi"
)

// getProductionChecklist works without an account. With an account it also reports which items are met.
type getProductionChecklist struct {
	records
}

// factsWithin is the maximum wait for the backend, because the checklist is useful without it.
const factsWithin = 5 * time.Second

type getProductionChecklistArgs struct {
	Platform     string   `json:"platform"`
	Capabilities []string `json:"capabilities"`
}

// checkItem is an item of the checklist. Prove is a call that shows whether the item is met. Holds is nil if this is
// unknown.
type checkItem struct {
	ID    string    `json:"id"`
	Area  string    `json:"area"`
	Must  string    `json:"must"`
	Why   string    `json:"why"`
	Holds *bool     `json:"holds,omitempty"`
	Prove *nextCall `json:"prove,omitempty"`
}

// checklistEntry is an item of guides/checklist.json, with the capabilities and the platform to which it applies.
// Without them it applies to every app.
type checklistEntry struct {
	checkItem
	Needs []string `json:"needs"`
	On    string   `json:"on"`
	// Fact is the name of the fact about the project (see gatewayFacts) that determines whether the item is met. It is
	// empty for items that only the app's author can judge.
	Fact string `json:"fact"`
}

type checklistAnswer struct {
	Items []checkItem `json:"items"`
	// CannotPublishYet applies to every app, regardless of the items.
	CannotPublishYet string     `json:"cannotPublishYet" jsonschema:"What this version cannot do."`
	Next             []nextCall `json:"nextCalls"`
	Summary          string     `json:"summary"`
}

func (t getProductionChecklist) definition() definition {
	return define(readOnly("getProductionChecklist", "See what must hold before release",
		answersOf[checklistAnswer](required("items", "cannotPublishYet", "summary"),
			on("items.area", oneOf("robustness", "privacy", "release", "tests")),
			on("items.prove", says("A call that shows whether it is met.")),
			on("items.holds", says("For this directory's project; absent: unknown.")),
		),
	), t.run,
		on("platform", oneOf(guide.Platforms()...)),
		usedCapabilities,
	)
}

func (t getProductionChecklist) run(ctx context.Context, c call, args getProductionChecklistArgs) (any, error) {
	if args.Platform != "" && !slices.Contains(guide.Platforms(), args.Platform) {
		return nil, notOneOf("platform", guide.Platforms())
	}
	wanted, err := capabilitiesOf(args.Capabilities)
	if err != nil {
		return nil, err
	}
	answer := checklistAnswer{
		Items: []checkItem{}, CannotPublishYet: guide.NotInThisVersion,
		Next: []nextCall{suggest("validateIntegration", `{}`, "check the app's files")},
	}
	var facts map[string]bool
	if slices.Contains(wanted, guide.Assistant) {
		facts = t.facts(ctx, c)
	}
	for _, item := range readGuide[[]checklistEntry]("checklist") {
		concerns := len(item.Needs) == 0 || anyOf(item.Needs, wanted)
		if concerns && (item.On == "" || args.Platform == "" || item.On == args.Platform) {
			if holds, known := facts[item.Fact]; known {
				item.Holds = &holds
			}
			answer.Items = append(answer.Items, item.checkItem)
		}
	}
	answer.Summary = fmt.Sprintf("%d items; those with prove name the call that shows whether they are met. "+
		"Cannot be published yet: %s", len(answer.Items), guide.NotInThisVersion)
	return answer, nil
}

// facts returns the facts that the backend reports about the directory's project, or nil without a link or a project.
func (t getProductionChecklist) facts(ctx context.Context, c call) map[string]bool {
	project, err := t.sessions.Project(ctx, "", c.who)
	if err != nil || project == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, factsWithin)
	defer cancel()
	var usage backendapi.GatewayUsage
	_, refused, err := t.gate.attempt(ctx, c, func(ctx context.Context, target backend.Target) (any, error) {
		usage, err = t.source.GatewayUsage(ctx, target, project, backend.UsageQuery{})
		return nil, err
	})
	if refused != nil || err != nil {
		return nil
	}
	return gatewayFacts(usage)
}

// gatewayFacts returns which facts of the checklist are true. Calls need credit only if credit pays for them. KeySource
// is null if the owner hides it from agents.
func gatewayFacts(u backendapi.GatewayUsage) map[string]bool {
	facts := map[string]bool{"day_cap": u.Caps.Day != nil}
	covered := u.Credit.BalanceMicroUSD > 0 && !u.Credit.Locked
	byCredit := u.KeySource == nil || *u.KeySource == "credit"
	for _, m := range u.Models {
		if m.ID == "assistant" {
			facts["paid"] = m.Available && (covered || !byCredit)
		}
	}
	return facts
}
