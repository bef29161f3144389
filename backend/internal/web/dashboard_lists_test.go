package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

func TestProjects_AreFoundSortedAndPaged(t *testing.T) {
	h := newDashboardWorld(t)
	h.addProject("org.example.zebra-café", "Ärger & Co", then.Add(2*time.Hour))
	for i := range 301 {
		h.addProject(fmt.Sprintf("com.example.bulk%03d", i), fmt.Sprintf("Bulk %03d", i), time.Time{})
	}
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	order := func(names ...string) {
		t.Helper()
		var at []int
		for _, name := range names {
			at = append(at, strings.Index(v.page, "<bdi>"+name+"</bdi>"))
		}
		if !slices.IsSorted(at) || at[0] < 0 {
			t.Errorf("%v are at %v, want them in order", names, at)
		}
	}
	v.get("/account/projects").want(http.StatusOK, "1–100 of 304")
	order("Ärger &amp; Co", "Hello", "Bulk 000") // the latest activity first
	v.get("/account/projects?sort=name").want(http.StatusOK, "sort=name")
	order("Bulk 000", "Bulk 001")
	v.get("/account/projects?sort=name&page=4").want(http.StatusOK, "301–304 of 304")
	order("Hello", "Other", "Ärger &amp; Co")
	v.get("/account/projects?q=EXAMPLE+bulk00").want(http.StatusOK, "Bulk 009", `value="EXAMPLE bulk00"`).lacks("Bulk 010",
		"1–100", "Hello")
	v.get("/account/projects?q="+url.QueryEscape("ÄRGER")).want(http.StatusOK, "zebra").lacks("Hello")
	v.get("/account/projects?q=bulk").want(http.StatusOK, "1–100 of 301", "q=bulk")
	v.get("/account/projects?q=bulk&page=99").want(http.StatusOK, "301–301 of 301")
	v.get("/account/projects?q=%3Cscript%3E").want(http.StatusOK, "No project matches",
		"No project’s name or app id contains “<bdi>&lt;script&gt;</bdi>”")
	signedIn(t, site, "eve@example.org").get("/account/projects?q=bulk").want(http.StatusOK, "No project yet").lacks("Bulk")
}

// The overview shows the most recently active projects, even within one second.
func TestOverview_ProjectsByActivity(t *testing.T) {
	h := newDashboardWorld(t)
	h.exec("UPDATE project_keys SET last_used_at = $1", then.UnixMilli()+1)
	h.addProject("com.example.third", "Third", then.Add(2*time.Millisecond))
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account").want(http.StatusOK)
	_, list, _ := strings.Cut(v.page, `class="tiles"`)
	if strings.Index(list, "com.example.third") > strings.Index(list, hello) {
		t.Error("the project that was active last is not the first")
	}
}

// A project follows the account's default until it gets its own levels, and can return to the default.
func TestAccess_DefaultAndExceptions(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account/mcp-access").want(http.StatusOK, "Every project follows your default")
	v.post("/account/mcp-access/default", v.form("assistant.voice", "read", "analytics", "off")).onward().want(http.StatusOK,
		"It applies from", `id="default:analytics:off" name="analytics" value="off" checked`)
	if usual, _ := h.levels(); usual.Assistant[grants.Voice] != grants.Read || usual.Analytics != grants.Off ||
		usual.Credentials != grants.ReadWrite {
		t.Errorf("got the default %+v, want the posted levels and no other change", usual)
	}
	v.get(accessPath(hello)).want(http.StatusOK, "follows your default",
		`id="p0:analytics:off" name="analytics" value="off" checked`)
	v.post("/account/mcp-access", v.form("project", hello, "credentials", "off")).onward().want(http.StatusOK,
		"has its own levels", "Credentials: Off")
	v.get("/account/mcp-access").want(http.StatusOK, "Follow the default", "Credentials: Off")
	v.post("/account/mcp-access", v.form("project", hello, "follow", "default")).onward().want(http.StatusOK,
		"follows your default again", "Every project follows").lacks("Credentials: Off")
	v.post("/account/mcp-access/default", v.tokens()).onward().want(http.StatusOK, "nothing was changed")
	v.post("/account/mcp-access/default", v.form("analytics", "everything")).want(http.StatusForbidden)
	changed := "grants.changed " + hello
	want := []string{changed, "grants.changed com.example.other", "grants.default_changed", changed, changed}
	if got := h.called(); !slices.Equal(got, want) {
		t.Errorf("got changes %v, want %v", got, want)
	}
}

// A bulk change asks first, and names the number of exceptions that it replaces.
func TestAccess_AllProjectsAtOnce(t *testing.T) {
	h := newDashboardWorld(t)
	own := grants.Default()
	own.Analytics = grants.ReadWrite
	h.setLevels(hello, own)
	before := len(h.called())
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account/mcp-access/all?level=read_write").want(http.StatusOK,
		"Set all projects to Read &#43; Write?", "set for 1 project is replaced")
	if calls := h.called(); len(calls) > before {
		t.Errorf("the question had an effect: %v", calls)
	}
	v.post("/account/mcp-access/all", v.form("level", "read_write")).onward().want(http.StatusOK, "the same access")
	if u, own := h.levels(); u.Analytics != grants.ReadWrite || u.Assistant[grants.Sounds] != grants.ReadWrite ||
		u.Assistant[grants.GatewayUsage] != grants.ReadWrite || len(own) != 0 {
		t.Errorf("got default %+v and exceptions %v, want the highest levels and none", u, own)
	}
	v.post("/account/mcp-access/all", v.form("level", "off")).onward().want(http.StatusOK)
	if u, _ := h.levels(); u.Analytics != grants.Off || u.Assistant[grants.GatewayUsage] != grants.Off {
		t.Errorf("got default %+v, want everything off", u)
	}
	h.setLevels(hello, own)
	v.post("/account/mcp-access/all", v.form("level", "default"))
	if u, own := h.levels(); len(own) != 0 || u.Analytics != grants.Off {
		t.Errorf("got default %+v and exceptions %v, want the same default and none", u, own)
	}
	v.get("/account/mcp-access/all?level=admin").want(http.StatusNotFound)
	v.post("/account/mcp-access/all", v.form("level", "admin")).want(http.StatusNotFound)
}

