package web

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
)

// fakeCounts returns reports with the counts of one app, or with none.
type fakeCounts struct {
	empty, rough bool
	asked        *analytics.Query
}

func (f fakeCounts) Report(_ context.Context, account, project string, q analytics.Query) (analytics.Report, error) {
	*f.asked = q
	step := 24 * time.Hour
	if q.Interval == analytics.Hour {
		step = time.Hour
	}
	r := analytics.Report{Project: project, Interval: q.Interval, From: q.From.Truncate(step),
		Reading: "Nothing was counted.", Estimated: f.rough}
	for at := r.From; at.Before(q.To); at = at.Add(step) {
		r.Series = append(r.Series, analytics.Point{At: at})
	}
	r.To = r.From.Add(time.Duration(len(r.Series)) * step)
	if f.empty || account != adaID {
		return r, nil
	}
	for i := range r.Series {
		r.Series[i].Sessions, r.Series[i].ActiveInstalls, r.Series[i].Errors = int64(400+i), int64(90+i), int64(i%3)
		r.Sessions += int64(400 + i)
	}
	r.Events, r.Errors, r.PeakActiveInstalls, r.Reading = 1234567, 2, 97, "Sessions are up by 5 %."
	r.ByError = []analytics.Count{{Name: "timeout", N: 2}}
	r.ByVersion = []analytics.Count{{Name: "-1.4.0", N: 9}, {Name: "other", N: 1}}
	return r, nil
}

func countsSite(t *testing.T, f fakeCounts) (*visitor, *httptest.Server) {
	t.Helper()
	h := newFakeDashboard()
	core := newFake()
	core.people[ada], core.people["eve@example.org"] = password, password
	site := newSite(t, core, func(o *Options) { o.Dashboard, o.HostedPages, o.Analytics = h.dashboard(), fakePages{h}, f })
	return signedIn(t, site, ada), site
}

func TestAnalyticsPage(t *testing.T) {
	var q analytics.Query
	v, site := countsSite(t, fakeCounts{asked: &q})
	const path = "/account/projects/com.example.hello/analytics"
	v.get(path + "?range=24h").want(200)
	if q.Interval != analytics.Hour || q.To.Sub(q.From) != 23*time.Hour {
		t.Errorf("the query for 24 hours is %+v, want hours of one day", q)
	}
	for _, want := range []string{"Sessions are up by 5 %.", "1,234,567", "<svg", `role="img"`, "Errors by kind",
		"timeout", "Numbers", "analytics.csv?range=24h&amp;list=errors", "No event named the glasses."} {
		if !strings.Contains(v.page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	for _, bad := range []string{" style=", "<script", "estimates"} {
		if strings.Contains(v.page, bad) {
			t.Errorf("the page contains %q, want it not to", bad)
		}
	}
	v.get(path + "?range=90d").want(200)
	if len(v.page) > 100_000 {
		t.Errorf("the page for 90 days has %d bytes, want at most 100,000", len(v.page))
	}
	v.get(path + "?range=%27nonsense").want(200)
	if q.To.Sub(q.From) != 6*24*time.Hour {
		t.Errorf("an unknown range was queried as %+v, want 7 days", q)
	}
	v.get("/account/projects/com.example.nobody/analytics").want(404)
	signedIn(t, site, "eve@example.org").get(path).want(404)
	visit(t, site).get(path).want(303)
}

func TestAnalyticsFile(t *testing.T) {
	var q analytics.Query
	v, _ := countsSite(t, fakeCounts{asked: &q})
	const file = "/account/projects/com.example.hello/analytics.csv?range=7d"
	v.get(file).want(200)
	lines := strings.Split(strings.TrimSpace(v.page), "\n")
	if len(lines) != 8 || lines[0] != "at,sessions,events,errors,active_installs" ||
		!strings.HasSuffix(lines[7], "T00:00:00Z,406,0,0,96") {
		t.Errorf("got the lines %q, want a head and seven days", lines)
	}
	v.get(file + "&list=versions").want(200)
	if v.page != "name,count\n'-1.4.0,9\nother,1\n" {
		t.Errorf("got the file %q, want two versions and no formula", v.page)
	}
	v.get(file + "&list=nothing").want(404)
}

func TestAnalyticsWithoutCounts(t *testing.T) {
	var q analytics.Query
	v, _ := countsSite(t, fakeCounts{asked: &q, empty: true})
	v.get("/account/projects/com.example.hello/analytics").want(200)
	if !strings.Contains(v.page, "curl ") || !strings.Contains(v.page, "/api/analytics") ||
		strings.Contains(v.page, "<svg class=\"chart\"") {
		t.Error("the page does not say how to get started")
	}
	v, _ = countsSite(t, fakeCounts{asked: &q, rough: true})
	v.get("/account/projects/com.example.hello/analytics").want(200)
	if !strings.Contains(v.page, "estimates") {
		t.Error("the page does not say that the numbers are estimates")
	}
}
