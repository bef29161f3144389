package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

// spendGuesses enters wrong passwords for an address in browsers that are unknown, until none is accepted.
func spendGuesses(t *testing.T, p *people, email string) {
	t.Helper()
	for {
		_, err := p.accounts.SignIn(t.Context(), email, "a wrong password", "")
		var spent *account.TooManyGuessesError
		if errors.As(err, &spent) {
			return
		}
		if !errors.Is(err, account.ErrBadCredentials) {
			t.Fatal(err)
		}
	}
}

// A browser that has signed in with an address is still recognised after it signed out, unlike other browsers. The
// cookie that identifies it can be neither forged nor moved to another browser.
func TestKnownBrowser_SignsInUnderItsName(t *testing.T) {
	f := newPeople(t)
	f.frozen = then
	f.add("ada@example.org")
	f.add("bob@example.org")
	site := newSite(t, f)
	signIn := func(v *visitor, email string) *visitor {
		t.Helper()
		v.get("/signin")
		form := v.tokens()
		form.Set("email", email)
		form.Set("password", password)
		return v.post("/signin", form)
	}
	v := visit(t, site)
	signIn(v, "ada@example.org").want(http.StatusSeeOther)
	v.get("/")
	v.post("/signout", v.tokens()).want(http.StatusSeeOther)
	for _, email := range []string{"ada@example.org", "bob@example.org", "nobody@example.org"} {
		spendGuesses(t, f, email)
	}
	signIn(v, " ADA@example.org").want(http.StatusSeeOther)
	v.get("/")
	v.post("/signout", v.tokens()).want(http.StatusSeeOther)
	signIn(v, "bob@example.org").want(http.StatusTooManyRequests,
		"Too many wrong passwords were tried for this e-mail address")
	if v.header.Get("Retry-After") != "360" {
		t.Errorf("Retry-After is %q, want 360", v.header.Get("Retry-After"))
	}
	other := visit(t, site)
	signIn(other, "ada@example.org").want(http.StatusTooManyRequests)
	signIn(other, "nobody@example.org").want(http.StatusTooManyRequests,
		"Too many wrong passwords were tried for this e-mail address")

	f.pass(knownBrowserLife + time.Hour)
	spendGuesses(t, f, "ada@example.org")
	signIn(v, "ada@example.org").want(http.StatusTooManyRequests)
}

// If too many passwords are being checked, the page says so.
func TestSignIn_Busy(t *testing.T) {
	rec := httptest.NewRecorder()
	w, err := New(Options{Accounts: newPeople(t).accounts, Links: newPeople(t).links, Key: make([]byte, minKeyBytes)})
	if err != nil {
		t.Fatal(err)
	}
	w.failWith(account.ErrBusy).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/signin", nil))
	if body := rec.Body.String(); rec.Code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "Too many people are signing in") {
		t.Errorf("got status %d and page %s", rec.Code, body)
	}
}

func TestKnownBrowser_ForgedCookieIsIgnored(t *testing.T) {
	f := newPeople(t)
	f.frozen = then
	f.add("ada@example.org")
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
	spendGuesses(t, f, "ada@example.org") // so that only a known browser can sign in
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
		if other.do(req); other.status != http.StatusTooManyRequests {
			t.Errorf("%s: got status %d, want the browser to be unknown", name, other.status)
		}
	}
}
