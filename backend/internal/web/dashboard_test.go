package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

const helloPath = "/account/projects/" + hello

// form returns the last page's tokens and the given fields, as name, value, name, value.
func (v *visitor) form(fields ...string) url.Values {
	form := v.tokens()
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form
}

func (v *visitor) lacks(texts ...string) *visitor {
	v.t.Helper()
	for _, text := range texts {
		if strings.Contains(v.page, text) {
			v.t.Errorf("the page contains %q:\n%s", text, v.page)
		}
	}
	return v
}

// Paths of the dashboard's pages and of the forms that they post, for an account or for one project.
var (
	pagesOfProject = []string{"", "/sessions", "/assistant", "/credentials", "/gateway", "/gateway?range=24h", "/connection-page",
		"/connection-page/file",
		"/connection-page/preview", "/delete",
		"/merge?into=com.example.other", "/keys/key1/rotate", "/keys/key1/revoke", "/credentials/openai/remove",
		"/assistant/memory/erase", "/gateway/attestation/keys/remove"}
	projectForms = []string{"", "/keys", "/keys/key1/rotate", "/keys/key1/revoke", "/merge", "/delete", "/assistant",
		"/credentials/openai", "/credentials/openai/test", "/credentials/openai/remove", "/connection-page",
		"/gateway/caps", "/gateway/key-source", "/assistant/memory", "/gateway/attestation", "/gateway/attestation/keys",
		"/gateway/attestation/keys/remove", "/gateway/attestation/installs/inst1/revoke"}
	pagesOfAccount = []string{"/account", sessionsPath, "/account/mcp-access/all?level=off", creditPath, "/account/projects", "/account/mcp-access", "/account/audit",
		"/account/links/link1/revoke", "/account/links/revoke-all"}
	accountForms = []string{"/account/links/link1/revoke", "/account/links/revoke-all", "/account/mcp-access",
		"/account/mcp-access/default", "/account/mcp-access/all", sessionsPath + "/ses_one/close", "/account/audit/x/undo", creditPath + "/caps"}
)

func TestDashboard_RequiresSignIn(t *testing.T) {
	h := newDashboardWorld(t)
	h.setOpenAIKey()
	site := dashboardSite(t, h)
	var pages, forms []string
	pages, forms = append(pages, pagesOfAccount...), append(forms, accountForms...)
	for _, p := range pagesOfProject {
		pages = append(pages, helloPath+p)
	}
	for _, p := range projectForms {
		forms = append(forms, helloPath+p)
	}
	nobody, owner := visit(t, site), signedIn(t, site, ada)
	for _, p := range pages {
		nobody.get(p).want(http.StatusSeeOther)
		if got, want := nobody.header.Get("Location"), "/signin?next="+url.QueryEscape(p); got != want {
			t.Errorf("%s redirects to %s, want %s", p, got, want)
		}
		if owner.get(p).want(http.StatusOK); len(owner.page) > 100_000 {
			t.Errorf("%s has %d bytes, want at most 100,000", p, len(owner.page))
		}
		owner.lacks("sk-canary")
		if got := owner.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control is %q, want no-store", p, got)
		}
	}
	visitors := nobody.get("/signin").tokens()
	for _, p := range forms {
		nobody.post(p, visitors).want(http.StatusSeeOther)
		if owner.post(p, url.Values{"csrf": {"wrong"}}); owner.status != http.StatusForbidden {
			t.Errorf("POST %s without the token: got status %d, want 403", p, owner.status)
		}
	}
	if calls := h.called(); !slices.Equal(calls, []string{"credential.set " + hello}) {
		t.Errorf("a refused request had an effect: %v", calls)
	}
}

// Each page without a parameter must be in pagesOfAccount, whose test opens it without an account, and in
// test/e2e/pages_test.go, which opens it in a browser. The question before all links are revoked looks like the others
// and is not opened there.
func TestDashboard_PagesAreTested(t *testing.T) {
	data, err := os.ReadFile("../../../test/e2e/pages_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for pattern := range accountPages {
		path, isGet := strings.CutPrefix(pattern, "GET ")
		if !isGet || strings.Contains(path, "{") {
			continue
		}
		if !slices.ContainsFunc(pagesOfAccount, func(p string) bool { return p == path || strings.HasPrefix(p, path+"?") }) {
			t.Errorf("pagesOfAccount does not list %s", path)
		}
		if path != "/account/links/revoke-all" && !strings.Contains(string(data), `"`+path+`"`) &&
			!strings.Contains(string(data), `"`+path+`?`) {
			t.Errorf("test/e2e/pages_test.go does not open %s", path)
		}
	}
}

