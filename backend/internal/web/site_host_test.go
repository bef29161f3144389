package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

var opened = []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}

// newNamedSite returns an embedded site whose pages are at service-test.localhost, and its address at localhost.
func newNamedSite(t *testing.T, change ...func(*Options)) (site *httptest.Server, name string) {
	t.Helper()
	site = httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	name = "http://service-test.localhost:" + port
	f := newSignIns(t, code)
	f.box.off = true
	f.add("ada@example.org")
	site.Config.Handler = newWeb(t, f, append([]func(*Options){func(o *Options) { o.SiteURL = name }}, change...)...)
	site.Start()
	t.Cleanup(site.Close)
	site.URL = "http://localhost:" + port
	return site, name
}

// The server itself never redirects from localhost: it probes the browser first, and only for pages that a user opens.
func TestSiteHost_IsOfferedForOpenedPagesOnly(t *testing.T) {
	site, name := newNamedSite(t)
	v := visit(t, site)
	v.fetched("/signin?next=/account", opened...).want(http.StatusOK, `href="`+name+`/signin?next=/account"`,
		"Continue here")
	if policy := v.header.Get("Content-Security-Policy"); !strings.Contains(policy, "connect-src "+name+";") ||
		strings.Contains(policy, "unsafe") || v.header.Get("Set-Cookie") != "" {
		t.Errorf("got the policy %q and the cookie %q", policy, v.header.Get("Set-Cookie"))
	}
	v.get("/signin").want(http.StatusOK, "Password") // a program
	v.fetched("/signin", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty").
		want(http.StatusOK, "Password")
	v.send("/signin", "email", "ada@example.org", "password", adaPassword).want(http.StatusSeeOther)
	v.fetched("/assets/mark.svg", opened...).want(http.StatusOK, "<svg")

	v.fetched("/stay?next=%2Fsignin%3Fnext%3D%2Faccount%2Fsettings", opened...).want(http.StatusSeeOther)
	if to := v.header.Get("Location"); to != "/signin?next=/account/settings" {
		t.Errorf("staying leads to %s", to)
	}
	v.fetched("/docs", opened...).want(http.StatusOK, "Documentation")
	v.fetched("/stay?next=https%3A%2F%2Fevil.example", opened...).want(http.StatusSeeOther)
	if to := v.header.Get("Location"); to != "/" {
		t.Errorf("staying with a foreign address leads to %s, want /", to)
	}
}

func TestSiteHost_ProbeAnswersOwnPagesOnly(t *testing.T) {
	site, name := newNamedSite(t)
	u, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host, origin string
		status       int
		allowed      bool
	}{
		{u.Host, site.URL, http.StatusOK, true},
		{u.Host, "http://127.0.0.1:" + u.Port(), http.StatusOK, true},
		{u.Host, "http://localhost:1", http.StatusOK, false},
		{u.Host, "https://evil.example", http.StatusOK, false},
		{u.Host, "", http.StatusOK, false},
		{"localhost:" + u.Port(), site.URL, http.StatusNotFound, false},
	} {
		r, _ := http.NewRequest(http.MethodGet, site.URL+probePath+"abc", nil)
		r.Host = test.host
		r.Header.Set("Origin", test.origin)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		allowed := res.Header.Get("Access-Control-Allow-Origin")
		if res.StatusCode != test.status || (allowed == test.origin && allowed != "") != test.allowed {
			t.Errorf("%s from %q: got %d and the allowed origin %q", test.host, test.origin, res.StatusCode, allowed)
		}
	}
}

// A browser that resolves the name moves there with path, query and fragment.
func TestSiteHost_BrowserThatResolvesIt(t *testing.T) {
	site, name := newNamedSite(t)
	s := &pageTest{t: t, site: site, ctx: newBrowser(t)}
	s.open("/signin?next=/account/settings#here")
	s.see(`location.href === "` + name + `/signin?next=/account/settings#here" && document.querySelector("#password")`)
}

