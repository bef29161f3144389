package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// Before approving, a user can read how much access each part of the account grants, and where to change that.
func TestActivation_ShowsWhatIsGranted(t *testing.T) {
	h := newDashboardWorld(t)
	h.addCode(code)
	site := dashboardSite(t, h)
	v := visit(t, site).get(page).signUp("a@example.com", page)
	v.want(http.StatusOK, "simulator", "See your projects", "make keys",
		"Read and change a project&#39;s assistant settings",
		"AI keys are set, never the keys", "Read a project&#39;s analytics",
		"Read and change a project&#39;s connection page",
		`href="/account/mcp-access"`, `href="/account"`)
	if list, approve := strings.Index(v.page, "connection page"), strings.Index(v.page, `id="approve"`); list > approve {
		t.Error("the page describes the access after the button that grants it")
	}
}

// A signed-in user sees the access granted by the account's own default.
func TestActivation_ShowsTheAccountsDefault(t *testing.T) {
	h, usual := newDashboardWorld(t), grants.Default()
	usual.Analytics = grants.Off
	if err := h.grants.SetDefault(t.Context(), adaID, usual, false, false, audit.Person()); err != nil {
		t.Fatal(err)
	}
	h.addCode(code)
	v := signedIn(t, dashboardSite(t, h), ada).get(page).want(http.StatusOK, "AI keys are set")
	if strings.Contains(v.page, "project&#39;s analytics") {
		t.Error("the page promises analytics, which the account's default does not grant")
	}
}

// The text follows the current defaults: a part without access by default is not listed.
func TestGranted_FollowsTheGrants(t *testing.T) {
	g := grants.Default()
	g.Analytics, g.Credentials = grants.Off, grants.Read
	for _, field := range grants.Fields() {
		g.Assistant[field] = grants.Read
	}
	got := strings.Join(granted(g), "\n")
	for text, want := range map[string]bool{"analytics": false, "ask you to paste": false, "AI keys are set": true,
		"change a project's assistant": false, "Read a project's assistant": true} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q is present: %t, want %t, in:\n%s", text, !want, want, got)
		}
	}
}