// Another account's resource gets the same response as a missing one.
func TestDashboard_ForeignProjectLooksMissing(t *testing.T) {
	h := newDashboardWorld(t)
	h.note(agentActor, "assistant.changed", hello, "voice", `{}`)
	site := dashboardSite(t, h)
	eve := signedIn(t, site, "eve@example.org").get("/account").want(http.StatusOK)
	eve.lacks(hello, "maple", "Assistant changed")
	form := eve.tokens()
	form.Set("into", "com.example.other")
	missing := "/account/projects/com.example.missing"
	for _, p := range pagesOfProject {
		if p == "/connection-page/preview" {
			continue // handled by another service
		}
		theirs := eve.get(helloPath + p).want(http.StatusNotFound).page
		if none := eve.get(missing + p).want(http.StatusNotFound).page; none != theirs {
			t.Errorf("%s distinguishes another account's project from a missing one", p)
		}
	}
	for _, p := range projectForms {
		eve.post(helloPath+p, form).want(http.StatusNotFound)
	}
	eve.get("/account/audit?project=" + hello).want(http.StatusNotFound)
	eve.post("/account/audit/"+h.entries()[0].ID+"/undo", form).want(http.StatusNotFound)
	eve.post("/account/links/link1/revoke", form).want(http.StatusNotFound)
	form.Set("project", hello)
	eve.post("/account/mcp-access", form).want(http.StatusNotFound)
	if calls := h.called(); len(calls) != 1 {
		t.Errorf("want only one call, got %v", calls)
	}
}

func TestDashboard_EmptyAccountShowsFirstSteps(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	eve := signedIn(t, site, "eve@example.org")
	h.exec("DELETE FROM audit")
	eve.get("/account").want(http.StatusOK, "First steps", "0 of 4 done", "servicectl agent add --all",
		"servicectl login")
	eve.get("/account/sessions").want(http.StatusOK, "No open session")
	eve.get("/account/projects").want(http.StatusOK, "No project yet")
	eve.get("/account/audit").want(http.StatusOK, "Nothing yet")
	eve.get("/account/mcp-access").want(http.StatusOK, "No project yet")
}

func TestProject_InvalidNameStaysInTheForm(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloPath)
	long := strings.Repeat("x", 81)
	v.post(helloPath, v.form("name", long, "platform", "desktop")).want(http.StatusUnprocessableEntity, long,
		`id="name-error"`, `value="desktop" checked`, "<title>Error:")
	v.post(helloPath, v.form("name", "Better <b>", "platform", "ios", "platform", "desktop")).onward().want(http.StatusOK,
		"Saved.", "Better &lt;b&gt;")
	p, err := h.projects.Get(t.Context(), adaID, hello)
	if err != nil || !slices.Equal(p.Platforms, []string{"ios", "desktop"}) {
		t.Errorf("got platforms %v, want ios and desktop", p.Platforms)
	}
	if v.get("/account/projects/com.example.alias").onward(); !strings.Contains(v.page, hello) {
		t.Error("the ID of a merged project does not redirect to the project it was merged into")
	}
}

func TestKeys_AreShownOnce(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloPath).want(http.StatusOK, "spk_ab12…wxyz", "by <bdi>maple · claude-code")
	v.post(helloPath+"/keys", v.form("name", "")).want(http.StatusUnprocessableEntity, `id="key-name-error"`)
	first := v.post(helloPath+"/keys", v.form("name", "nightly")).want(http.StatusOK, "shown only once").projectKey()
	if v.header.Get("Cache-Control") != "no-store" {
		t.Error("a cache may store the key")
	}
	v.get(helloPath).want(http.StatusOK, "nightly", first[:8]+"…"+first[len(first)-4:]).lacks(first)
	old := h.newestKey()
	v.get(old+"/rotate").want(http.StatusOK, "stops working at that moment")
	second := v.post(old+"/rotate", v.tokens()).want(http.StatusOK, "The old key no longer works").projectKey()
	if second == first {
		t.Error("the key was not replaced")
	}
	v.get(old + "/rotate").want(http.StatusNotFound) // it is revoked
	rotated := h.newestKey()
	v.get(rotated + "/revoke").want(http.StatusOK)
	v.post(rotated+"/revoke", v.tokens()).onward().want(http.StatusOK, "The key is revoked",
		"Revoked keys").lacks(first, second)
	v.post(helloPath+"/keys/nothing/revoke", v.tokens()).want(http.StatusNotFound)
}