func TestActivity_Filters(t *testing.T) {
	h := newDashboardWorld(t)
	agentChange(t, h, "harbor")
	h.note(audit.Person(), "key.minted", hello, "key nightly")
	h.note(audit.Agent("link2"), "analytics.read", "com.example.other", "read the analytics")
	h.note(audit.Person(), "project.changed", hello, "name: Hello -> Better")
	h.exec("UPDATE audit SET at = $1 WHERE id = $2", then.AddDate(0, 0, 2).UnixMilli(), h.entries()[3].ID)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	all := []string{"Assistant changed", "Project key made", "Analytics read", "Project changed"}
	for query, want := range map[string][]string{
		"":                              all,
		"kind=changes":                  {"Assistant changed", "Project key made", "Project changed"},
		"kind=assistant":                {"Assistant changed"},
		"kind=keys&project=" + hello:    {"Project key made"},
		"who=person":                    {"Project key made", "Project changed"},
		"who=agent":                     {"Assistant changed", "Analytics read"},
		"who=link:link2":                {"Analytics read"},
		"from=2026-11-21":               {"Project changed"},
		"to=2026-11-20":                 {"Assistant changed", "Project key made", "Analytics read"},
		"from=2026-11-22&to=2026-11-22": {"Project changed"},
		"kind=nothing&who=somebody&from=yesterday&to=0-0-0": all,
		"kind=keys&who=agent":                               nil,
	} {
		v.get("/account/audit?" + query).want(http.StatusOK)
		for _, title := range all {
			if got := strings.Contains(v.page, "<strong>"+title); got != slices.Contains(want, title) {
				t.Errorf("%s: %q is listed: %v", query, title, got)
			}
		}
		if len(want) == 0 && !strings.Contains(v.page, "Nothing matches") {
			t.Errorf("%s: the page does not say that nothing matches", query)
		}
	}
	v.get("/account/audit?from=2026-11-22&to=2026-11-20").want(http.StatusOK, "The first day of the filter is after its last",
		`aria-invalid="true" aria-describedby="backwards"`)
	v.get("/account/audit?from=2026-11-22&to=2026-11-22").lacks("is after its last")
	v.get("/account/audit?before="+h.entries()[0].ID).want(http.StatusOK, "No older entry").lacks("Nothing yet")
	v.get("/account/audit?kind=keys&from=2026-11-01&who=person").want(http.StatusOK, `value="2026-11-01"`,
		`<option value="keys" selected>`, `<option value="person" selected>`, "Clear")
}

// The filter stays when the user turns the page.
func TestActivity_PagesKeepTheFilter(t *testing.T) {
	h := newDashboardWorld(t)
	for range activityEntries + 1 {
		h.note(audit.Person(), "key.minted", hello, "key nightly")
	}
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account/audit?kind=keys&who=person").want(http.StatusOK, "Older")
	v.get("/account/audit?before="+h.entries()[1].ID+"&kind=keys&who=person").want(http.StatusOK,
		`href="/account/audit?kind=keys&amp;who=person">Newest`)
}

func TestChanges_BeforeAndAfter(t *testing.T) {
	for name, c := range map[string]struct {
		entry audit.Entry
		want  []valueChange
	}{
		"stored": {audit.Entry{Action: "assistant.changed", Summary: "x",
			Before: json.RawMessage(`{"voice":"ember","sounds":true,"textModel":""}`),
			After:  json.RawMessage(`{"voice":"harbor","sounds":false,"textModel":"small"}`)},
			[]valueChange{{"Sounds", "on", "off"}, {"Text model", "none", "small"}, {"Voice", "ember", "harbor"}}},
		"caps": {audit.Entry{Action: "credit.caps_changed", Before: json.RawMessage(`{"day":null}`),
			After: json.RawMessage(`{"day":2500000}`)}, []valueChange{{"Cap of a day", "none", "$2.50"}}},
		"page": {audit.Entry{Action: "page.changed", Before: json.RawMessage(`{"phrases":[],"title":"a\nb"}`),
			After: json.RawMessage(`{"phrases":[{"phrase":"next","does":"shows"}],"title":"c"}`)},
			[]valueChange{{"Phrases", "none", "shows: next"}, {"Title", "a b", "c"}}},
		"summary": {audit.Entry{Action: "grants.changed", Summary: "analytics: read -> off; credentials: off -> read"},
			[]valueChange{{"Analytics", "Read", "Off"}, {"Credentials", "Off", "Read"}}},
		"sentence":  {audit.Entry{Action: "key.minted", Summary: "key a -> b: c"}, nil},
		"no change": {audit.Entry{Action: "credential.set", Summary: "key of OpenAI set"}, nil},
	} {
		if got := changesOf(c.entry); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
