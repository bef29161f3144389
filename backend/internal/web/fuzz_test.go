package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func FuzzNext(f *testing.F) {
	for _, s := range []string{"/", "//x", "/\\x", "/a?b=c", "http://x", "/\t/x", "/%2f/x", "/s/ses_a#f", "/.//x", "/@x",
		"/a:b"} {
		f.Add(s)
	}
	base := mustURL("https://site.example/signin")
	f.Fuzz(func(t *testing.T, next string) {
		got := localPath(next)
		u, err := url.Parse(got)
		if err != nil {
			t.Fatalf("localPath(%q) returned %q: %v", next, got, err)
		}
		if there := base.ResolveReference(u); there.Host != base.Host || there.Scheme != base.Scheme ||
			strings.HasPrefix(there.Path, "//") {
			t.Fatalf("%q leads to %s, want an address on this site", next, there)
		}
		rec := httptest.NewRecorder()
		http.Redirect(rec, httptest.NewRequest(http.MethodPost, "/signin", nil), got, http.StatusSeeOther)
		if l := rec.Header().Get("Location"); !strings.HasPrefix(l, "/") || strings.HasPrefix(l, "//") ||
			strings.ContainsAny(l, "\\\t\r\n") {
			t.Fatalf("next %q redirects to %q, want a local path", next, l)
		}
	})
}

func FuzzActivateCode(f *testing.F) {
	for _, s := range []string{code, "wdjb mjht", "", `"><script>alert(1)</script>`, "\x00", "BBBB-BBBB",
		strings.Repeat("-", 100) + "WDJBMJHT"} {
		f.Add(s, "signin")
	}
	h := newWeb(f, newPeople(f, code), func(o *Options) { o.ClientIP = func(r *http.Request) string { return r.URL.RawQuery } })
	f.Fuzz(func(t *testing.T, given, mode string) {
		query := url.Values{"code": {given}, "mode": {mode}}.Encode()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/activate?"+query, nil))
		if rec.Code != http.StatusOK && rec.Code != http.StatusNotFound && rec.Code != http.StatusBadRequest {
			t.Fatalf("status %d", rec.Code)
		}
		body := rec.Body.String()
		isForm := rec.Code == http.StatusBadRequest // the form shows a malformed code again
		if strings.Contains(body, "<script") || !isForm && strings.Contains(body, `value="`+code) {
			t.Fatalf("the code %q was echoed:\n%s", given, body)
		}
	})
}
