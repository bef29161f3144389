//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/oidctest"
)

// A user with an agent's code signs up with a provider in Chromium and approves that code. Later the user signs in
// again without being asked for consent, and can disconnect the provider after adding another way to sign in.
func TestProvider_SignUpApprovesDeviceCode(t *testing.T) {
	t.Parallel()
	provider, b := startProvider(t, "")
	provider.Ask()
	provider.Be(oidctest.Person{Subject: "s1", Email: "ada@example.org", EmailVerified: true})
	a := startAgent(newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1"), "modern", false)
	asked := a.call("listProjects", map[string]any{})
	browser := newBrowser(t)

	run(t, browser, "open the activation page", chromedp.Navigate(asked.str(t, "verificationUrl")),
		chromedp.WaitVisible("#user-code"))
	staysOnThisSite(t, browser, provider)
	run(t, browser, "open it again", chromedp.Navigate(asked.str(t, "verificationUrl")),
		chromedp.WaitVisible("#user-code"))
	throughAcme(t, browser, "yes")
	run(t, browser, "agree", until(`location.pathname === "/signin/welcome" && document.body.innerText.includes("ada@example.org")`),
		chromedp.Click("#accept"), chromedp.Click("main button[type=submit]"), chromedp.WaitVisible("#approve"))
	if shown := strings.TrimSpace(textOf(t, browser, "#user-code")); shown != asked.str(t, "userCode") {
		t.Errorf("after signing in at the provider the page shows the code %q, want the agent's code %q", shown,
			asked.str(t, "userCode"))
	}
	run(t, browser, "approve", chromedp.Click("#approve"), until(`location.pathname === "/activate/approved"`))
	if linked := a.call("completeAuthLink",
		map[string]any{"deviceCode": asked.str(t, "deviceCode")}); linked.Structured["linked"] != true {
		t.Fatalf("completeAuthLink did not link: %v", linked.Structured)
	}
	checkCookies(t, browser, b)

	settings := func(words string) chromedp.Action[chromedp.Void] {
		return until(fmt.Sprintf(`location.pathname.startsWith("/account/settings") && document.readyState === "complete" && document.querySelector("main").innerText.includes(%q)`, words))
	}
	signOut := func() {
		run(t, browser, "sign out", chromedp.Navigate(b.url+"/"), chromedp.Click(".who button"),
			until(`!document.querySelector(".who")`),
			chromedp.Navigate(b.url+"/signin?next=/account/settings"))
	}
	signOut()
	throughAcme(t, browser, "yes")
	run(t, browser, "sign in without being asked again", settings("as ada@example.org"))
	run(t, browser, "keep the last way in", chromedp.Click(`form[action$="/acme/unlink"] button`),
		settings("only way left"))
	run(t, browser, "set a password", chromedp.Click(`section[aria-labelledby=password-title] summary`),
		chromium.Type("#new-password", password),
		chromedp.Submit("#new-password"), settings("new password is saved"))
	run(t, browser, "unlink", chromedp.Click(`form[action$="/acme/unlink"] button`), settings("Not linked"))
	signOut()
	run(t, browser, "sign in with the password", chromium.Type("#email", "ada@example.org"),
		chromium.Type("#password", password),
		chromedp.Submit("#email"), settings("You have a password"))
	if wrong := provider.Refusals(); len(wrong) > 0 {
		t.Errorf("the provider refused requests because of %v", wrong)
	}
}

// throughAcme presses the provider's button and submits the form on the provider's page.
func throughAcme(t *testing.T, browser context.Context, answer string) {
	t.Helper()
	button := `form[action^="` + acme + `"] button`
	if words := textOf(t, browser, button); words != "Continue with Acme" {
		t.Errorf("the button reads %q, want Continue with Acme", words)
	}
	run(t, browser, "go to the provider", chromedp.Click(button), chromedp.WaitVisible("#"+answer),
		chromedp.Click("#"+answer))
}

// staysOnThisSite checks that forms on our pages cannot post to the provider; one of our pages redirects there
// instead.
func staysOnThisSite(t *testing.T, browser context.Context, provider *oidctest.Provider) {
	t.Helper()
	run(t, browser, "try to post a form to the provider", until(fmt.Sprintf(`(() => {
		document.addEventListener("securitypolicyviolation", e => { window.violated = e.effectiveDirective });
		const form = document.createElement("form");
		form.method = "post";
		form.action = %q;
		document.body.append(form);
		form.submit();
		return true;
	})()`, provider.Issuer+"/authorize")), until(`window.violated === "form-action"`))
	if n := provider.Calls("/authorize"); n != 0 {
		t.Errorf("forms were posted to the provider %d times, want none", n)
	}
}

// checkCookies checks that scripts cannot read our cookies, and that other sites' forms do not send them.
func checkCookies(t *testing.T, browser context.Context, b *remoteBackend) {
	t.Helper()
	all, err := chromium.Run(browser, func(ctx context.Context, target *chromedp.Target) (network.GetCookiesResult,
		error) {
		return cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{URLs: []string{b.url}})
	})
	if err != nil || len(all.Cookies) == 0 {
		t.Fatalf("got cookies %v (error %v), want at least one", all, err)
	}
	for _, c := range all.Cookies {
		if !c.HTTPOnly || c.SameSite != network.CookieSameSiteLax {
			t.Errorf("cookie %s: HttpOnly %v, SameSite %q; want true, Lax", c.Name, c.HTTPOnly, c.SameSite)
		}
	}
}