var projectKeyForm = regexp.MustCompile(`spk_[A-Za-z0-9_-]{20,}`)

// projectKey returns the project key that the last page shows.
func (v *visitor) projectKey() string {
	v.t.Helper()
	key := projectKeyForm.FindString(v.page)
	if key == "" {
		v.t.Fatalf("the page shows no key:\n%s", v.page)
	}
	return key
}

// newestKey returns the path of the newest live key of hello.
func (h *dashboardWorld) newestKey() string {
	h.t.Helper()
	keys, err := h.projects.Keys(context.Background(), adaID, hello)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, k := range keys {
		if k.ID != "key1" && k.RevokedAt.IsZero() {
			return helloPath + "/keys/" + k.ID
		}
	}
	h.t.Fatal("hello has no new key")
	return ""
}

func TestMergeAndDelete_AskFirst(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	v.get(helloPath+"/merge?into=com.example.other").want(http.StatusOK, "Of two spending caps the lower one stays")
	v.get(helloPath + "/merge?into=" + hello).want(http.StatusNotFound) // a merge into itself
	v.get(helloPath + "/merge?into=" + foreign).want(http.StatusNotFound)
	v.get(helloPath+"/merge?into=com.example.other").want(http.StatusOK, "cannot be undone")
	v.post(helloPath+"/merge", v.form("into", "com.example.other")).onward().want(http.StatusOK, "Merged.")
	const other = "com.example.other"
	v.get(projectPath(other)+"/delete").want(http.StatusOK, "permanently")
	v.post(projectPath(other)+"/delete", v.form("typed", "com.example")).want(http.StatusUnprocessableEntity,
		`value="com.example"`, `id="typed-error"`)
	v.post(projectPath(other)+"/delete", v.form("typed", other)).onward().want(http.StatusOK,
		"The project is deleted.").lacks(other)
	if calls := h.called(); !slices.Equal(calls, []string{"project.merged " + other, "project.deleted " + other}) {
		t.Errorf("got calls %v", calls)
	}
}

func TestGrants_AreSavedPerProject(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(accessPath(hello)).want(http.StatusOK, "Read + Write", "default", "always allowed")
	v.post("/account/mcp-access", v.form("project", hello, "assistant.voice", "off", "analytics",
		"read_write")).onward().want(http.StatusOK, "It applies from")
	g, err := h.grants.Of(t.Context(), adaID, hello)
	if err != nil || g.Assistant[grants.Voice] != grants.Off || g.Assistant[grants.Sounds] != grants.ReadWrite ||
		g.Analytics != grants.ReadWrite || g.Credentials != grants.ReadWrite {
		t.Errorf("got grants %+v, want the posted levels and no other change", g)
	}
	v.want(http.StatusOK, `id="p0:assistant.voice:off" name="assistant.voice" value="off" checked`)
	v.post("/account/mcp-access", v.form("project", hello)).onward().want(http.StatusOK, "nothing was changed")
	v.post("/account/mcp-access", v.form("project", hello, "analytics", "everything")).want(http.StatusForbidden)
	if n := len(h.called()); n != 1 {
		t.Errorf("got %d changes, want 1", n)
	}
}

func TestLinks_Revoke(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account").want(http.StatusOK, "maple", "claude-code 2.1", "192.0.2.7",
		"Debian 12").lacks("oldbox")
	v.get("/account/links/link2/revoke").want(http.StatusNotFound) // it is already revoked
	v.get("/account/links/link1/revoke").want(http.StatusOK, "claude-code 2.1 on maple")
	v.post("/account/links/link1/revoke", v.tokens()).onward().want(http.StatusOK,
		"That agent&#39;s next call is refused").lacks("192.0.2.7")
	v.post("/account/links/revoke-all", v.tokens()).onward().want(http.StatusOK, "All links are revoked")
}

