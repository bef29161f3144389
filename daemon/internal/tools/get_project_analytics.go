package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
)

const getProjectAnalyticsText = `Reads what the shipped app did in the hands of its users: sessions, events, errors by kind, active installs, versions, platforms and glasses, ` +
	`with a series by hour or day and a short reading in words. These are the numbers of the dashboard. Use it to answer how an app is doing, what broke with a release, ` +
	`or which errors to look into first. Nobody is identified: installs are counted by a hash that changes every day. ` +
	`It is about apps in production; what happened in a simulator is in getEventLog, and listProjects tells which projects there are. ` +
	`When estimated is true some counts are scaled up from a sample: say so. Answers permission_denied when the account's owner has set the grant to Off. ` +
	`Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type analyticsReader interface {
	Analytics(ctx context.Context, target backend.Target, project string, query backend.AnalyticsQuery) (backend.AnalyticsReport, error)
}

type getProjectAnalytics struct {
	records
	source analyticsReader
}

type getProjectAnalyticsArgs struct {
	Project     string `json:"project"`
	Range       string `json:"range"`
	From        string `json:"from"`
	To          string `json:"to"`
	Interval    string `json:"interval"`
	OpenBrowser *bool  `json:"openBrowser"`
}

type analyticsAnswer struct {
	Status string `json:"status"`
	backend.AnalyticsReport
	Summary string `json:"summary"`
}

// analyticsRanges are the spans up to now; the second is the default.
var analyticsRanges = []string{"24h", "7d", "30d", "90d"}

var analyticsIntervals = []string{"hour", "day"}

const countsSchema = `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}}},"description":"The most frequent first."}`

const countProperties = `"sessions":{"type":"integer"},"events":{"type":"integer"},"errors":{"type":"integer"}`

func (t getProjectAnalytics) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getProjectAnalytics", Title: "Read a shipped app's analytics", Description: getProjectAnalyticsText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true, OpenWorld: true},
		InputSchema: inputSchema(projectArgument+`,
			"range":{"type":"string","enum":[`+quoted(analyticsRanges)+`],"default":"7d","description":"Up to now. Not together with from and to."},
			"from":{"type":"string","description":"A time such as 2026-01-02T00:00:00Z, or a date; with to. At most 90 days."},
			"to":{"type":"string","description":"The same; it is not counted itself."},
			"interval":{"type":"string","enum":[`+quoted(analyticsIntervals)+`],"description":"Of the series. Left out: hours for up to two days, else days."},`+recordLinkArgument, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"project":{"type":"string"},
			"from":{"type":"string","format":"date-time"},"to":{"type":"string","format":"date-time"},
			"interval":{"type":"string"},
			"totals":{"type":"object","properties":{`+countProperties+`,
				"peakActiveInstalls":{"type":"integer","description":"The most active installs of one day."}}},
			"series":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string","format":"date-time"},`+countProperties+`,"activeInstalls":{"type":"integer"}}}},
			"events":`+countsSchema+`,"errors":`+countsSchema+`,"versions":`+countsSchema+`,"platforms":`+countsSchema+`,"devices":`+countsSchema+`,
			"estimated":{"type":"boolean","description":"Whether counts are scaled up from a sample, because a day's quota was used up."},
			"approximate":{"type":"array","items":{"type":"string"},"description":"The fields that are not exact."},
			"reading":{"type":"string","description":"What stands out, in words."},`+summaryProperty+","+recordErrorProperties, `"status","summary"`, true),
	}}
}

func (t getProjectAnalytics) run(ctx context.Context, c call) (any, error) {
	var args getProjectAnalyticsArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	query, err := args.query()
	if err != nil {
		return nil, err
	}
	return t.records.run(ctx, c, recordCall{project: args.Project, openBrowser: args.OpenBrowser}, func(ctx context.Context, target backend.Target, project string) (any, error) {
		r, err := t.source.Analytics(ctx, target, project, query)
		if err != nil {
			return nil, err
		}
		return analyticsAnswer{Status: "ok", AnalyticsReport: tidyReport(r), Summary: describeReport(r)}, nil
	})
}

// query checks what is asked for, so that a mistake costs no link.
func (a getProjectAnalyticsArgs) query() (backend.AnalyticsQuery, error) {
	q := backend.AnalyticsQuery{Range: a.Range, Interval: a.Interval}
	bad := func(message, hint string) (backend.AnalyticsQuery, error) {
		return backend.AnalyticsQuery{}, &Error{Code: CodeInvalidArguments, Message: message, FixHint: hint}
	}
	if a.Interval != "" && !slices.Contains(analyticsIntervals, a.Interval) {
		return bad("interval is not one of "+strings.Join(analyticsIntervals, ", "), "pass one of them, or leave it out")
	}
	if a.From == "" && a.To == "" {
		if q.Range == "" {
			q.Range = analyticsRanges[1]
		}
		if !slices.Contains(analyticsRanges, q.Range) {
			return bad("range is not one of "+strings.Join(analyticsRanges, ", "), "pass one of them, or from and to")
		}
		return q, nil
	}
	if a.Range != "" {
		return bad("range is given together with from or to", "pass range, or from and to")
	}
	from, fromOK := parseMoment(a.From)
	to, toOK := parseMoment(a.To)
	if !fromOK || !toOK {
		return bad("from and to are not both times", `pass both like "2026-01-02T00:00:00Z" or "2026-01-02", or pass range`)
	}
	if !from.Before(to) {
		return bad("from is not before to", "pass the earlier time as from")
	}
	q.From, q.To = from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)
	return q, nil
}

// parseMoment reads a time, or a date as its beginning in UTC.
func parseMoment(s string) (time.Time, bool) {
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

func tidyReport(r backend.AnalyticsReport) backend.AnalyticsReport {
	r.Series, r.Approximate = orEmpty(r.Series), orEmpty(r.Approximate)
	for _, counts := range []*[]backend.AnalyticsCount{&r.Events, &r.Errors, &r.Versions, &r.Platforms, &r.Devices} {
		*counts = orEmpty(*counts)
	}
	return r
}

func describeReport(r backend.AnalyticsReport) string {
	words := fmt.Sprintf("%s from %s to %s: %d sessions, %d events, %d errors, at most %d active installs in a day.",
		r.Project, r.From, r.To, r.Totals.Sessions, r.Totals.Events, r.Totals.Errors, r.Totals.PeakActiveInstalls)
	if r.Reading != "" {
		words += " " + r.Reading
	}
	if r.Estimated {
		words += " Some of the counts are estimates, scaled up from a sample."
	}
	return words
}
