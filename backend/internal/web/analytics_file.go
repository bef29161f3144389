package web

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
)

// analyticsFile serves the series as CSV, or the list named by ?list=.
func (w *Web) analyticsFile(c *call) error {
	span := rangeOf(c)
	report, filter, err := w.filteredReport(c, span)
	if err != nil {
		return err
	}
	list := c.URL.Query().Get("list")
	rows := analyticsRows(report, list, filter.On())
	if rows == nil || filter.Refused { // unlike a page, a file cannot show that it is not filtered
		return errNotFound
	}
	c.rw.Header().Set("Content-Type", "text/csv; charset=utf-8")
	c.rw.Header().Set("Content-Disposition", fmt.Sprintf(
		`attachment; filename="%s-%s-%s.csv"`, c.project.ID, cmp.Or(list, "series"), span.Name))
	_ = csv.NewWriter(c.rw).WriteAll(rows) // the browser may have disconnected
	return nil
}

// analyticsRows returns the rows of a list with a header, or nil if there is no such list. A filtered report does not
// count active installs.
func analyticsRows(r analytics.Report, list string, filtered bool) [][]string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	var rows [][]string
	switch list {
	case "":
		rows = append(rows, []string{"at", "sessions", "events", "errors", "active_installs"})
		for _, p := range r.Series {
			rows = append(rows, []string{p.At.UTC().Format(time.RFC3339), number(p.Sessions), number(p.Events),
				number(p.Errors), number(p.ActiveInstalls)})
		}
		for i := range rows {
			if filtered {
				rows[i] = rows[i][:4]
			}
		}
		return rows
	case "error-rates":
		rows = append(rows, []string{"version", "sessions", "errors", "errors_per_100_sessions"})
		for _, use := range r.VersionUse {
			rate := ""
			if per100, ok := use.ErrorsPer100Sessions(); ok {
				rate = strconv.FormatFloat(per100, 'f', 2, 64)
			}
			rows = append(rows, []string{plainCell(use.Version), number(use.Sessions), number(use.Errors), rate})
		}
		return rows
	}
	counts, ok := map[string][]analytics.Count{"events": r.ByEvent, "errors": r.ByError, "versions": r.ByVersion,
		"platforms": r.ByPlatform, "devices": r.ByDevice}[list]
	if !ok {
		return nil
	}
	rows = append(rows, []string{"name", "count"})
	for _, count := range counts {
		rows = append(rows, []string{plainCell(count.Name), number(count.N)})
	}
	return rows
}

// plainCell prevents a spreadsheet from interpreting a name sent by an app as a formula.
func plainCell(s string) string {
	if s != "" && strings.ContainsAny(s[:1], "=+-@") {
		return "'" + s
	}
	return s
}
