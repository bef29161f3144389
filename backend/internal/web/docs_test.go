package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

// TestDocs_AreCompleteAndPublic requests every page as an unknown visitor. The pages exist, their links work, and
// caches may store them.
func TestDocs_AreCompleteAndPublic(t *testing.T) {
	site := newSite(t, newPeople(t))
	v := visit(t, site)
	ids := map[string]bool{"/docs": true, "/": true, "/privacy": true, "/llms.txt": true}
	for _, p := range docs.Pages() {
		ids["/docs/"+p.ID], ids["/docs/"+p.ID+".md"] = true, true
		for _, s := range p.Sections {
			ids["/docs/"+s.ID] = true
		}
	}
	links := regexp.MustCompile(`href="([^"]*)"`)
	for _, p := range docs.Pages() {
		path := "/docs/" + p.ID
		v.get(path).want(http.StatusOK, "<h1>"+p.Title+"</h1>")
		if got := v.header.Get("Cache-Control"); !strings.HasPrefix(got, "public") {
			t.Errorf("%s: Cache-Control is %q, want public", path, got)
		}
		if v.header.Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", path)
		}
		for _, link := range links.FindAllStringSubmatch(v.page, -1) {
			to := link[1]
			if strings.HasPrefix(to, "#") {
				if to != "#main" && !strings.Contains(v.page, ` id="`+to[1:]+`"`) {
					t.Errorf("%s: the target of %s does not exist", path, to)
				}
			} else if !ids[to] && !strings.HasPrefix(to, "/assets/") {
				t.Errorf("%s: the target of %s does not exist", path, to)
			}
		}
		v.get(path+".md").want(http.StatusOK, "# "+p.Title)
		if got := v.header.Get("Content-Type"); got != "text/markdown; charset=utf-8" {
			t.Errorf("%s.md has the content type %s, want Markdown", path, got)
		}
	}
	v.get("/docs").want(http.StatusOK, "Getting started")
	v.get("/llms.txt").want(http.StatusOK, "(/docs/display.md): ")
	v.get("/docs/llms.txt").want(http.StatusOK, "# The service")
	v.get("/docs/nosuch").want(http.StatusNotFound, "does not exist")
	v.get("/docs/").want(http.StatusMovedPermanently)
}

func TestDocs_NotModified(t *testing.T) {
	site := newSite(t, newPeople(t))
	v := visit(t, site).get("/docs/display")
	tag := v.header.Get("ETag")
	req, err := http.NewRequest(http.MethodGet, site.URL+"/docs/display", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("If-None-Match", tag)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotModified || tag == "" {
		t.Errorf("ETag %q: got %s, want 304", tag, res.Status)
	}
}

// TestDocs_Search searches like a browser without scripts.
func TestDocs_Search(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t)))
	v.get("/docs/search?q=how+do+I+scroll+a+list").want(http.StatusOK, `<a href="/docs/`, "<mark>list</mark>")
	v.get("/docs/search?q="+url.QueryEscape(`<qqq>"x`)).want(http.StatusOK, "Nothing was found", "&lt;qqq&gt;")
	v.get("/docs/search?q=display").want(http.StatusOK, `value="display"`)
	v.get("/docs/search?q=%FF+" + strings.Repeat("a+", 5000)).want(http.StatusOK)
	v.get("/docs/search?q=+").want(http.StatusSeeOther)
	v.get("/docs/display").want(http.StatusOK, `action="/docs/search"`, `rel="prev"`, `rel="next"`)
}
