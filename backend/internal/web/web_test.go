package web

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPages_HaveSecurityHeaders(t *testing.T) {
	site := newSite(t, newPeople(t, code))
	for _, path := range []string{"/", page, "/activate", "/activate?code=none", "/signin", "/signup", "/privacy",
		"/nowhere", "/activate/approved"} {
		h := visit(t, site).get(path).header
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"X-Content-Type-Options": "nosniff", "Content-Type": "text/html; charset=utf-8",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'",
			"base-uri 'none'", "script-src 'self'", "style-src 'self'"} {
			if !strings.Contains(h.Get("Content-Security-Policy"), part) {
				t.Errorf("%s: the policy does not contain %s", path, part)
			}
		}
	}
}

func TestCookieOfAnInstance(t *testing.T) {
	for _, tc := range []struct {
		embedded             bool
		instance, site, name string
		secure               bool
	}{
		{true, "test01", "", "service-test01", false},
		{false, "test01", "", "__Host-service-test01", true},
		{false, "", "https://glasses.example", "__Host-service", true},
		{false, "", "https://glasses.example:8443", "__Host-service-8443", true}, // a browser sends cookies to all ports
		{false, "", "https://glasses.example:443", "__Host-service", true},
		{false, "", "http://127.0.0.1:8080", "service-8080", false},
		{false, "", "http://localhost:8081", "service-8081", false},
		{false, "", "http://[::1]:8080", "service-8080", false},
		// The configuration rejects this address. If it were accepted, its cookies would be those for https.
		{false, "", "http://glasses.example", "__Host-service", true},
	} {
		site := newSite(t, newPeople(t), func(o *Options) {
			o.Embedded, o.InstanceID, o.SiteURL = tc.embedded, tc.instance,
				tc.site
		})
		res, err := http.Get(site.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		c := res.Cookies()[0]
		if c.Name != tc.name || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != tc.secure || c.Path != "/" {
			t.Errorf("embedded %v, %q: got cookie %v, want the case's name and Secure", tc.embedded, tc.site, c)
		}
	}
}

// strictJar drops Secure cookies over plain http, like Safari and older browsers do even on this machine.
type strictJar struct{ http.CookieJar }

func (j strictJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	if u.Scheme == "http" {
		cookies = slices.DeleteFunc(cookies, func(c *http.Cookie) bool { return c.Secure })
	}
	j.CookieJar.SetCookies(u, cookies)
}

func TestSignUpByPlainHTTPOnThisMachine(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t), func(o *Options) {
		o.Embedded, o.InstanceID, o.SiteURL = false, "",
			"http://127.0.0.1:8080"
	}))
	v.client.Jar = strictJar{v.client.Jar}
	v.get("/signup").signUp("ada@example.org", "/").want(http.StatusOK, "ada@example.org")
}

func TestAssets_AreCacheable(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t))).get("/")
	sheet := regexp.MustCompile(`/assets/style\.css\?v=[0-9a-f]+`).FindString(v.page)
	v.get(sheet).want(http.StatusOK, "prefers-color-scheme")
	if !strings.Contains(v.header.Get("Cache-Control"), "immutable") ||
		!strings.HasPrefix(v.header.Get("Content-Type"), "text/css") {
		t.Errorf("got headers %v, want an immutable style sheet", v.header)
	}
	v.get("/assets/none.css").want(http.StatusNotFound, "does not exist")
}

func TestErrorPages(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t)))
	v.get("/nowhere").want(http.StatusNotFound, "does not exist")
	v.post("/signin", nil).want(http.StatusForbidden, "nothing was changed")

	f := newPeople(t)
	broken := visit(t, newSite(t, f)).get("/signup")
	form := broken.tokens()
	form.Set("email", "a@example.com")
	form.Set("password", "correct horse battery")
	form.Set("accept", "yes")
	f.exec("ALTER TABLE accounts RENAME TO lost")
	broken.post("/signup", form).want(http.StatusInternalServerError, "on our side")
	if strings.Contains(broken.page, "no such table") {
		t.Error("the page reveals the internal error")
	}
}

func TestPrivacyPage_NamesSupport(t *testing.T) {
	visit(t, newSite(t, newPeople(t))).get("/privacy").want(http.StatusOK, "help@example.com")
	visit(t, newSite(t, newPeople(t), func(o *Options) { o.SupportContact = "" })).get("/privacy").want(http.StatusOK,
		"whoever operates")
}

func TestSiteURL_IsTrustedBehindRewritingProxy(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t), func(o *Options) { o.SiteURL = "https://glasses.example/base" })).get("/signup")
	form := v.tokens()
	form.Set("email", "a@example.com")
	form.Set("password", "correct horse battery")
	form.Set("accept", "yes")
	v.post("/signup", form, "Origin", "https://glasses.example").want(http.StatusSeeOther)
}

func TestNew_RefusesBadOptions(t *testing.T) {
	f := newPeople(t)
	for name, o := range map[string]Options{
		"no links":  {Accounts: f.accounts, Key: make([]byte, 32)},
		"short key": {Accounts: f.accounts, Links: f.links, Key: make([]byte, 31)},
		"site URL":  {Accounts: f.accounts, Links: f.links, Key: make([]byte, 32), SiteURL: "localhost"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted, want an error", name)
		}
	}
}