// Links of the last seven days are marked, so that the user notices a link created by someone else.
func TestLinks_NewOnesAreMarked(t *testing.T) {
	for age, marked := range map[time.Duration]bool{time.Hour: true, 7*24*time.Hour - time.Minute: true, 7*24*time.Hour +
		time.Minute: false} {
		h := newDashboardWorld(t)
		h.exec("UPDATE links SET linked_at = $1, last_ip = '198.51.100.9'", then.Add(-age).UnixMilli())
		site := dashboardSite(t, h)
		v := signedIn(t, site, ada).get("/account").want(http.StatusOK, "from <bdi>192.0.2.7", "from <bdi>198.51.100.9")
		if got := strings.Contains(v.page, ">new</span>"); got != marked {
			t.Errorf("a link that is %v old: marked as new is %v, want the opposite", age, got)
		}
	}
}

// The text of a notice cannot be set in a URL.
func TestNotices_AreNotFromTheAddress(t *testing.T) {
	site := dashboardSite(t, newDashboardWorld(t))
	v := signedIn(t, site, ada)
	v.get("/account?done="+url.QueryEscape("call 555 now")).want(http.StatusOK).lacks("555", `class="note`)
	v.get("/account?done=revoked-link").want(http.StatusOK, `class="note good" role="status"`)
}

func TestHome_LinksToTheDashboard(t *testing.T) {
	site := dashboardSite(t, newDashboardWorld(t))
	signedIn(t, site, ada).get("/").want(http.StatusOK, `href="/account">Dashboard`, "Go to your dashboard")
	visit(t, site).get("/").want(http.StatusOK).lacks(`href="/account"`)
	without := newPeople(t)
	without.add(ada)
	signedIn(t, newSite(t, without), ada).get("/").want(http.StatusOK).lacks(`href="/account"`)
}

// The pages stay small even if the account has the maximum number of projects.
func TestManyProjects(t *testing.T) {
	h := newDashboardWorld(t)
	for i := range projects.MaxProjects - 2 {
		h.addProject(fmt.Sprintf("com.example.one-of-many-%03d", i), fmt.Sprintf("One of many %d", i), then)
	}
	h.exec("UPDATE projects SET platforms = 'ios,android,web,desktop'")
	for range 3 * activityEntries {
		h.note(agentActor, "assistant.changed", hello, "voice: ember -> harbor; memory: off -> on", `{}`)
	}
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	pages := append([]string{helloPath, "/account/projects?page=5"}, pagesOfAccount...)
	for _, p := range pages {
		if v.get(p).want(http.StatusOK); v.weight() > 100_000 {
			t.Errorf("%s and what it loads have %d bytes, want a small page", p, v.weight())
		}
	}
	v.get("/account/projects").want(http.StatusOK, "1–100 of 500", "page=2").lacks("page=0")
	v.get("/account/projects?page=5").want(http.StatusOK, "401–500 of 500", "page=4").lacks("page=6")
	v.get("/account/mcp-access?project=com.example.one-of-many-300").want(http.StatusOK,
		`id="com.example.one-of-many-300"`, "For the 399 others")
}

var assetURL = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

// weight returns the size of the last page with all its resources, except pictures of sessions.
func (v *visitor) weight() int {
	page, n := v.page, len(v.page)
	for _, m := range assetURL.FindAllStringSubmatch(page, -1) {
		n += len(v.get(m[1]).want(http.StatusOK).page)
	}
	return n
}

// Settings that have no effect yet are named first, and their values are not requested.
func TestAssistant_SaysWhatHasNoEffect(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	v.get(helloPath+"/assistant").want(http.StatusOK, "This server has no realtime models")
	h.assistant.RealtimeModels = func(context.Context, string, string) ([]assistant.Offer, error) {
		return []assistant.Offer{{ID: "standard", Voices: []string{"ember"},
			Price: assistant.SoundPrice{In: 19_200, Out: 76_800}}}, nil
	}
	v.get(helloPath+"/assistant").want(http.StatusOK, "The models and the voice take effect with the next call.",
		"Costs about $0.0192 for a minute that it hears and $0.0768 for one that it speaks").lacks("no realtime models")
	v.get("/account/mcp-access").want(http.StatusOK, "Memory within a conversation and sounds have no effect yet")
	v.get(helloPath).want(http.StatusOK, "Connection page").lacks("its models, voice and memory")
}
