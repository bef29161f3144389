package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A browser that has signed in with an address is still recognised after it signed out, unlike other browsers. The
// cookie that identifies it can be neither forged nor moved to another browser.
func TestKnownBrowser_SignsInUnderItsName(t *testing.T) {
	now := time.Now()
	f := newFake()
	f.people["ada@example.org"], f.people["bob@example.org"] = password, password
	site := newSite(t, f, func(o *Options) { o.Now = func() time.Time { return now } })
	signIn := func(v *visitor, email string) *visitor {
		t.Helper()
		v.get("/signin")
		form := v.tokens()
		form.Set("email", email)
		form.Set("password", password)
		return v.post("/signin", form)
	}
	last := func() string { return f.browsers[len(f.browsers)-1] }

	v := visit(t, site)
	signIn(v, "ada@example.org").want(http.StatusSeeOther)
	if last() != "" {
		t.Error("a new browser is recognised")
	}
	v.get("/")
	v.post("/signout", v.tokens()).want(http.StatusSeeOther)
	f.spent = true
	signIn(v, " ADA@example.org").want(http.StatusSeeOther)
	name := last()
	if len(name) < 20 {
		t.Errorf("the browser's name %q is too short", name)
	}
	v.get("/")
	v.post("/signout", v.tokens()).want(http.StatusSeeOther)
	signIn(v, "bob@example.org").want(http.StatusTooManyRequests,
		"Too many wrong passwords were tried for this e-mail address")
	if v.header.Get("Retry-After") != "90" {
		t.Errorf("Retry-After is %q, want 90", v.header.Get("Retry-After"))
	}
	f.busy = true
	signIn(visit(t, site), "ada@example.org").want(http.StatusServiceUnavailable, "Too many people are signing in")
	f.busy = false
	other := visit(t, site)
	signIn(other, "ada@example.org").want(http.StatusTooManyRequests)
	signIn(other, "nobody@example.org").want(http.StatusTooManyRequests,
		"Too many wrong passwords were tried for this e-mail address")

	now = now.Add(knownBrowserLife + time.Hour)
	signIn(v, "ada@example.org").want(http.StatusTooManyRequests)
}

func TestKnownBrowser_ForgedCookieIsIgnored(t *testing.T) {
	f := newFake()
	f.people["ada@example.org"] = password
	site := newSite(t, f)
	v := visit(t, site).get("/signin")
	form := v.tokens()
	form.Set("email", "ada@example.org")
	form.Set("password", password)
	v.post("/signin", form).want(http.StatusSeeOther)
	var cookie *http.Cookie
	for _, c := range (&http.Response{Header: v.header}).Cookies() {
		if strings.Contains(c.Name, "-known-") {
			cookie = c
		}
	}
	if cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
		strings.Contains(cookie.Name+cookie.Value, "ada") {
		t.Fatalf("got cookie %v", cookie)
	}
	parts := strings.Split(cookie.Value, ".")
	if len(parts) != 3 {
		t.Fatalf("the cookie has the value %q, want three parts", cookie.Value)
	}
	for name, value := range map[string]string{
		"another name": parts[0] + ".ANOTHERNAMEANOTHERNAMEANOT." + parts[2], "a later end": "zzzzzz." + parts[1] + "." +
			parts[2],
		"no signature": parts[0] + "." + parts[1], "nothing": "", "far too long": strings.Repeat("x", 500),
	} {
		other := visit(t, site).get("/signin")
		form.Set("csrf", other.tokens().Get("csrf"))
		req, _ := http.NewRequest(http.MethodPost, site.URL+"/signin", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.AddCookie(&http.Cookie{Name: cookie.Name, Value: value})
		other.do(req).want(http.StatusSeeOther)
		if got := f.browsers[len(f.browsers)-1]; got != "" {
			t.Errorf("%s: the browser is recognised as %q, want it unknown", name, got)
		}
	}
}
