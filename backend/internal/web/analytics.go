package web

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/chart"
)

// AnalyticsReports reports the usage of a shipped app. The project must belong to the account.
type AnalyticsReports interface {
	Report(ctx context.Context, account, project string, q analytics.Query) (analytics.Report, error)
}

// mountAnalytics adds the analytics page of a project.
func (w *Web) mountAnalytics(mux *http.ServeMux) {
	if w.Analytics == nil || w.Dashboard == nil {
		return
	}
	mux.Handle("GET /account/projects/{id}/analytics", w.withProject(w.analyticsPage))
	mux.Handle("GET /account/projects/{id}/analytics.csv", w.withProject(w.analyticsFile))
}

// analyticsRange is a time range that a person can choose.
type analyticsRange struct {
	Name, Text string
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

// rangesAt lists the ranges to choose from, and marks the one that is shown.
func rangesAt(shown analyticsRange) []analyticsRange {
	all := slices.Clone(analyticsRanges)
	for i := range all {
		all[i].Here = all[i].Name == shown.Name
	}
	return all
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
	From    shownTime
	To      shownTime
	Reading string
	Empty   bool
	Rough   bool // some counts are estimates
	Totals  []analyticsTotal
	Plots   []analyticsPlot
	Ingest  string // URL for the app's events
	Day     string // "day" or "hour"
}

type analyticsTotal struct{ Name, N string }

// analyticsPlot is a chart and the table of its numbers.
type analyticsPlot struct {
	ID, Title, File string
	Picture         template.HTML
	What, Count     string // column heads of the table
	Rows            []chart.Point
	None            string // text shown if there is no picture
}

func (w *Web) analyticsPage(c *call) error {
	span := rangeOf(c)
	report, err := w.Analytics.Report(c.Context(), c.account.ID, c.project.ID, span.query(w.Now()))
	if err != nil {
		return err
	}
	page := analyticsView{
		Nav: c.projectNav("analytics"), Ranges: rangesAt(span), Range: span,
		From: showTime(report.From), To: showTime(report.To),
		Reading: report.Reading, Rough: report.Estimated,
		Empty:  report.Sessions+report.Events+report.Errors == 0,
		Ingest: w.ingestURL(), Day: report.Interval,
		Totals: []analyticsTotal{
			{"Sessions", grouped(report.Sessions)}, {"Events", grouped(report.Events)}, {"Errors", grouped(report.Errors)},
			{"Active installs, busiest day", grouped(report.PeakActiveInstalls)},
		},
	}
	if !page.Empty {
		page.Plots = plotsOf(report, page.Nav.Path+"/analytics.csv?range="+span.Name)
	}
	return w.render(c, http.StatusOK, "analytics", page)
}

const ingestPath = "/api/analytics"

func (w *Web) ingestURL() string {
	return cmp.Or(w.IngestURL, strings.TrimSuffix(w.SiteURL, "/")+ingestPath)
}

func plotsOf(r analytics.Report, file string) []analyticsPlot {
	by := "by " + r.Interval
	plots := []analyticsPlot{
		overTime("sessions", "Sessions "+by, r, chart.Chart.Bars, func(p analytics.Point) int64 { return p.Sessions }),
		overTime("installs", "Active installs "+by, r, chart.Chart.Line,
			func(p analytics.Point) int64 { return p.ActiveInstalls }),
		overTime("errors-time", "Errors "+by, r, chart.Chart.Line, func(p analytics.Point) int64 { return p.Errors }),
	}
	for i := range plots {
		plots[i].File = file
	}
	for _, list := range []struct {
		id, title, what, none string
		counts                []analytics.Count
	}{
		{"errors", "Errors by kind", "Kind", "No error was counted.", r.ByError},
		{"versions", "Versions of the app", "Version", "No event named its version.", r.ByVersion},
		{"events", "Events by name", "Event", "No event was counted.", r.ByEvent},
		{"platforms", "Platforms", "Platform", "No event named its platform.", r.ByPlatform},
		{"devices", "Glasses", "Model", "No event named the glasses.", r.ByDevice},
	} {
		plots = append(plots, byName(list.id, list.title, list.what, list.none, file, list.counts))
	}
	return plots
}

// timeForms are the short and the long form of an hour or a day.
func timeForms(interval string) (short, long string) {
	if interval == analytics.Hour {
		return "15:04", "2 Jan, 15:04"
	}
	return "2 Jan", "Mon 2 Jan 2006"
}

// overTime plots a number for each hour or day.
func overTime(
	id, title string, r analytics.Report, draw func(chart.Chart) string, n func(analytics.Point) int64,
) analyticsPlot {
	plot := analyticsPlot{ID: id, Title: title, What: capital(r.Interval) + " (UTC)", Count: strings.Fields(title)[0]}
	if id == "installs" {
		plot.Count = "Installs"
	}
	form, long := timeForms(r.Interval)
	picture := chart.Chart{ID: "plot-" + id, Title: title}
	most := 0
	for i, p := range r.Series {
		picture.Points = append(picture.Points, chart.Point{Label: p.At.UTC().Format(form), N: n(p)})
		plot.Rows = append(plot.Rows, chart.Point{Label: p.At.UTC().Format(long), N: n(p)})
		if n(p) > n(r.Series[most]) {
			most = i
		}
	}
	top := plot.Rows[most]
	picture.Desc = fmt.Sprintf("From %s to %s; the highest is %s on %s. The table has every number.",
		plot.Rows[0].Label, plot.Rows[len(plot.Rows)-1].Label, grouped(top.N), top.Label)
	plot.Picture = template.HTML(draw(picture)) //nolint:gosec // package chart escapes its input
	return plot
}

// byName plots the frequency of each name.
func byName(id, title, what, none, file string, counts []analytics.Count) analyticsPlot {
	plot := analyticsPlot{ID: id, Title: title, File: file + "&list=" + id, What: what, Count: "Count"}
	for _, c := range counts {
		plot.Rows = append(plot.Rows, chart.Point{Label: c.Name, N: c.N})
	}
	if len(counts) == 0 {
		plot.None, plot.File = none, ""
		return plot
	}
	const drawn = 8
	picture := chart.Chart{ID: "plot-" + id, Title: title, Points: plot.Rows[:min(len(plot.Rows), drawn)]}
	picture.Desc = fmt.Sprintf("The most frequent is %s, %s times. The table has every number.",
		counts[0].Name, grouped(counts[0].N))
	plot.Picture = template.HTML(picture.Ranks()) //nolint:gosec // package chart escapes its input
	return plot
}

// analyticsFile serves the series as CSV, or the counts of one list if ?list= is given.
func (w *Web) analyticsFile(c *call) error {
	span := rangeOf(c)
	report, err := w.Analytics.Report(c.Context(), c.account.ID, c.project.ID, span.query(w.Now()))
	if err != nil {
		return err
	}
	list := c.URL.Query().Get("list")
	counts, ok := map[string][]analytics.Count{
		"events": report.ByEvent, "errors": report.ByError, "versions": report.ByVersion,
		"platforms": report.ByPlatform, "devices": report.ByDevice,
	}[list]
	if !ok && list != "" {
		return errNotFound
	}
	c.rw.Header().Set("Content-Type", "text/csv; charset=utf-8")
	c.rw.Header().Set("Content-Disposition", fmt.Sprintf(
		`attachment; filename="%s-%s-%s.csv"`, c.project.ID, cmp.Or(list, "series"), span.Name))
	out := csv.NewWriter(c.rw)
	row := func(first string, numbers ...int64) {
		cells := []string{first}
		for _, n := range numbers {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		_ = out.Write(cells) // the browser may have disconnected
	}
	if list != "" {
		_ = out.Write([]string{"name", "count"})
		for _, count := range counts {
			row(plainCell(count.Name), count.N)
		}
	} else {
		_ = out.Write([]string{"at", "sessions", "events", "errors", "active_installs"})
		for _, point := range report.Series {
			row(point.At.UTC().Format(time.RFC3339), point.Sessions, point.Events, point.Errors, point.ActiveInstalls)
		}
	}
	out.Flush()
	return nil
}

// plainCell keeps a spreadsheet from interpreting a name sent by an app as a formula.
func plainCell(s string) string {
	if s != "" && strings.ContainsAny(s[:1], "=+-@") {
		return "'" + s
	}
	return s
}

// grouped formats 1234567 as 1,234,567.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
