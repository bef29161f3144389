package web

import (
	"fmt"
	"html/template"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/chart"
	"github.com/service-dev/service/glasses"
)

// trend is a number for each hour or day, shown as a chart and a table.
type trend struct {
	ID, Title, File string
	Sum, Of         string        // the number for the whole range, and its unit
	Picture         template.HTML // "" if every number is 0
	What, Count     string        // headings of the table's columns
	Rows            []trendRow
}

// trendRow is a row of the table. Unfinished marks an hour or day that is not over.
type trendRow struct {
	Label, N   string
	Unfinished bool
}

func trendsOf(r analytics.Report, file string, filter analyticsFilter, unfinished bool) []trend {
	one := func(id, title, unit string, sum int64, draw func(chart.Chart) string, n func(analytics.Point) int64) trend {
		t := overTime(id, title+" by "+r.Interval, unit, r, unfinished, draw, n)
		t.File, t.Sum, t.Of = file, grouped(sum), "in this range"
		return t
	}
	trends := []trend{one("sessions", "Sessions", "Sessions", r.Sessions, chart.Chart.Bars,
		func(p analytics.Point) int64 { return p.Sessions })}
	if !filter.On() {
		installs := one("installs", "Active installs", "Installs", r.PeakActiveInstalls, chart.Chart.Line,
			func(p analytics.Point) int64 { return p.ActiveInstalls })
		installs.Of = "in the busiest " + r.Interval
		trends = append(trends, installs)
	}
	return append(trends, one("errors-time", "Errors", "Errors", r.Errors, chart.Chart.Line,
		func(p analytics.Point) int64 { return p.Errors }))
}

func ranksOf(r analytics.Report, file string, filter analyticsFilter) []ranking {
	ranks := []ranking{
		{ID: "errors", Title: "Errors by kind", What: "Kind", None: "No error was counted.",
			Rows: byName(r.ByError, eventName)},
		{ID: "events", Title: "Events by name", What: "Event", None: "No event was counted.",
			Rows: byName(r.ByEvent, eventName)},
		{ID: "versions", Title: "Versions of the app", What: "Version", None: "No event named its version.",
			About: filter.Versions(), Rows: byName(r.ByVersion, versionName)},
		{ID: "platforms", Title: "Platforms", What: "Platform", None: "No event named its platform.",
			About: filter.Platforms(), Rows: byName(r.ByPlatform, platformName)},
		{ID: "devices", Title: "Glasses", What: "Model", None: "No event named the glasses.",
			Rows: byName(r.ByDevice, modelName)},
	}
	for i := range ranks {
		ranks[i].Count, ranks[i].File = "Count", file+"&list="+ranks[i].ID
	}
	if r.Events > 0 {
		ranks[1].Sum, ranks[1].Of = grouped(r.Events), "in this range"
	}
	return ranks
}

func eventName(name string) string {
	if name == analytics.Other {
		return "All other names"
	}
	return name
}

func versionName(version string) string {
	if version == analytics.Other {
		return "All other versions"
	}
	return version
}

// modelName returns the name of a model of glasses. If the model is unknown, it returns the text that the app sent.
func modelName(id string) string {
	if model, ok := glasses.Model(id); ok {
		return model.Name
	}
	if id == analytics.Other {
		return "All other models"
	}
	return id
}

// timeForms returns the short and the long format of an hour or a day.
func timeForms(interval string) (short, long string) {
	if interval == analytics.Hour {
		return "15:04", "2 Jan, 15:04"
	}
	return "2 Jan", "Mon 2 Jan 2006"
}

// overTime plots a number for each hour or day.
func overTime(id, title, unit string, r analytics.Report, unfinished bool,
	draw func(chart.Chart) string, n func(analytics.Point) int64,
) trend {
	t := trend{ID: id, Title: title, What: capital(r.Interval) + " (UTC)", Count: unit}
	form, long := timeForms(r.Interval)
	picture := chart.Chart{ID: "plot-" + id, Title: title, Unfinished: unfinished}
	most, last := 0, len(r.Series)-1
	for i, p := range r.Series {
		picture.Points = append(picture.Points, chart.Point{Label: p.At.UTC().Format(form), N: n(p)})
		t.Rows = append(t.Rows, trendRow{p.At.UTC().Format(long), grouped(n(p)), unfinished && i == last})
		if n(p) > n(r.Series[most]) {
			most = i
		}
	}
	if last < 0 || n(r.Series[most]) == 0 {
		return t
	}
	top := t.Rows[most]
	picture.Desc = fmt.Sprintf("From %s to %s; the highest is %s on %s.", t.Rows[0].Label, t.Rows[last].Label, top.N,
		top.Label)
	if unfinished {
		picture.Desc += " The last " + r.Interval + " is not over yet."
	}
	picture.Desc += " The table has every number."
	t.Picture = template.HTML(draw(picture)) //nolint:gosec // package chart escapes its input
	return t
}

// byName ranks names by how often they were counted.
func byName(counts []analytics.Count, name func(string) string) []rank {
	most := int64(0)
	for _, c := range counts {
		most = max(most, c.N)
	}
	var rows []rank
	for _, c := range counts {
		rows = append(rows, rank{Label: name(c.Name), N: grouped(c.N), Share: share(float64(c.N), float64(most))})
	}
	return rows
}

// errorRates is a table of errors per 100 sessions, by version.
type errorRates struct {
	Title, File, About string
	Rows               []errorRate
	Incomplete         bool // part of the range was counted before versions were counted in this way
}

// errorRate is a row of the table. Share is the length of its bar in percent of the longest bar.
type errorRate struct {
	Version, Sessions, Errors, Rate string
	Share                           int
	Chosen                          bool
}

func newErrorRates(r analytics.Report, file string, filter analyticsFilter) errorRates {
	rates := errorRates{Title: "Errors per 100 sessions", File: file + "&list=error-rates", About: filter.Versions(),
		Incomplete: r.Unsliced}
	most := 0.0
	for _, use := range r.VersionUse {
		rate, _ := use.ErrorsPer100Sessions()
		most = max(most, rate)
	}
	for _, use := range r.VersionUse {
		row := errorRate{Version: versionName(use.Version), Sessions: grouped(use.Sessions), Errors: grouped(use.Errors),
			Chosen: filter.Version == use.Version}
		if rate, ok := use.ErrorsPer100Sessions(); ok {
			row.Rate, row.Share = rateText(rate), share(rate, most)
		}
		rates.Rows = append(rates.Rows, row)
	}
	return rates
}

// rateText formats a rate. Rates up to 10 have one decimal, so that small rates can be compared.
func rateText(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return grouped(int64(rate + .5))
}
