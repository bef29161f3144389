package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/scaffold"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
)

type validateIntegration struct{ sessions Sessions }

type validationAnswer struct {
	Verdict  string             `json:"verdict"`
	Dir      string             `json:"dir"`
	Findings []scaffold.Finding `json:"findings" jsonschema:"Most severe first, at most 100."`
	Errors   int                `json:"errors"`
	Warnings int                `json:"warnings"`
	// NotChecked lists what a verdict of ready does not cover.
	NotChecked       []string   `json:"notChecked" jsonschema:"Aspects that the verdict does not cover."`
	CannotPublishYet string     `json:"cannotPublishYet" jsonschema:"What this version cannot do."`
	Next             []nextCall `json:"nextCalls"`
	Summary          string     `json:"summary"`
}

// maxFindings is the maximum number of findings in an answer. The most severe come first.
const maxFindings = 100

// maxUnknown is the maximum number of phrases listed in notChecked. findings lists all of them.
const maxUnknown = 10

func (t validateIntegration) definition() definition {
	return define(readOnly("validateIntegration", "Check a project",
		answersOf[validationAnswer](required("verdict", "dir", "findings", "notChecked", "cannotPublishYet", "summary"),
			on("verdict", oneOf("ready", "incomplete", "needs_work", "not_integrated"),
				says("ready: no error in what was checked. incomplete: the same, but see notChecked.")),
			on("findings.severity", oneOf("error", "warning", "info")),
			on("findings.line", says("0: the whole file.")),
		),
	), t.run,
	)
}

func (t validateIntegration) run(ctx context.Context, c call, args integrationArgs) (any, error) {
	in, err := inspect(ctx, c, args.Dir)
	if err != nil {
		return nil, err
	}
	verdict, findings := scaffold.Validate(in)
	if verdict != scaffold.VerdictNotIntegrated {
		findings = append(findings, t.misfits(ctx, c.who, in)...)
		slices.SortStableFunc(findings, func(a, b scaffold.Finding) int {
			return severityOrder(a.Severity) - severityOrder(b.Severity)
		})
	}
	a := validationAnswer{Verdict: verdict, Dir: in.Root, Findings: orEmpty(findings), NotChecked: notChecked(in),
		CannotPublishYet: guide.NotInThisVersion}
	for _, f := range findings {
		switch f.Severity {
		case scaffold.SeverityError:
			a.Errors++
		case scaffold.SeverityWarning:
			a.Warnings++
		}
	}
	a.Findings = a.Findings[:min(len(a.Findings), maxFindings)]
	again := suggest("validateIntegration", arguments(map[string]any{"dir": in.Root}), "check again after the fixes")
	switch verdict {
	case scaffold.VerdictReady:
		a.Next = []nextCall{suggest("startLocalSimulation", `{}`, "check that the app works"),
			suggest("getProductionChecklist", `{}`, "check what files cannot show")}
		a.Summary = fmt.Sprintf("The files of %s are ready: no errors, %d warnings.", in.Root, a.Warnings)
	case scaffold.VerdictIncomplete:
		a.Next = []nextCall{again}
		a.Summary = fmt.Sprintf("%s: no errors, but not everything could be checked: %s.", in.Root, a.NotChecked[0])
	case scaffold.VerdictNotIntegrated:
		a.Next = []nextCall{suggest("getPlatformInfo", `{}`, "learn how to build a working app")}
		a.Summary = in.Root + " contains no app for glasses yet."
	default:
		a.Next = []nextCall{again}
		a.Summary = fmt.Sprintf("%s needs work: %d errors, %d warnings. First: %s. %s", in.Root, a.Errors, a.Warnings,
			a.Findings[0].Message, a.Findings[0].FixHint)
	}
	a.Summary += " Cannot be published yet: " + guide.NotInThisVersion
	return a, nil
}

// notChecked lists what a verdict does not cover, starting with files that could not be read.
func notChecked(in scaffold.Inspection) []string {
	var list []string
	if in.Truncated {
		list = append(list, "files beyond the limits for reading")
	}
	for _, u := range in.UnknownPhrases[:min(len(in.UnknownPhrases), maxUnknown)] {
		list = append(list, fmt.Sprintf("the phrases that %s:%d announces (%s)", u.File, u.Line, u.Name))
	}
	return append(list, "whether the app builds, runs and shows the right content (startLocalSimulation, expectDisplay)",
		"how it behaves on real glasses")
}

// misfitFinding is the code of a finding about content that the app showed.
const misfitFinding = "display_misfit"

// severityOrder sorts the most severe findings first.
func severityOrder(severity string) int {
	return slices.Index([]string{scaffold.SeverityError, scaffold.SeverityWarning, scaffold.SeverityInfo}, severity)
}

// misfits returns findings about content that the app showed in a local session and that does not fit the glasses.
// Files cannot reveal such content. The session is the one most recently used from the inspected directory or, if there
// is none, from the caller's directory. It must belong to the same project. misfits reads the last rows of the
// session's log.
func (t validateIntegration) misfits(
	ctx context.Context, who caller.Caller, in scaffold.Inspection,
) []scaffold.Finding {
	inspected := who
	inspected.Cwd = in.Root
	for _, from := range []caller.Caller{inspected, who} {
		id, ok := t.sessions.Latest(ctx, from)
		if !ok || !session.IsLocal(id) {
			continue
		}
		s, err := t.sessions.Get(ctx, backend.Target{}, id)
		if err == nil && (in.Project == "" || s.Project == in.Project) {
			return t.misfitsOf(ctx, s)
		}
	}
	return nil
}

func (t validateIntegration) misfitsOf(ctx context.Context, s backend.Session) []scaffold.Finding {
	since := max(s.LastSeq-session.MaxLimit, 0)
	page, err := t.sessions.Since(ctx, backend.Target{}, s.SessionID, since, session.MaxLimit)
	if err != nil {
		return nil
	}
	var rows []glasses.Event
	for _, raw := range page.Events {
		var row glasses.Event
		if json.Unmarshal(raw, &row) == nil {
			rows = append(rows, row)
		}
	}
	var list []scaffold.Finding
	for _, f := range lastFindings(rows, s.DeviceModel) {
		list = append(list, scaffold.Finding{Severity: scaffold.SeverityWarning, Code: misfitFinding,
			Message: fmt.Sprintf("in session %s on %s, %s", s.SessionID, f.DeviceModel, f.Message()),
			FixHint: `Look at it with getDisplayState {"models":["all"]}; shorten it, or set overflow to scroll or paginate.`})
	}
	return list
}