// upToCallback submits the provider's form, but stops before our callback and returns its URL.
func (p *person) upToCallback(b *remoteBackend, answer string) string {
	p.t.Helper()
	var callback string
	p.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(req.URL.Path, acme+"/callback") {
			callback = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	p.viaAcme(b)
	p.submit("/authorize", "say", answer)
	p.client.CheckRedirect = nil
	if callback == "" {
		p.t.Fatalf("the provider did not redirect to the callback (status %d):\n%s", p.status, p.text())
	}
	return callback
}

// broken lists the ways in which signing in with a provider can fail, and the text of the page that is shown for
// each.
var broken = []struct {
	name   string
	faults oidctest.Faults
	who    oidctest.Person // if empty, a person with an address verified by the provider
	says   string
}{
	{name: "denied", says: "cancelled"},
	{name: "another's nonce", faults: oidctest.Faults{Nonce: "other"}, says: "does not fit"},
	{name: "for another client", faults: oidctest.Faults{Audience: "other"}, says: "does not fit"},
	{name: "expired", faults: oidctest.Faults{Expired: true}, says: "does not fit"},
	{name: "token endpoint down", faults: oidctest.Faults{TokenStatus: http.StatusServiceUnavailable},
		says: "does not answer"},
	{name: "unverified address", who: oidctest.Person{Subject: "s2", Email: "eve@example.org"}, says: "does not vouch"},
	{name: "address of an unverified account", who: oidctest.Person{Subject: "s3", Email: "bob@example.org",
		EmailVerified: true}, says: "never confirmed"},
}

// Whichever step fails, the page offers a next step, no user is signed in, no row is left, and the log at debug level
// contains no secret.
func TestProvider_Errors(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, dump := newDatabase(t, engine)
			provider, b := startProvider(t, database, "SERVICE_BACKEND_LOG_LEVEL=debug")
			provider.Ask()
			bob := newPerson(t)
			bob.open(b.url + "/signup")
			bob.submit("/signup", "email", "bob@example.org", "password", password, "accept", "yes")
			bob.submit("/signout")

			var cookies []string
			visitor := func() *person {
				provider.SetFaults(oidctest.Faults{})
				provider.Be(oidctest.Person{Subject: "s1", Email: "ada@example.org", EmailVerified: true})
				return newPerson(t)
			}
			done := func(name, says string, p *person) {
				t.Helper()
				for _, c := range p.client.Jar.Cookies(p.at) {
					cookies = append(cookies, c.Value)
				}
				checkRefusal(t, b, name, says, p)
			}
			for _, one := range broken {
				someone := visitor()
				provider.SetFaults(one.faults)
				if one.who != (oidctest.Person{}) {
					provider.Be(one.who)
				}
				answer := "yes"
				if one.says == "cancelled" {
					answer = "no"
				}
				someone.open(someone.upToCallback(b, answer))
				done(one.name, one.says, someone)
			}
			strangeCallbacks(t, b, provider, visitor, done)

			text := dump()
			for table, want := range map[string]int{"accounts": 1, "identities": 0, "web_sessions": 0} {
				if n := rowsOf(text, table); n != want {
					t.Errorf("%d rows in %s, want %d", n, table, want)
				}
			}
			log := readAll(t, b.logs)
			secrets := append(append(provider.Secrets(), oidctest.ClientSecret), cookies...)
			if !strings.Contains(log, acme+"/callback") || len(secrets) < 40 {
				t.Errorf("the log is incomplete, or too few secrets were captured: %d", len(secrets))
			}
			for _, secret := range secrets {
				if strings.Contains(log, secret) || strings.Contains(text, secret) {
					t.Errorf("the log or the database contains %.12s...", secret)
				}
			}
		})
	}
}

