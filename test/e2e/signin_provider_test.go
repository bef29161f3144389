//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/oidctest"
)

const acme = "/signin/oidc/acme"

// startProvider starts an OpenID Connect provider and a backend that offers it.
func startProvider(t *testing.T, database string, variables ...string) (*oidctest.Provider, *remoteBackend) {
	t.Helper()
	p, err := oidctest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	file := filepath.Join(t.TempDir(), "providers.yaml")
	text := fmt.Sprintf("providers:\n- {id: acme, name: Acme, issuer: %q, client_id: %q, client_secret: %q}\n",
		p.Issuer, oidctest.ClientID, oidctest.ClientSecret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p, startBackend(t, database, append(variables, "SERVICE_BACKEND_OIDC_PROVIDERS="+file)...)
}

// viaAcme presses the provider's button and follows the next page.
func (p *person) viaAcme(b *remoteBackend) {
	p.t.Helper()
	p.open(b.url + "/signin")
	p.submit(acme)
	for n := range p.page.Descendants() {
		if n.Data == "a" && attr(n, "id") == "go" {
			p.open(attr(n, "href"))
			return
		}
	}
	p.t.Fatalf("the page has no link to follow (status %d):\n%s", p.status, p.text())
}

// Data is stored only after the user agrees, every invalid provider response leads to an error page, and only
// addresses verified by the provider count.
func TestProvider_StoresNothingBeforeAgreement(t *testing.T) {
	t.Parallel()
	provider, b := startProvider(t, newPostgres(t))
	provider.Be(oidctest.Person{Subject: "s1", Email: "ada@example.org", EmailVerified: true})
	for _, fault := range []struct {
		name   string
		faults oidctest.Faults
		want   string
	}{
		{"denied", oidctest.Faults{Deny: true}, "cancelled"},
		{"another's nonce", oidctest.Faults{Nonce: "other"}, "does not fit"},
		{"for another client", oidctest.Faults{Audience: "other"}, "does not fit"},
		{"of another issuer", oidctest.Faults{Issuer: "https://other.example"}, "does not fit"},
		{"expired", oidctest.Faults{Expired: true}, "does not fit"},
		{"unsigned", oidctest.Faults{Unsigned: true}, "does not fit"},
		{"foreign key", oidctest.Faults{ForeignKey: true}, "does not fit"},
		{"no token", oidctest.Faults{NoIDToken: true}, "does not fit"},
	} {
		provider.SetFaults(fault.faults)
		someone := newPerson(t)
		someone.viaAcme(b)
		if text := someone.text(); someone.status < 400 || !strings.Contains(text, fault.want) ||
			!strings.Contains(text, "Nothing was changed") {
			t.Errorf("%s: status %d, want an error page that explains it\n%s", fault.name, someone.status, text)
		}
	}
	provider.SetFaults(oidctest.Faults{})

	provider.Be(oidctest.Person{Subject: "s1", Email: "ada@example.org"})
	someone := newPerson(t)
	someone.viaAcme(b)
	if !strings.Contains(someone.text(), "does not vouch") {
		t.Errorf("an unverified address: the page does not explain it:\n%s", someone.text())
	}
	provider.Be(oidctest.Person{Subject: "s1", Email: "ada@example.org", EmailVerified: true})
	for range 2 { // leaving the consent page stores nothing, so the next sign-in shows it again
		someone.viaAcme(b)
		if someone.at.Path != "/signin/welcome" {
			t.Fatalf("sign-in led to %s, want /signin/welcome:\n%s", someone.at, someone.text())
		}
	}
	someone.submit("/signin/welcome", "accept", "yes")
	known := newPerson(t)
	known.viaAcme(b)
	if known.at.Path != "/account" || !strings.Contains(known.text(), "ada@example.org") {
		t.Errorf("sign-in of a known person led to %s, want /account:\n%s", known.at, known.text())
	}

	squatter := newPerson(t) // another user's account with bob's address
	squatter.open(b.url + "/signup")
	squatter.submit("/signup", "email", "bob@example.org", "password", password, "accept", "yes")
	provider.Be(oidctest.Person{Subject: "s2", Email: "bob@example.org", EmailVerified: true})
	bob := newPerson(t)
	bob.viaAcme(b)
	if !strings.Contains(bob.text(), "never confirmed") {
		t.Errorf("bob signed in to an account that somebody else may have created:\n%s", bob.text())
	}
}

// In Chromium with a virtual authenticator, an account works without a password from its sign-up with a provider
// until its deletion.
func TestPasskeys_AccountWithoutPassword(t *testing.T) {
	t.Parallel()
	provider, b := startProvider(t, "")
	provider.Be(oidctest.Person{Subject: "s1", Email: "ada@example.org", EmailVerified: true})
	browser := newBrowser(t)
	if _, err := chromium.Run(browser, addAuthenticator); err != nil {
		t.Fatal(err)
	}
	settings := b.url + "/account/settings"
	status := func(words string) chromedp.Action[chromedp.Void] {
		return until(fmt.Sprintf(`(document.querySelector("main [role=status], main [role=alert]")?.innerText ?? "").includes(%q)`, words))
	}
	run(t, browser, "sign up with a provider", chromedp.Navigate(b.url+"/signup"),
		chromedp.Click(`form[action="`+acme+`"] button`),
		until(`location.pathname === "/signin/welcome"`), chromedp.Click("#accept"), chromedp.Click("main button[type=submit]"), until(`location.pathname === "/account"`))
	run(t, browser, "keep the last way in", chromedp.Navigate(settings),
		until(`document.body.innerText.includes("You have no password")`),
		chromedp.Click(`form[action$="/acme/unlink"] button`), status("only way left"))
	run(t, browser, "add a passkey", chromedp.Navigate(settings), chromium.Type("#passkey-name", "my laptop"),
		chromedp.Click("form[data-passkey] button"), status("passkey is added"))
	run(t, browser, "unlink the provider", chromedp.Click(`form[action$="/acme/unlink"] button`), status("Unlinked"))
	run(t, browser, "keep the passkey", chromedp.Click(`form[action$="/remove"] button`), status("only way left"))
	run(t, browser, "sign out", chromedp.Click(".who button"), until(`!document.querySelector(".who")`))
	run(t, browser, "sign in with the passkey", chromedp.Navigate(b.url+"/signin?next=/account/settings"),
		chromedp.Click("form[data-passkey] button"), until(`location.pathname === "/account/settings" && document.body.innerText.includes("with a passkey")`))
	run(t, browser, "link the provider", chromedp.Click(`form[action$="/acme/link"] button`), status("Linked"))

	exported := evaluate[string](t, browser, exportScript)
	if !strings.Contains(exported, "ada@example.org") || !strings.Contains(exported, "my laptop") {
		t.Errorf("the export lacks the person's data:\n%.2000s", exported)
	}
	run(t, browser, "delete the account", chromedp.Navigate(settings+"/delete"),
		chromium.Type("#email", "ada@example.org"),
		chromedp.Click("main button.danger"), until(`location.pathname === "/goodbye" && !document.querySelector(".who")`))
	run(t, browser, "the passkey no longer works", chromedp.Navigate(b.url+"/signin"),
		chromedp.Click("form[data-passkey] button"), status("was not accepted"))
	run(t, browser, "the provider's person is treated as new", chromedp.Click(`form[action="`+acme+`"] button`),
		until(`location.pathname === "/signin/welcome"`))
}

// exportScript submits the export form as the button would, and puts the file's text into the page.
const exportScript = `(() => {
	const form = document.querySelector('form[action$="/export"]');
	const request = new XMLHttpRequest();
	request.open("POST", form.action, false);
	request.setRequestHeader("Content-Type", "application/x-www-form-urlencoded");
	request.send(new URLSearchParams(new FormData(form)));
	return request.getResponseHeader("Content-Disposition")?.startsWith("attachment") ? request.responseText : "no file";
})()`

// addAuthenticator adds a virtual device that stores passkeys and always approves.
func addAuthenticator(ctx context.Context, target *chromedp.Target) (webauthn.AuthenticatorID, error) {
	if _, err := cdp.Call(ctx, target, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		return "", err
	}
	made, err := cdp.Call(ctx, target, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: "ctap2", Transport: "internal", HasResidentKey: true, HasUserVerification: true, AutomaticPresenceSimulation: true, IsUserVerified: true,
		}})
	return made.AuthenticatorID, err
}
