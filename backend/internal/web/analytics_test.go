package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
)

// fakeCounts returns reports with the counts of one app, or without any counts.
type fakeCounts struct {
	empty, rough, unsliced bool
	flawless               bool // there are no errors
	asked                  *analytics.Query
}

func (f fakeCounts) Report(_ context.Context, account, project string, q analytics.Query) (analytics.Report, error) {
	*f.asked = q
	if q.Filter.Platform == "plan9" {
		return analytics.Report{}, fmt.Errorf("%w: the platform must be ios", analytics.ErrInvalid)
	}
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
	r.Versions, r.Platforms, r.Unsliced = []string{"1.4.0", "1.10.0"}, []string{"ios", "web"}, f.unsliced
	if f.empty || account != adaID || q.Filter.Version == "0.1" {
		return r, nil
	}
	for i := range r.Series {
		r.Series[i].Sessions, r.Series[i].ActiveInstalls, r.Series[i].Errors = int64(400+i), int64(90+i), int64(i%3)
		r.Sessions += int64(400 + i)
	}
	if f.flawless {
		for i := range r.Series {
			r.Series[i].Errors = 0
		}
		return r, nil
	}
	r.Events, r.Errors, r.PeakActiveInstalls, r.Reading = 1234567, 2, 97, "Sessions are up by 5 %."
	r.ByError = []analytics.Count{{Name: "timeout", N: 2}}
	r.ByVersion = []analytics.Count{{Name: "-1.4.0", N: 9}, {Name: "other", N: 1}}
	r.ByDevice = []analytics.Count{{Name: "even_g1", N: 5000}, {Name: "prototype-7", N: 2}}
	r.VersionUse = []analytics.VersionUse{{Version: "1.10.0", Sessions: 2000, Errors: 500}, {Version: "1.4.0", Sessions: 200,
		Errors: 3}, {Version: "1.3.9", Errors: 7}}
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
		"timeout", "Numbers", "analytics.csv?range=24h&amp;list=errors", "No event named its platform.",
		"Even G1", "prototype-7", "5,000"} {
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

// A chart without data is replaced by a sentence, and a rate of 0 has no bar.
func TestAnalyticsPage_DrawsNoZeros(t *testing.T) {
	var q analytics.Query
	v, _ := countsSite(t, fakeCounts{asked: &q, flawless: true})
	v.get("/account/projects/com.example.hello/analytics").want(200, "Errors by day", "None in this range.")
	if n := strings.Count(v.page, `<svg class="chart"`); n != 2 {
		t.Errorf("the page has %d charts, want those of sessions and installs", n)
	}
	for n, want := range map[float64]int{0: 0, .2: 1, 50: 50, 100: 100} {
		if got := share(n, 100); got != want {
			t.Errorf("share(%v, 100) = %d, want %d", n, got, want)
		}
	}
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

// The filter is part of the query, of the range's links and of the files' URLs, and the page names it.
func TestAnalyticsFilter(t *testing.T) {
	var q analytics.Query
	v, _ := countsSite(t, fakeCounts{asked: &q})
	const path = "/account/projects/com.example.hello/analytics"
	v.get(path+"?range=30d").want(200, `<select id="version" name="version">`, `<option value="ios">iOS</option>`,
		"Active installs by day")
	if strings.Index(v.page, `value="1.10.0"`) > strings.Index(v.page, `value="1.4.0"`) {
		t.Error("the newest version is not offered first")
	}
	v.get(path+"?range=30d&version=1.4.0&platform=ios").want(200, "Only version 1.4.0 on iOS",
		`<option value="1.4.0" selected>`, `<option value="ios" selected>`,
		`href="?platform=ios&amp;range=90d&amp;version=1.4.0"`, `name="range" value="30d"`,
		"analytics.csv?platform=ios&amp;range=30d&amp;version=1.4.0&amp;list=errors", "All versions on iOS.",
		"installs are counted for the whole app only", `href="?range=30d">Show everything`)
	if q.Filter != (analytics.Slice{Version: "1.4.0", Platform: "ios"}) {
		t.Errorf("the query has the filter %+v, want version and platform", q.Filter)
	}
	if strings.Contains(v.page, "Active installs by day") || strings.Contains(v.page, "busiest day") {
		t.Error("the filtered page shows active installs, which are not counted by version")
	}
	v.get(path+"?version=0.1").want(200, "Nothing was counted for version 0.1", `<option value="0.1" selected>`)
	v.get(path+"?platform=plan9").want(200, "does not exist", "use of the whole app", "1,234,567")
	v.get(path + ".csv?platform=plan9").want(404)
	v.get(path+".csv?platform=ios").want(200, "at,sessions,events,errors\n")
	for _, incomplete := range []bool{false, true} {
		v, _ := countsSite(t, fakeCounts{asked: &q, unsliced: incomplete})
		v.get(path + "?platform=ios").want(200)
		if strings.Contains(v.page, "before this server could filter") != incomplete {
			t.Errorf("the page says that counts are missing: %t, want %t", !incomplete, incomplete)
		}
	}
}

func TestAnalyticsErrorRates(t *testing.T) {
	var q analytics.Query
	v, _ := countsSite(t, fakeCounts{asked: &q})
	const path = "/account/projects/com.example.hello/analytics"
	v.get(path+"?version=1.4.0").want(200, "Errors per 100 sessions", "<td>2,000</td><td>500</td><td><strong>25</strong>",
		"<td>200</td><td>3</td><td><strong>1.5</strong>", "no session", `class="chosen"`)
	v.get(path+".csv?list=error-rates").want(200, "version,sessions,errors,errors_per_100_sessions\n1.10.0,2000,500,25.00\n",
		"1.3.9,0,7,\n")
}

// Today's column is hatched, and a legend explains why. Yesterday's is not.
func TestAnalyticsMarksToday(t *testing.T) {
	var q analytics.Query
	v, _ := countsSite(t, fakeCounts{asked: &q})
	const path = "/account/projects/com.example.hello/analytics"
	v.get(path+"?range=7d").want(200, "Hatched: today, counted until", "so far", "The last day is not over yet.")
	if n := strings.Count(v.page, `<rect class="chart-open" fill="url(#plot-sessions-hatch)" x="`); n != 1 {
		t.Errorf("%d columns are hatched, want 1", n)
	}
	v.get(path+"?range=24h").want(200, "Hatched: the current hour, counted until")
}
