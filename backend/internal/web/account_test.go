package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestSignUp_ShowsErrorsBesideTheFields(t *testing.T) {
	f := newPeople(t, code)
	f.add("taken@example.com")
	site := newSite(t, f)
	for _, tc := range []struct {
		name, email, password, accept string
		want                          string
	}{
		{"no e-mail", "", "long enough password", "yes", `id="email-error"`},
		{"not an address", "ada", "long enough password", "yes", `id="email-error"`},
		{"two addresses", "a@b.c, d@e.f", "long enough password", "yes", `id="email-error"`},
		{"taken", "taken@example.com", "long enough password", "yes", "Sign in instead"},
		{"short password", "a@example.com", "123456789", "yes", `id="password-error"`},
		{"long password", "a@example.com", strings.Repeat("x", 201), "yes", `id="password-error"`},
		{"privacy not accepted", "a@example.com", "long enough password", "", `id="accept-error"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, next := range []string{"/", page} {
				v := visit(t, site).get(withNext("/signup", next))
				if next == page {
					v.want(http.StatusOK, code) // the code stays visible
				}
				form := v.tokens()
				form.Set("email", tc.email)
				form.Set("password", tc.password)
				form.Set("accept", tc.accept)
				v.post(withNext("/signup", next), form).want(http.StatusUnprocessableEntity, tc.want, `aria-invalid="true"`,
					`role="alert"`, `<title>Error:`)
				if tc.email != "" && !strings.Contains(v.page, `value="`+tc.email+`"`) {
					t.Error("the e-mail address was not kept")
				}
				if tc.password != "" && strings.Contains(v.page, tc.password) {
					t.Error("the page contains the password")
				}
			}
		})
	}
	if f.count("web_sessions") != 0 {
		t.Error("a rejected form signed somebody in")
	}
}

func TestPassword_IsMeasuredInCharacters(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t))).get("/signup")
	form := v.tokens()
	form.Set("email", "a@example.com")
	form.Set("password", strings.Repeat("眼", 10))
	form.Set("accept", "yes")
	v.post("/signup", form).want(http.StatusSeeOther)
}

func TestSignIn_FailuresLookTheSame(t *testing.T) {
	f := newPeople(t)
	f.add("a@example.com")
	v := visit(t, newSite(t, f))
	answers := map[string]bool{}
	for _, email := range []string{"a@example.com", "b@example.com"} {
		v.get("/signin")
		form := v.tokens()
		form.Set("email", email)
		form.Set("password", "wrong horse battery")
		v.post("/signin", form).want(http.StatusUnprocessableEntity, email)
		answers[strings.ReplaceAll(v.page, email, "")] = true
	}
	if len(answers) != 1 {
		t.Error("the responses distinguish an unknown address from a wrong password")
	}
	form := v.tokens()
	form.Set("email", "a@example.com")
	form.Set("password", "correct horse battery")
	v.post("/signin?next=/privacy", form).want(http.StatusSeeOther)
	if got := v.header.Get("Location"); got != "/privacy" {
		t.Errorf("redirected to %q, want /privacy", got)
	}
}

func TestSignIn_IsLimitedPerAddress(t *testing.T) {
	address := "192.0.2.1"
	v := visit(t, newSite(t, newPeople(t), func(o *Options) { o.ClientIP = func(*http.Request) string { return address } }))
	v.get("/signin")
	form := v.tokens()
	form.Set("email", "a@example.com")
	form.Set("password", "wrong horse battery")
	for i := range signInsPerMinute {
		form.Set("email", fmt.Sprintf("a%d@example.com", i))
		v.post("/signin", form).want(http.StatusUnprocessableEntity)
	}
	form.Set("email", "a@example.com")
	v.post("/signin", form).want(http.StatusTooManyRequests, "Too many attempts")
	if v.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	address = "192.0.2.2"
	v.post("/signin", form).want(http.StatusUnprocessableEntity)
}

func TestSignIn_ChangesCookieAndToken(t *testing.T) {
	site := newSite(t, newPeople(t))
	v := visit(t, site).get("/signup")
	before, u := v.tokens().Get("csrf"), mustURL(site.URL)
	cookie := v.client.Jar.Cookies(u)[0].Value
	v.signUp("a@example.com", "/").want(http.StatusOK, "a@example.com")
	if v.tokens().Get("csrf") == before || v.client.Jar.Cookies(u)[0].Value == cookie {
		t.Error("the cookie or the token did not change at sign-in")
	}
	signedIn := v.client.Jar.Cookies(u)[0]
	v.post("/signout", v.tokens()).want(http.StatusSeeOther)
	v.get("/").want(http.StatusOK, "Create an account")
	v.client.Jar.SetCookies(u, []*http.Cookie{signedIn})
	v.get("/").want(http.StatusOK, "Create an account") // the server no longer accepts the old cookie
}

// A user who signs up or in without coming from another page continues on the dashboard, if there is one.
func TestSignIn_LeadsToTheDashboard(t *testing.T) {
	site := dashboardSite(t, newDashboardWorld(t))
	v := visit(t, site).get("/signup").signUp("new@example.org", "/").want(http.StatusOK, "First steps")
	to := func(want string) {
		t.Helper()
		if got := v.header.Get("Location"); got != want {
			t.Errorf("it leads to %s, want %s", got, want)
		}
	}
	v.get("/signin").want(http.StatusSeeOther) // signed in already
	to("/account")
	v.get("/signin?next=/docs").want(http.StatusSeeOther)
	to("/docs")
	v.post("/signout", v.get("/account").tokens()).want(http.StatusSeeOther)
	to("/")
	for next, want := range map[string]string{"": "/account", "?next=/docs": "/docs"} {
		v = visit(t, site).get("/signin" + next)
		form := v.tokens()
		form.Set("email", ada)
		form.Set("password", password)
		v.post("/signin"+next, form).want(http.StatusSeeOther)
		to(want)
	}
	without := visit(t, newSite(t, newPeople(t))).get("/signup")
	without.signUp("new@example.org", "/").want(http.StatusOK, "Signed in as")
}

func TestSignOut_ReturnsToTheCode(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t, code))).get(page).signUp("a@example.com", page)
	v.post(withNext("/signout", page), v.tokens()).want(http.StatusSeeOther)
	v.get(v.header.Get("Location")).want(http.StatusOK, code, "Create account")
}

func TestLocalPath_StaysOnThisSite(t *testing.T) {
	for next, want := range map[string]string{
		"/s/ses_abc":                    "/s/ses_abc",
		"/activate?code=WDJB-MJHT":      "/activate?code=WDJB-MJHT",
		"":                              "/",
		"https://evil.example":          "/",
		"//evil.example":                "/",
		"/\\evil.example":               "/",
		"/\t/evil.example":              "/",
		"\\/evil.example":               "/",
		"/x//evil.example":              "/",
		"/.//evil.example":              "/",
		"/%2f/evil.example":             "/",
		"javascript:alert(1)":           "/",
		"/signout":                      "/",
		"/" + strings.Repeat("a", 2000): "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("localPath(%q) = %q, want %q", next, got, want)
		}
	}
	v := visit(t, newSite(t, newPeople(t))).get("/signup?next=" + url.QueryEscape("//evil.example"))
	form := v.tokens()
	form.Set("email", "a@example.com")
	form.Set("password", "correct horse battery")
	form.Set("accept", "yes")
	v.post("/signup?next="+url.QueryEscape("//evil.example"), form).want(http.StatusSeeOther)
	if got := v.header.Get("Location"); got != "/" {
		t.Errorf("redirected to %q, want /", got)
	}
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}
