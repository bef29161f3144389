package web

import (
	"net/http"
	"strings"
	"testing"
)

// hostedID is the ID of hello's connection page.
const hostedID = "cp_abcdefghij234567abcd"

func TestHostedConnectionPage(t *testing.T) {
	h := newDashboardWorld(t)
	h.setTitle("Sous-chef <script>")
	v := visit(t, dashboardSite(t, h))
	v.get("/connect/"+hostedID).want(http.StatusOK, "Sous-chef &lt;script&gt;", "<script>")
	policy := v.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors *"} {
		if !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy does not contain %s: %s", part, policy)
		}
	}
	etag := v.header.Get("ETag")
	if v.header.Get("Set-Cookie") != "" || v.header.Get("X-Frame-Options") != "" ||
		v.header.Get("Cache-Control") != "public, max-age=60" || etag == "" {
		t.Errorf("got headers %v, want a public page without a cookie", v.header)
	}
	ask := func(want int) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, v.site+"/connect/"+hostedID, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("If-None-Match", etag)
		v.do(req).want(want)
	}
	ask(http.StatusNotModified)
	h.setTitle("Chef")
	ask(http.StatusOK)
	for _, id := range []string{"cp_aaaaaaaaaaaaaaaaaaaa", "x", "%00"} {
		v.get("/connect/" + id).want(http.StatusNotFound)
	}
}

func TestPreview_OnlyForItsAccount(t *testing.T) {
	h := newDashboardWorld(t)
	h.setTitle("Sous-chef")
	site := dashboardSite(t, h)
	const preview = helloPath + "/connection-page/preview"
	v := visit(t, site).get(preview).want(http.StatusSeeOther)
	v.get("/signin").send(withNext("/signin", preview), "email", ada, "password", password).onward().want(http.StatusOK, "Sous-chef", "Not connected")
	if policy := v.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "frame-ancestors 'self'") ||
		strings.Contains(policy, "script") ||
		v.header.Get("X-Frame-Options") != "SAMEORIGIN" || strings.Contains(v.page, "<script") {
		t.Errorf("policy %s", policy)
	}
	v.get(preview+"?state=connected").want(http.StatusOK, "Sample glasses", "82%")
	v.get("/account/projects/com.example.missing/connection-page/preview").want(http.StatusNotFound)
	bob := visit(t, site).get("/signup").signUp("bob@example.com", "/privacy")
	bob.get(preview).want(http.StatusNotFound)
}
