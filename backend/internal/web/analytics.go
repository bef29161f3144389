package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
)

// mountAnalytics adds the analytics page of a project.
func (w *Web) mountAnalytics(mux *http.ServeMux) {
	if w.Analytics == nil || w.Dashboard == nil {
		return
	}
	mux.Handle("GET /account/projects/{id}/analytics", w.withProject(w.analyticsPage))
	mux.Handle("GET /account/projects/{id}/analytics.csv", w.withProject(w.analyticsFile))
}

// analyticsRange is a time range that the user can choose.
type analyticsRange struct {
	Name, Text string
	Href       string
	points     int
	interval   string
	Here       bool
}

var analyticsRanges = []analyticsRange{
	{Name: "24h", Text: "24 hours", points: 24, interval: analytics.Hour},
	{Name: "7d", Text: "7 days", points: 7, interval: analytics.Day},
	{Name: "30d", Text: "30 days", points: 30, interval: analytics.Day},
	{Name: "90d", Text: "90 days", points: 90, interval: analytics.Day},
}

// rangeOf returns the range named by ?range=, or 7 days for an unknown one.
func rangeOf(c *call) analyticsRange {
	for _, one := range analyticsRanges {
		if one.Name == c.URL.Query().Get("range") {
			return one
		}
	}
	return analyticsRanges[1]
}

// rangesAt lists the ranges to choose from, and marks the one that is shown. Their links keep the query parameters in
// more.
func rangesAt(shown analyticsRange, more url.Values) []analyticsRange {
	all := slices.Clone(analyticsRanges)
	for i := range all {
		all[i].Here = all[i].Name == shown.Name
		all[i].Href = "?" + all[i].values(more).Encode()
	}
	return all
}

// values returns the query parameters of the range and more.
func (a analyticsRange) values(more url.Values) url.Values {
	v := url.Values{"range": {a.Name}}
	maps.Copy(v, more)
	return v
}

func (a analyticsRange) query(now time.Time) analytics.Query {
	return analytics.Query{From: now.Add(-time.Duration(a.points-1) * a.length()), To: now, Interval: a.interval}
}

// length returns the duration of one interval.
func (a analyticsRange) length() time.Duration {
	if a.interval == analytics.Hour {
		return time.Hour
	}
	return 24 * time.Hour
}

// Interval is the unit of the sums: hour or day.
func (a analyticsRange) Interval() string { return a.interval }

// analyticsView is the data of the template "analytics".
type analyticsView struct {
	Nav     projectNav
	Ranges  []analyticsRange
	Range   analyticsRange
	From    string
	To      string // "" if the range is not over
	Filter  analyticsFilter
	Reading string
	Empty   bool
	Rough   bool   // some counts are estimates
	Today   string // why the last column is hatched, or ""
	Trends  []trend
	Rates   errorRates
	Ranks   []ranking
	Ingest  string // URL for the app's events
	Day     string // "day" or "hour"
}

func (w *Web) analyticsPage(c *call) error {
	span := rangeOf(c)
	report, filter, err := w.filteredReport(c, span)
	if err != nil {
		return err
	}
	page := analyticsView{
		Nav: c.projectNav("analytics"), Ranges: rangesAt(span, filter.values()), Range: span,
		From: rangeEdge(report.From, report.Interval), Filter: filter,
		Reading: report.Reading, Rough: report.Estimated,
		Empty:  report.Sessions+report.Events+report.Errors == 0,
		Today:  unfinished(report, w.Now()),
		Ingest: w.ingestURL(), Day: report.Interval,
	}
	if page.Today == "" {
		page.To = rangeEdge(report.To, report.Interval)
	}
	if !page.Empty {
		file := page.Nav.Path + "/analytics.csv?" + span.values(filter.values()).Encode()
		page.Trends = trendsOf(report, file, filter, page.Today != "")
		page.Rates, page.Ranks = newErrorRates(report, file, filter), ranksOf(report, file, filter)
	}
	return w.render(c, http.StatusOK, "analytics", page)
}

const ingestPath = "/api/analytics"

func (w *Web) ingestURL() string {
	return cmp.Or(w.IngestURL, strings.TrimSuffix(w.SiteURL, "/")+ingestPath)
}

// unfinished explains why the last hour or day of the charts is hatched. It returns "" if that hour or day is over.
func unfinished(r analytics.Report, now time.Time) string {
	switch {
	case !r.To.After(now):
		return ""
	case r.Interval == analytics.Hour:
		return "Hatched: the current hour, counted until " + clockTime(now) + ". It is not over yet."
	}
	return "Hatched: today, counted until " + clockTime(now) + ". The day is not over yet."
}

// rangeEdge formats the beginning or the end of a range. Ranges consist of hours or days in UTC.
func rangeEdge(t time.Time, interval string) string {
	if interval == analytics.Hour {
		return showTime(t).Text
	}
	return t.UTC().Format("2 Jan 2006")
}

// grouped formats 1234567 as 1,234,567.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
