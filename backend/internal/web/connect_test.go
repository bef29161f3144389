package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/connpage"
)

// hostedFake serves the page of ada's only project.
type hostedFake struct{ title string }

const hostedID = "cp_abcdefghij234567abcd"

func (f *hostedFake) page() connpage.Page {
	return connpage.Page{Project: "com.example.app", PageID: hostedID, Title: f.title, Theme: "auto", Accent: "#0b6b68",
		Toggles: []connpage.Toggle{{ID: "captions", Label: "Captions", On: true}}}
}

func (f *hostedFake) Get(_ context.Context, account, project string) (connpage.Page, error) {
	if account != "id-ada@example.com" || project != "com.example.app" {
		return connpage.Page{}, connpage.ErrNotFound
	}
	return f.page(), nil
}

func (f *hostedFake) ByPageID(_ context.Context, id string) (connpage.Page, error) {
	if id != hostedID {
		return connpage.Page{}, connpage.ErrNotFound
	}
	return f.page(), nil
}

func TestHostedConnectionPage(t *testing.T) {
	f := &hostedFake{title: "Sous-chef <script>"}
	v := visit(t, newSite(t, newFake(), func(o *Options) { o.HostedPages = f }))
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
	f.title = "Chef"
	ask(http.StatusOK)
	for _, id := range []string{"cp_aaaaaaaaaaaaaaaaaaaa", "x", "%00"} {
		v.get("/connect/" + id).want(http.StatusNotFound)
	}
}

func TestPreview_OnlyForItsAccount(t *testing.T) {
	site := newSite(t, newFake(), func(o *Options) { o.HostedPages = &hostedFake{title: "Sous-chef"} })
	const preview = "/account/projects/com.example.app/connection-page/preview"
	v := visit(t, site).get(preview).want(http.StatusSeeOther)
	v.get("/signup").signUp("ada@example.com", preview).want(http.StatusOK, "Sous-chef", "Not connected")
	if policy := v.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "frame-ancestors 'self'") ||
		strings.Contains(policy, "script") ||
		v.header.Get("X-Frame-Options") != "SAMEORIGIN" || strings.Contains(v.page, "<script") {
		t.Errorf("policy %s", policy)
	}
	v.get(preview+"?state=connected").want(http.StatusOK, "Sample glasses", "82%")
	v.get("/account/projects/com.example.other/connection-page/preview").want(http.StatusNotFound)
	bob := visit(t, site).get("/signup").signUp("bob@example.com", "/privacy")
	bob.get(preview).want(http.StatusNotFound)
}
