package web

import (
	"fmt"
	"html/template"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/chart"
	"github.com/service-dev/service/proto/glasses"
)

// analyticsPlot is a chart and the table of its numbers.
type analyticsPlot struct {
	ID, Title, File string
	About           string // what the chart compares, if that is not everything that the page shows
	Picture         template.HTML
	What, Count     string // column heads of the table
	Rows            []plotRow
	None            string // text shown if there is no picture
	Series          bool   // whether it shows hours or days
}

// plotRow is a row of the table. Unfinished marks an hour or day that is not over.
type plotRow struct {
	Label, N   string
	Unfinished bool
}

func plotsOf(r analytics.Report, file string, filter analyticsFilter, unfinished bool) []analyticsPlot {
	by := "by " + r.Interval
	series := func(id, title, unit string, draw func(chart.Chart) string, n func(analytics.Point) int64) analyticsPlot {
		plot := overTime(id, title+" "+by, unit, r, unfinished, draw, n)
		plot.File = file
		return plot
	}
	plots := []analyticsPlot{
		series("sessions", "Sessions", "Sessions", chart.Chart.Bars, func(p analytics.Point) int64 { return p.Sessions })}
	if !filter.On() {
		plots = append(plots, series("installs", "Active installs", "Installs", chart.Chart.Line,
			func(p analytics.Point) int64 { return p.ActiveInstalls }))
	}
	plots = append(plots, series("errors-time", "Errors", "Errors", chart.Chart.Line,
		func(p analytics.Point) int64 { return p.Errors }))
	for _, list := range []struct {
		id, title, about, what, none string
		counts                       []analytics.Count
		name                         func(string) string
	}{
		{"errors", "Errors by kind", "", "Kind", "No error was counted.", r.ByError, eventName},
		{"versions", "Versions of the app", filter.Versions(), "Version", "No event named its version.", r.ByVersion,
			versionName},
		{"events", "Events by name", "", "Event", "No event was counted.", r.ByEvent, eventName},
		{"platforms", "Platforms", filter.Platforms(), "Platform", "No event named its platform.", r.ByPlatform,
			platformName},
		{"devices", "Glasses", "", "Model", "No event named the glasses.", r.ByDevice, modelName},
	} {
		plot := byName(list.id, list.title, list.what, list.none, list.counts, list.name)
		if plot.None == "" {
			plot.File, plot.About = file+"&list="+list.id, list.about
		}
		plots = append(plots, plot)
	}
	return plots
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

// modelName returns the name of a model of glasses, and what the app sent if the model is unknown.
func modelName(id string) string {
	if model, ok := glasses.Model(id); ok {
		return model.Name
	}
	if id == analytics.Other {
		return "All other models"
	}
	return id
}

// timeForms are the short and the long form of an hour or a day.
func timeForms(interval string) (short, long string) {
	if interval == analytics.Hour {
		return "15:04", "2 Jan, 15:04"
	}
	return "2 Jan", "Mon 2 Jan 2006"
}

// overTime plots a number for each hour or day.
func overTime(id, title, unit string, r analytics.Report, unfinished bool,
	draw func(chart.Chart) string, n func(analytics.Point) int64,
) analyticsPlot {
	plot := analyticsPlot{ID: id, Title: title, What: capital(r.Interval) + " (UTC)", Count: unit, Series: true}
	form, long := timeForms(r.Interval)
	picture := chart.Chart{ID: "plot-" + id, Title: title, Unfinished: unfinished}
	most, last := 0, len(r.Series)-1
	for i, p := range r.Series {
		picture.Points = append(picture.Points, chart.Point{Label: p.At.UTC().Format(form), N: n(p)})
		plot.Rows = append(plot.Rows, plotRow{p.At.UTC().Format(long), grouped(n(p)), unfinished && i == last})
		if n(p) > n(r.Series[most]) {
			most = i
		}
	}
	top := plot.Rows[most]
	picture.Desc = fmt.Sprintf("From %s to %s; the highest is %s on %s.", plot.Rows[0].Label, plot.Rows[last].Label,
		top.N, top.Label)
	if unfinished {
		picture.Desc += " The last " + r.Interval + " is not over yet."
	}
	picture.Desc += " The table has every number."
	plot.Picture = template.HTML(draw(picture)) //nolint:gosec // package chart escapes its input
	return plot
}

// byName plots the frequency of each name.
func byName(id, title, what, none string, counts []analytics.Count, name func(string) string) analyticsPlot {
	plot := analyticsPlot{ID: id, Title: title, What: what, Count: "Count"}
	if len(counts) == 0 {
		plot.None = none
		return plot
	}
	picture := chart.Chart{ID: "plot-" + id, Title: title}
	const drawn = 8
	for i, c := range counts {
		if i < drawn {
			picture.Points = append(picture.Points, chart.Point{Label: name(c.Name), N: c.N})
		}
		plot.Rows = append(plot.Rows, plotRow{Label: name(c.Name), N: grouped(c.N)})
	}
	picture.Desc = fmt.Sprintf("The most frequent is %s, %s times. The table has every number.",
		plot.Rows[0].Label, plot.Rows[0].N)
	plot.Picture = template.HTML(picture.Ranks()) //nolint:gosec // package chart escapes its input
	return plot
}

// errorRates is a table of errors per 100 sessions, by version.
type errorRates struct {
	Title, File, About string
	Rows               []errorRate
	Incomplete         bool // part of the range was counted before versions were counted in this way
}

// errorRate is a row of the table. Share is the length of its bar in percent of the longest.
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
			row.Rate = rateText(rate)
			if most > 0 {
				row.Share = int(rate / most * 100)
			}
		}
		rates.Rows = append(rates.Rows, row)
	}
	return rates
}

// rateText has one decimal up to 10, so that small rates can be compared.
func rateText(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return grouped(int64(rate + .5))
}