// strangeCallbacks sends a provider's callback to the wrong browser, twice, or with another person's code.
func strangeCallbacks(t *testing.T, b *remoteBackend, provider *oidctest.Provider, visitor func() *person,
	done func(name, says string, p *person)) {
	t.Helper()
	mallory := visitor()
	lure := mallory.upToCallback(b, "yes")
	bystander := visitor()
	bystander.open(lure)
	done("a callback in a browser that started no sign-in", "not started in this browser", bystander)
	victim := visitor()
	victim.upToCallback(b, "yes")
	victim.open(lure)
	done("a callback of another browser's sign-in", "does not fit", victim)

	victim = visitor()
	own := victim.upToCallback(b, "yes")
	victim.open(swapCode(t, own, lure))
	done("another's code", "does not fit", victim)
	if refused := provider.Refusals(); !slices.Equal(refused, []string{"code_verifier"}) {
		t.Errorf("the provider refused %v, want the verifier that does not match the code", refused)
	}

	calls := provider.Calls("/token")
	twice := visitor()
	own = twice.upToCallback(b, "yes")
	twice.open(own)
	if twice.at.Path != "/signin/welcome" {
		t.Errorf("the correct callback led to %s (status %d), want /signin/welcome", twice.at, twice.status)
	}
	twice.open(own)
	done("a repeated callback", "not started in this browser", twice)
	if n := provider.Calls("/token") - calls; n != 1 {
		t.Errorf("a repeated callback redeemed the code %d times, want 1", n)
	}
}

// swapCode returns the callback URL with its code replaced by the code of another callback.
func swapCode(t *testing.T, callback, other string) string {
	t.Helper()
	theirs, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	own, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	q := own.Query()
	q.Set("code", theirs.Query().Get("code"))
	own.RawQuery = q.Encode()
	return own.String()
}

// checkRefusal checks an error page: its text, its next step, and that no user is signed in.
func checkRefusal(t *testing.T, b *remoteBackend, name, says string, p *person) {
	t.Helper()
	text := p.text()
	if p.status < 400 || p.status == http.StatusInternalServerError || !strings.Contains(text, says) {
		t.Errorf("%s: status %d, want an error page that explains it\n%s", name, p.status, text)
	}
	step := ""
	for n := range p.page.Descendants() {
		if n.Data == "a" && strings.HasPrefix(attr(n, "class"), "button") {
			step = attr(n, "href")
		}
	}
	p.open(b.url + step)
	if step == "" || p.status != http.StatusOK {
		t.Errorf("%s: the next step %q has status %d, want a link with status 200", name, step, p.status)
	}
	p.open(b.url + "/account/settings")
	if p.at.Path != "/signin" {
		t.Errorf("%s: somebody is signed in", name)
	}
}

// rowsOf counts a table's rows in a dump.
func rowsOf(dump, table string) int {
	return strings.Count(dump, "INSERT INTO "+table+" ") + strings.Count(dump, "INSERT INTO public."+table+" ")
}
