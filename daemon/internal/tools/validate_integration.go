package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/scaffold"
)

const validateIntegrationText = `Judges a project folder: generated files that were changed, placeholders and secrets where values belong, a project key that is not ignored, ` +
	`commands of capabilities that were not generated, permissions that a platform's manifest lacks, phrases that wake an assistant or sound alike, ` +
	`a simulator in production settings. Each finding has a severity, a code, the place and a fix; verdict ready means no error is left. ` +
	`Use it after generating, after changes, and before people get the app. It changes nothing and needs no account. ` +
	`It reads files and runs nothing: that the app works is shown by startLocalSimulation and expectDisplay. For what is there without a verdict: inspectIntegration.`

type validateIntegration struct{}

type validationAnswer struct {
	Verdict  string             `json:"verdict"`
	Dir      string             `json:"dir"`
	Findings []scaffold.Finding `json:"findings"`
	Errors   int                `json:"errors"`
	Warnings int                `json:"warnings"`
	Next     []nextCall         `json:"nextCalls"`
	Summary  string             `json:"summary"`
}

// maxFindings bounds an answer; the gravest come first.
const maxFindings = 100

func (t validateIntegration) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "validateIntegration", Title: "Check a project", Description: validateIntegrationText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(dirProperty, ""),
		OutputSchema: outputSchema(`
			"verdict":{"type":"string","enum":["ready","needs_work","not_integrated"]},
			"dir":{"type":"string"},
			"findings":{"type":"array","items":{"type":"object","properties":{
				"severity":{"type":"string","enum":["error","warning","info"]},"code":{"type":"string"},"file":{"type":"string"},
				"line":{"type":"integer","description":"0: the whole file."},"message":{"type":"string"},"fixHint":{"type":"string"}}},"description":"The gravest first, 100 at most."},
			"errors":{"type":"integer"},"warnings":{"type":"integer"},`+
			nextProperty+`,`+summaryProperty, `"verdict","dir","findings","summary"`, false),
	}}
}

func (t validateIntegration) run(ctx context.Context, c call) (any, error) {
	in, err := inspect(ctx, c)
	if err != nil {
		return nil, err
	}
	verdict, findings := scaffold.Validate(in)
	a := validationAnswer{Verdict: verdict, Dir: in.Root, Findings: orEmpty(findings)}
	for _, f := range findings {
		switch f.Severity {
		case scaffold.SeverityError:
			a.Errors++
		case scaffold.SeverityWarning:
			a.Warnings++
		}
	}
	a.Findings = a.Findings[:min(len(a.Findings), maxFindings)]
	again := call1("validateIntegration", arguments(map[string]any{"dir": in.Root}), "check again after the fixes")
	switch verdict {
	case scaffold.VerdictReady:
		a.Next = []nextCall{call1("startLocalSimulation", `{}`, "see that the app works"), call1("getProductionChecklist", `{}`, "what files cannot tell")}
		a.Summary = fmt.Sprintf("%s is ready: no errors, %d warnings.", in.Root, a.Warnings)
	case scaffold.VerdictNotIntegrated:
		a.Next = []nextCall{call1("getPlatformInfo", `{}`, "the way from nothing to an app that works")}
		a.Summary = in.Root + " holds nothing of an app for glasses yet."
	default:
		a.Next = []nextCall{again}
		a.Summary = fmt.Sprintf("%s needs work: %d errors, %d warnings. First: %s (%s).", in.Root, a.Errors, a.Warnings, a.Findings[0].Message, a.Findings[0].FixHint)
	}
	return a, nil
}
