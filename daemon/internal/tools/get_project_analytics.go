package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

type getProjectAnalytics struct {
	records
}

type getProjectAnalyticsArgs struct {
	recordArgs
	Range    string `json:"range" jsonschema:"Up to now."`
	From     string `json:"from" jsonschema:"A date or RFC 3339 time, with to instead of range."`
	To       string `json:"to" jsonschema:"Exclusive; at most 90 days later."`
	Interval string `json:"interval"`
}

type analyticsAnswer struct {
	Status string `json:"status"`
	backendapi.AnalyticsReport
	Summary string `json:"summary"`
}

// analyticsRanges lists the periods, which end now. The second is the default.
var analyticsRanges = []string{"24h", "7d", "30d", "90d"}

var analyticsIntervals = []string{"hour", "day"}

func (t getProjectAnalytics) definition() definition {
	return define(Tool{
		Name: "getProjectAnalytics", Title: "Read a shipped app's analytics",
		NeedsAccount: true,
		Annotations:  Annotations{ReadOnly: true, Idempotent: true, OpenWorld: true},
		OutputSchema: gatedAnswersOf[analyticsAnswer]([]string{"ok"},
			onEach(format("date-time"), "from", "to", "series.at"),
			on("totals.peakActiveInstalls", says("The most active installs of one day.")),
			onEach(says("Most frequent first."), "events", "errors", "versions", "platforms", "devices"),
			on("estimated", says("Whether counts are scaled up from a sample, because a day's quota was used up.")),
			on("approximate", says("Fields with approximate values.")),
			on("reading", says("Notable findings, in words.")),
			recordErrors,
		),
	}, t.run,
		on("range", oneOf(analyticsRanges...), byDefault(analyticsRanges[1])),
		on("interval", oneOf(analyticsIntervals...)),
	)
}

func (t getProjectAnalytics) run(ctx context.Context, c call, args getProjectAnalyticsArgs) (any, error) {
	query, err := args.query()
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, target backend.Target, project string) (backendapi.AnalyticsReport, error) {
		return t.source.Analytics(ctx, target, project, query)
	}
	return onRecord(ctx, t.records, c, recordCall{recordArgs: args.recordArgs}, read,
		func(r backendapi.AnalyticsReport) any {
			return analyticsAnswer{"ok", tidyReport(r), describeReport(r)}
		})
}

// query checks the arguments. It runs before the user is asked for a link.
func (a getProjectAnalyticsArgs) query() (backend.AnalyticsQuery, error) {
	q := backend.AnalyticsQuery{Range: a.Range, Interval: a.Interval}
	bad := func(message, hint string) (backend.AnalyticsQuery, error) {
		return backend.AnalyticsQuery{}, invalid(message, hint)
	}
	if a.Interval != "" && !slices.Contains(analyticsIntervals, a.Interval) {
		return bad("interval is not one of "+strings.Join(analyticsIntervals, ", "), "Pass one of them, or leave it out.")
	}
	if a.From == "" && a.To == "" {
		if q.Range == "" {
			q.Range = analyticsRanges[1]
		}
		if !slices.Contains(analyticsRanges, q.Range) {
			return bad("range is not one of "+strings.Join(analyticsRanges, ", "), "Pass one of them, or from and to.")
		}
		return q, nil
	}
	if a.Range != "" {
		return bad("range cannot be combined with from or to", "Pass range, or from and to.")
	}
	from, fromOK := parseTime(a.From)
	to, toOK := parseTime(a.To)
	if !fromOK || !toOK {
		return bad("from and to must both be times", `Pass both like "2026-01-02T00:00:00Z" or "2026-01-02", or pass range.`)
	}
	if !from.Before(to) {
		return bad("from must be before to", "Pass the earlier time as from.")
	}
	q.From, q.To = from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)
	return q, nil
}

// parseTime parses a time. A date without a time means the beginning of that day in UTC.
func parseTime(s string) (time.Time, bool) {
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(form, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

func tidyReport(r backendapi.AnalyticsReport) backendapi.AnalyticsReport {
	r.Series, r.Approximate = orEmpty(r.Series), orEmpty(r.Approximate)
	for _, counts := range []*[]backendapi.AnalyticsCount{&r.Events, &r.Errors, &r.Versions, &r.Platforms, &r.Devices} {
		*counts = orEmpty(*counts)
	}
	return r
}

func describeReport(r backendapi.AnalyticsReport) string {
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
