package web

import (
	"net/http"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
)

// Of two concurrent merges of the same projects, the second finds that they are already one project.
func TestMerge_LostRaceIsNotAnInternalError(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloPath + "/merge?into=com.example.other")
	if err := h.projects.Merge(t.Context(), adaID, hello, "com.example.other", audit.Person()); err != nil {
		t.Fatal(err)
	}
	v.post(helloPath+"/merge", v.form("into", "com.example.other")).want(http.StatusNotFound, "This page does not exist")
}

func TestChanges_AreLimitedPerAccount(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloPath)
	form := v.form("name", "laptop")
	for range accountChangesPerMinute {
		v.post(helloPath, form).want(http.StatusSeeOther)
	}
	made := len(h.called())
	v.post(helloPath+"/keys", form).want(http.StatusTooManyRequests, "Too many attempts", "Nothing was changed")
	// All forms and browsers share one limit.
	v.post("/account/links/link1/revoke", form).want(http.StatusTooManyRequests)
	second := signedIn(t, site, ada).get(helloPath)
	second.post(helloPath, second.form("name", "Hello")).want(http.StatusTooManyRequests)
	if v.header.Get("Retry-After") == "" || len(h.called()) != made {
		t.Errorf("got Retry-After %q and %d calls, want %d calls", v.header.Get("Retry-After"), len(h.called()), made)
	}
	v.get(helloPath).want(http.StatusOK)
	eve := signedIn(t, site, "eve@example.org").get("/account/mcp-access")
	eve.post("/account/mcp-access", eve.form("project", hello))
	if eve.status == http.StatusTooManyRequests {
		t.Error("the limit also applies to another account")
	}
}
