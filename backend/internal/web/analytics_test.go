package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/secret"
)

// counts describes what hello counted in 90 days. The zero value counts something of everything.
type counts struct {
	empty    bool
	rough    bool // some counts are estimates
	unsliced bool // more events named a platform than can be filtered
	flawless bool // there are no errors
}

// count stores the counts of hello.
func (h *dashboardWorld) count(c counts) {
	h.t.Helper()
	if c.empty {
		return
	}
	h.exec("INSERT INTO analytics_projects (id, account_id, app_id, used_day, used) VALUES (1, $1, $2, 0, 0)", adaID, hello)
	const hours, days = analytics.SpanHour, analytics.SpanDay
	today, now := then.Unix()/(24*60*60), then.Unix()/(60*60)
	sum := func(span analytics.Span, at int64, kind analytics.Kind, name string, n int64) {
		h.exec("INSERT INTO analytics_sums (project, span, at, kind, name, n) VALUES (1, $1, $2, $3, $4, $5)",
			int(span), at, int(kind), name, n)
	}
	for i := range int64(90) {
		sum(days, today-i, analytics.KindTotal, analytics.Session, 406-i)
		sum(days, today-i, analytics.KindTotal, analytics.TotalInstalls, max(96-i, 1))
		if !c.flawless {
			sum(days, today-i, analytics.KindTotal, analytics.Failure, (96-i)%3)
		}
	}
	for i := range int64(24) {
		sum(hours, now-i, analytics.KindTotal, analytics.Session, 40+i)
	}
	sum(hours, now-24, analytics.KindTotal, analytics.Session, 1000)
	if c.flawless {
		return
	}
	for span, at := range map[analytics.Span]int64{hours: now, days: today} {
		sum(span, at, analytics.KindTotal, analytics.Custom, 1_234_567)
		sum(span, at-1, analytics.KindError, "timeout", 2)
		sum(span, at, analytics.KindVersion, "-1.4.0", 9)
		sum(span, at, analytics.KindVersion, "other", 1)
		sum(span, at, analytics.KindDevice, "even_g1", 5000)
		sum(span, at, analytics.KindDevice, "prototype-7", 2)
	}
	if c.rough {
		sum(days, today, analytics.KindTotal, analytics.TotalSampled, 1)
	}
	if c.unsliced {
		sum(days, today, analytics.KindPlatform, "ios", 1_000_000)
	}
	for _, s := range []struct {
		version, platform, name string
		n                       int
	}{{"1.4.0", "ios", "timeout", 3}, {"1.10.0", "ios", analytics.Session, 1500}, {"1.10.0", "web", analytics.Session, 500},
		{"1.10.0", "ios", analytics.Failure, 500}, {"1.4.0", "ios", analytics.Session, 150},
		{"1.4.0", "web", analytics.Session, 50}, {"1.4.0", "ios", analytics.Failure, 3},
		{"1.3.9", "ios", analytics.Failure, 7}} {
		kind := analytics.KindTotal
		if s.name == "timeout" {
			kind = analytics.KindError
		}
		h.exec(`INSERT INTO analytics_slices (project, span, at, kind, version, platform, name, n)
			VALUES (1, $1, $2, $3, $4, $5, $6, $7)`, int(days), today, int(kind), s.version, s.platform, s.name, s.n)
	}
}

func countsSite(t *testing.T, c counts) (*visitor, *httptest.Server) {
	t.Helper()
	h := newDashboardWorld(t)
	h.count(c)
	site := dashboardSite(t, h, func(o *Options) {
		o.Analytics = analytics.New(analytics.Options{Store: analytics.NewStore(h.db), Now: h.now,
			Hasher: secret.NewHasher(make([]byte, 32))})
	})
	return signedIn(t, site, ada), site
}

