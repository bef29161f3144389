package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
)

// newPasskeyStage adds ada, and returns a browser with a virtual authenticator. WebAuthn requires a host name, so the
// site is localhost.
func newPasskeyStage(t *testing.T, f *people, change ...func(*Options)) (*pageTest, webauthn.AuthenticatorID) {
	t.Helper()
	f.add("ada@example.org")
	site := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	url := "http://localhost:" + port
	f.usePasskeys(url)
	site.Config.Handler = newWeb(t, f, append([]func(*Options){func(o *Options) { o.SiteURL = url }}, change...)...)
	site.Start()
	t.Cleanup(site.Close)
	site.URL = url
	s := &pageTest{t: t, site: site, ctx: newBrowser(t)}
	id, err := chromium.Run(s.ctx, func(ctx context.Context, target *chromedp.Target) (webauthn.AuthenticatorID, error) {
		if _, err := cdp.Call(ctx, target, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return "", err
		}
		made, err := cdp.Call(ctx, target, webauthn.AddVirtualAuthenticator,
			webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
				Protocol: "ctap2", Transport: "internal", HasResidentKey: true, HasUserVerification: true,
				AutomaticPresenceSimulation: true, IsUserVerified: true,
			}})
		return made.AuthenticatorID, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, id
}

func TestPasskey_RegisterUseAndRemove(t *testing.T) {
	s, authenticator := newPasskeyStage(t, newSignIns(t, code))
	s.signInAsAda()
	s.do(chromium.Type("#passkey-name", "my laptop"), chromedp.Click("form[data-passkey] button"))
	s.see(`document.querySelector("[role=status]")?.innerText.includes("The passkey is added") && document.body.innerText.includes("my laptop")`)
	if eval[bool](s, `!!document.querySelector("[data-no-passkey]")`) {
		t.Error("the page says that this browser does not support passkeys")
	}
	s.do(chromium.Type("#passkey-name", "once more"), chromedp.Click("form[data-passkey] button"))
	s.see(`document.querySelector("[data-trouble]").innerText.includes("has a passkey for your account already")`)

	s.do(chromedp.Click(".who button"))
	s.see(`!document.querySelector(".who")`)
	s.open("/signin?next=/account/settings")
	s.do(chromedp.Click("form[data-passkey] button"))
	s.see(`document.querySelector("h1").textContent === "Account settings" && document.body.innerText.includes("with a passkey")`)
	s.see(`/Last used just now/.test(document.body.innerText)`)

	s.do(chromedp.Click("form[action$='/remove'] button"))
	s.see(`document.querySelector("[role=status]")?.innerText.includes("The passkey is removed") && document.body.innerText.includes("You have none yet")`)
	s.do(chromedp.Click(".who button"))
	s.see(`!document.querySelector(".who")`)
	s.open("/signin")
	s.do(chromedp.Click("form[data-passkey] button")) // the authenticator still has the passkey
	s.see(`document.querySelector("[role=alert]")?.innerText.includes("was not accepted")`)

	if _, err := chromium.Run(s.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, webauthn.ClearCredentials,
			webauthn.ClearCredentialsParams{AuthenticatorID: authenticator})
	}); err != nil {
		t.Fatal(err)
	}
	s.open(page) // the activation page too
	s.do(chromedp.Click("form[data-passkey] button"))
	s.see(`document.querySelector("[data-trouble]").innerText.includes("cancelled")`)
	if text := s.text("#user-code"); !strings.Contains(text, code) {
		t.Errorf("the code is not visible: %q", text)
	}
}

func TestPasskeys_NotOfferedWithoutScript(t *testing.T) {
	f := newSignIns(t, code)
	v := visit(t, newSite(t, f)).get("/signin").want(http.StatusOK)
	if !strings.Contains(v.page, `data-begin="/signin/passkey/begin" hidden>`) {
		t.Error("the passkey button is visible without its script")
	}
}

// If the sign-in is no longer recent when the form is sent, the form asks for the password in place and keeps the name.
func TestPasskey_AsksForThePasswordInPlace(t *testing.T) {
	f := newSignIns(t, code)
	s, _ := newPasskeyStage(t, f)
	s.signInAsAda()
	if eval[bool](s, `document.querySelector("[data-password]").checkVisibility()`) {
		t.Error("the form asks for the password after a recent sign-in")
	}
	f.pass(freshSignIn + time.Minute)
	const button = "form[data-passkey] button"
	s.do(chromium.Type("#passkey-name", "my laptop"), chromedp.Click(button))
	s.see(`document.activeElement.id === "passkey-password" && document.querySelector("[data-trouble]").innerText.includes("Enter your current password")`)
	s.do(chromium.Type("#passkey-password", "not the password"), chromedp.Click(button))
	s.see(`document.querySelector("[data-trouble]").innerText.includes("not your current password") && document.querySelector("#passkey-password").value === ""`)
	if name := eval[string](s, `document.querySelector("#passkey-name").value`); name != "my laptop" {
		t.Errorf("the name became %q, want it kept", name)
	}
	s.picture("password-in-place")
	s.do(chromium.Type("#passkey-password", adaPassword), chromedp.Click(button))
	s.see(`document.querySelector("[role=status]")?.innerText.includes("The passkey is added") && document.body.innerText.includes("my laptop")`)
}
