package api

import (
	"net/url"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/proto/backendapi"
)

// ranges are the named time ranges that end now.
var ranges = map[string]time.Duration{
	"24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour, "90d": 90 * 24 * time.Hour,
}

func (a *API) reportAnalytics(c *call) (any, error) {
	q, err := analyticsQuery(c.URL.Query(), a.Now())
	if err != nil {
		return nil, err
	}
	r, err := a.Analytics.Report(c.Context(), c.who.AccountID, c.project.ID, q)
	return reportOf(c.project.ID, r), err
}

// analyticsQuery reads ?range, or ?from and ?to in RFC 3339, and ?interval.
func analyticsQuery(values url.Values, now time.Time) (analytics.Query, error) {
	const hint = "Send range=24h, 7d, 30d or 90d, or from and to like 2026-01-02T00:00:00Z; interval=hour or day."
	bad := func(what string) (analytics.Query, error) {
		return analytics.Query{}, invalidRequest(what, hint)
	}
	q := analytics.Query{Interval: values.Get("interval")}
	name, ranged := values.Get("range"), values.Has("range")
	switch {
	case ranged && (values.Has("from") || values.Has("to")):
		return bad("the query contains both range and from or to")
	case ranged:
		span, ok := ranges[name]
		if !ok {
			return bad("range must be 24h, 7d, 30d or 90d")
		}
		q.From, q.To = rangeUpTo(now, span, q.Interval)
	case values.Has("from") != values.Has("to"):
		return bad("the query contains only one of from and to")
	case values.Has("from"):
		var err error
		if q.From, err = time.Parse(time.RFC3339, values.Get("from")); err != nil {
			return bad("from must be an RFC 3339 time")
		}
		if q.To, err = time.Parse(time.RFC3339, values.Get("to")); err != nil {
			return bad("to must be an RFC 3339 time")
		}
	}
	if values.Has("interval") && q.Interval != analytics.Hour && q.Interval != analytics.Day {
		return bad("interval must be hour or day")
	}
	return q, nil
}

// rangeUpTo returns the range that ends now and covers as many hours or days as span, including the current one.
func rangeUpTo(now time.Time, span time.Duration, interval string) (from, to time.Time) {
	unit := 24 * time.Hour
	if interval == analytics.Hour || interval == "" && span == unit {
		unit = time.Hour
	}
	return now.UTC().Add(-span).Truncate(unit).Add(unit), now
}

func reportOf(project string, r analytics.Report) backendapi.AnalyticsReport {
	return backendapi.AnalyticsReport{
		Project: project, From: timestamp(r.From), To: timestamp(r.To), Interval: r.Interval,
		Totals: backendapi.AnalyticsTotals{
			Sessions: r.Sessions, Events: r.Events, Errors: r.Errors, PeakActiveInstalls: r.PeakActiveInstalls,
		},
		Series: convert(r.Series, func(p analytics.Point) backendapi.AnalyticsPoint {
			return backendapi.AnalyticsPoint{At: timestamp(p.At), Sessions: p.Sessions, Events: p.Events, Errors: p.Errors,
				ActiveInstalls: p.ActiveInstalls}
		}),
		Events: countsOf(r.ByEvent), Errors: countsOf(r.ByError), Versions: countsOf(r.ByVersion),
		Platforms: countsOf(r.ByPlatform), Devices: countsOf(r.ByDevice),
		Estimated: r.Estimated, Approximate: list(r.Approximate), Reading: r.Reading,
	}
}

func countsOf(counts []analytics.Count) []backendapi.AnalyticsCount {
	return convert(counts, func(c analytics.Count) backendapi.AnalyticsCount {
		return backendapi.AnalyticsCount{Name: c.Name, Count: c.N}
	})
}