// A browser that does not resolve the name stays at localhost, where everything but passkeys works. It is probed once.
func TestSiteHost_BrowserThatDoesNotResolveIt(t *testing.T) {
	site, name := newNamedSite(t, asksProof)
	s := &pageTest{t: t, site: site, ctx: newBrowser(t)}
	s.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.SetBlockedURLs, network.SetBlockedURLsParams{
			URLPatterns: []*network.BlockPattern{{URLPattern: name + "/*", Block: true}}})
		return err
	}))
	s.open("/signin?next=/account/settings#here")
	s.see(`location.href === "` + site.URL +
		`/signin?next=/account/settings#here" && document.querySelector("#password")`)
	if eval[bool](s, `!!document.querySelector("[data-passkey]")`) {
		t.Error("the sign-in at localhost offers passkeys, which are bound to the name")
	}
	s.do(chromium.Type("#email", "ada@example.org"), chromium.Type("#password", adaPassword),
		chromedp.Submit("#email"))
	s.see(`document.querySelector("h1")?.textContent === "Account settings"`)
	if text := s.text("main"); !strings.Contains(text, "Passkeys work only at "+name) {
		t.Errorf("the settings do not say where passkeys work:\n%s", text)
	}
	s.open(page)
	s.see(`document.querySelector("#password")`)
	s.do(chromium.Type("#password", adaPassword), chromedp.Click("#approve"))
	s.see(`location.href === "` + site.URL + `/activate/approved"`)
}

// Without scripts, the user chooses where to continue.
func TestSiteHost_WithoutScript(t *testing.T) {
	site, _ := newNamedSite(t)
	s := &pageTest{t: t, site: site, ctx: newBrowser(t)}
	s.withoutScripts()
	s.open("/signin")
	s.picture("move")
	s.do(chromedp.Click("#stay"))
	s.see(`location.href === "` + site.URL + `/signin" && document.querySelector("#password")`)
}

// After a sign-in with the password, an account whose passkeys all belong to another host is asked to add one again.
// Its old passkeys are not offered as a proof.
func TestSiteHost_PasskeysOfAnotherHost(t *testing.T) {
	f := newSignIns(t, code)
	f.box.off = true
	f.add("ada@example.org")
	const name = "service-test.localhost"
	site := newSite(t, f, asksProof, func(o *Options) { o.SiteURL = "http://" + name })
	for _, test := range []struct {
		hosts []string
		lost  bool
	}{{nil, false}, {[]string{""}, true}, {[]string{"localhost", ""}, true}, {[]string{"localhost", name}, false}} {
		f.exec("DELETE FROM passkeys")
		for i, host := range test.hosts {
			f.exec(`INSERT INTO passkeys (id, account_id, credential_id, name, credential, sign_count, created_at, host)
				VALUES ($1, $2, $1, 'mine', '{}', 0, 1, $3)`, fmt.Sprint("k", i), idOf("ada@example.org"), host)
		}
		v := visit(t, site)
		v.host = name
		v.get("/signin").send("/signin", "email", "ada@example.org", "password", adaPassword).want(http.StatusSeeOther)
		if got := v.header.Get("Location") == settingsPath+"?done=passkeys-lost"; got != test.lost {
			t.Errorf("hosts %q: the sign-in leads to %s, want the settings: %v", test.hosts, v.header.Get("Location"),
				test.lost)
		}
		v.get(settingsPath+"?done=passkeys-lost").want(http.StatusOK, "Add a passkey again")
		if got := strings.Contains(v.page, "another address"); got != (len(test.hosts) > 0) {
			t.Errorf("hosts %q: the settings mark passkeys of another address: %v", test.hosts, got)
		}
		v.get(page).want(http.StatusOK)
		if got := strings.Contains(v.page, beginProofPath); got != (len(test.hosts) > 0 && !test.lost) {
			t.Errorf("hosts %q: a passkey is offered as a proof: %v", test.hosts, got)
		}
	}
}