func TestAnalyticsPage(t *testing.T) {
	v, site := countsSite(t, counts{})
	const path = "/account/projects/com.example.hello/analytics"
	if n := strings.Count(v.get(path+".csv?range=24h").want(200).page, "\n"); n != 25 {
		t.Errorf("the file of 24 hours has %d lines, want a head and 24 hours", n)
	}
	v.get(path + "?range=24h").want(200)
	for _, want := range []string{"Sessions are up by 23 %", "1,234,567", "<svg", `role="img"`, "Errors by kind",
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
	if n := strings.Count(v.get(path+".csv?range=%27nonsense").want(200).page, "\n"); n != 8 {
		t.Errorf("the file of an unknown range has %d lines, want a head and 7 days", n)
	}
	v.get("/account/projects/com.example.nobody/analytics").want(404)
	signedIn(t, site, "eve@example.org").get(path).want(404)
	visit(t, site).get(path).want(303)
}

// A chart without data is replaced by a sentence, and a rate of 0 has no bar.
func TestAnalyticsPage_DrawsNoZeros(t *testing.T) {
	v, _ := countsSite(t, counts{flawless: true})
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
	v, _ := countsSite(t, counts{})
	const file = "/account/projects/com.example.hello/analytics.csv?range=7d"
	v.get(file).want(200)
	lines := strings.Split(strings.TrimSpace(v.page), "\n")
	if len(lines) != 8 || lines[0] != "at,sessions,events,errors,active_installs" ||
		!strings.HasSuffix(lines[7], "T00:00:00Z,406,1234567,0,96") {
		t.Errorf("got the lines %q, want a head and seven days", lines)
	}
	v.get(file + "&list=versions").want(200)
	if v.page != "name,count\n'-1.4.0,9\nother,1\n" {
		t.Errorf("got the file %q, want two versions and no formula", v.page)
	}
	v.get(file + "&list=nothing").want(404)
}

func TestAnalyticsWithoutCounts(t *testing.T) {
	v, _ := countsSite(t, counts{empty: true})
	v.get("/account/projects/com.example.hello/analytics").want(200)
	if !strings.Contains(v.page, "curl ") || !strings.Contains(v.page, "/api/analytics") ||
		strings.Contains(v.page, "<svg class=\"chart\"") {
		t.Error("the page does not say how to get started")
	}
	v, _ = countsSite(t, counts{rough: true})
	v.get("/account/projects/com.example.hello/analytics").want(200)
	if !strings.Contains(v.page, "estimates") {
		t.Error("the page does not say that the numbers are estimates")
	}
}

// The filter is part of the query, of the range's links and of the files' URLs, and the page names it.
func TestAnalyticsFilter(t *testing.T) {
	v, _ := countsSite(t, counts{})
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
	if strings.Contains(v.page, "Active installs by day") || strings.Contains(v.page, "busiest day") {
		t.Error("the filtered page shows active installs, which are not counted by version")
	}
	v.get(path+"?version=0.1").want(200, "Nothing was counted for version 0.1", `<option value="0.1" selected>`)
	v.get(path+"?platform=plan9").want(200, "does not exist", "shows the whole app instead", "1,234,567")
	v.get(path + ".csv?platform=plan9").want(404)
	v.get(path+".csv?version=1.4.0&platform=ios").want(200, "T00:00:00Z,150,0,3\n")
	v.get(path+".csv?platform=ios").want(200, "at,sessions,events,errors\n")
	for _, incomplete := range []bool{false, true} {
		v, _ := countsSite(t, counts{unsliced: incomplete})
		v.get(path + "?platform=ios").want(200)
		if strings.Contains(v.page, "before this server could filter") != incomplete {
			t.Errorf("the page says that counts are missing: %t, want %t", !incomplete, incomplete)
		}
	}
}

func TestAnalyticsErrorRates(t *testing.T) {
	v, _ := countsSite(t, counts{})
	const path = "/account/projects/com.example.hello/analytics"
	v.get(path+"?version=1.4.0").want(200, "Errors per 100 sessions", "<td>2,000</td><td>500</td><td><strong>25</strong>",
		"<td>200</td><td>3</td><td><strong>1.5</strong>", "no session", `class="chosen"`)
	v.get(path+".csv?list=error-rates").want(200, "version,sessions,errors,errors_per_100_sessions\n1.10.0,2000,500,25.00\n",
		"1.3.9,0,7,\n")
}

// Today's column is hatched, and a legend explains why. Yesterday's is not.
func TestAnalyticsMarksToday(t *testing.T) {
	v, _ := countsSite(t, counts{})
	const path = "/account/projects/com.example.hello/analytics"
	v.get(path+"?range=7d").want(200, "Hatched: today, counted until", "so far", "The last day is not over yet.")
	if n := strings.Count(v.page, `<rect class="chart-open" fill="url(#plot-sessions-hatch)" x="`); n != 1 {
		t.Errorf("%d columns are hatched, want 1", n)
	}
	v.get(path+"?range=24h").want(200, "Hatched: the current hour, counted until")
}
