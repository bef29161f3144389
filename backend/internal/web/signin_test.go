package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/oidc"
)

const (
	acme     = "/signin/oidc/acme"
	callback = acme + "/callback?code=c0de&state=st4te"
)

// atProvider returns a visitor who was sent to the provider.
func atProvider(t *testing.T, next string) (*fakeSettings, *visitor) {
	t.Helper()
	f := newFakeSettings()
	f.identity = oidc.Identity{Provider: "acme", Subject: "s1", Email: "ada@example.org", EmailVerified: true}
	v := visit(t, newSite(t, f.fakeAccounts, f.all)).get(withNext("/signin", next)).want(http.StatusOK, "Continue with Acme",
		"Forgot your password")
	v.send(withNext(acme, next)).want(http.StatusOK, `href="`+fakeProviderSite, "Continue to Acme")
	if got := v.header.Get("Refresh"); !strings.HasPrefix(got, "0; url="+fakeProviderSite+"/authorize?state=st4te") {
		t.Fatalf("the Refresh header is %s, want the provider's page", got)
	}
	if !strings.Contains(v.header.Get("Content-Security-Policy"), "form-action 'self';") {
		t.Error("the policy allows other form targets")
	}
	return f, v
}

func TestProvider_NewIdentityIsAskedForConsent(t *testing.T) {
	f, v := atProvider(t, "/privacy")
	v.get(callback).onward().want(http.StatusOK, "Create an account with Acme", "ada@example.org", "Nothing is stored so far")
	v.get("/signin/welcome").want(http.StatusOK) // a reload shows the question again
	if len(f.people)+len(f.identities)+f.writes != 0 {
		t.Fatal("something was stored before the consent")
	}
	v.send("/signin/welcome").want(http.StatusUnprocessableEntity, `id="accept-error"`, `href="#accept"`)
	v.send("/signin/welcome", "accept", "yes").want(http.StatusSeeOther)
	if got := v.header.Get("Location"); got != "/privacy" || len(f.identities["id-ada@example.org"]) != 1 {
		t.Errorf("redirected to %s with the identities %v, want /privacy and one of ada", got, f.identities)
	}
	v.get("/").want(http.StatusOK, "ada@example.org")
	v.get("/signin/welcome").want(http.StatusSeeOther) // the flow is finished
	for _, visit := range f.visits {
		if visit.Method != "oidc:acme" {
			t.Errorf("opened the session with %+v, want the method oidc:acme", visit)
		}
	}
}

func TestProvider_KnownIdentityReturnsToTheCode(t *testing.T) {
	f, v := atProvider(t, page)
	f.people["ada@example.org"] = ""
	f.identities["id-ada@example.org"] = []account.LinkedIdentity{{Provider: "acme", Subject: "s1"}}
	v.get(callback).onward().want(http.StatusOK, code, "Approve")
	v.get(callback).want(http.StatusBadRequest, "took too long") // a response is accepted only once
}

func TestProvider_UnrequestedAnswersAreRefused(t *testing.T) {
	f, v := atProvider(t, "/")
	f.people["ada@example.org"] = ""
	f.identities["id-ada@example.org"] = []account.LinkedIdentity{{Provider: "acme", Subject: "s1"}}
	another(v).get(callback).want(http.StatusBadRequest, "Nothing was changed", "Start again")
	v.get("/signin/oidc/other/callback?state=st4te").want(http.StatusBadRequest)
	_, v = atProvider(t, "/")
	v.get(acme+"/callback?code=c0de&state=forged").want(http.StatusUnprocessableEntity, "does not fit")
	if f.opened != 0 {
		t.Error("somebody was signed in")
	}
	v.get("/signin").send("/signin/oidc/unknown").want(http.StatusNotFound)
}

func TestProvider_ErrorsAreExplained(t *testing.T) {
	for _, tc := range []struct {
		err, signIn error
		status      int
		want        string
	}{
		{oidc.ErrDenied, nil, 422, "cancelled"},
		{oidc.ErrUnreachable, nil, 502, "does not answer"},
		{oidc.ErrInvalidAnswer, nil, 422, "does not fit"},
		{fmt.Errorf("%w: c0de", oidc.ErrDenied), nil, 422, "cancelled"},
		{fmt.Errorf("%w: c0de", oidc.ErrUnreachable), nil, 502, "log tells its operator"},
		{nil, account.ErrUnverifiedEmail, 422, "does not vouch"},
		{nil, account.ErrUnverifiedAccount, 422, `href="/forgot"`},
		{nil, account.ErrEmailTaken, 422, "From then on"},
		{nil, account.ErrSuspended, 422, "suspended"},
		{errDisk, nil, 500, "on our side"},
	} {
		f, v := atProvider(t, "/")
		f.refusal, f.signInErr = tc.err, tc.signIn
		v.get(callback).want(tc.status, tc.want)
		if strings.Contains(v.page, "c0de") || strings.Contains(v.page, "disk") || f.opened != 0 {
			t.Errorf("%v: the page reveals details, or somebody was signed in", tc)
		}
	}
}

func TestProvider_LinkAndUnlink(t *testing.T) {
	f, v := settled(t)
	f.identity = oidc.Identity{Provider: "acme", Subject: "s1", Email: "a.l@acme.example"}
	v.want(http.StatusOK, "Not linked")
	v.send(settingsPath+"/providers/acme/link").want(http.StatusOK, "Continue to Acme")
	v.get(callback).onward().want(http.StatusOK, "Linked.", "as a.l@acme.example", "Unlink")
	v.send(settingsPath+"/providers/acme/unlink").onward().want(http.StatusOK, "Unlinked.", "Not linked")
	v.send(settingsPath + "/providers/acme/unlink").want(http.StatusNotFound)

	f.identities["id-ada@example.org"] = []account.LinkedIdentity{{Provider: "gone", Subject: "s2"}}
	v.get(settingsPath).want(http.StatusOK,
		"gone (no longer offered)").send(settingsPath+"/providers/gone/unlink").onward().want(http.StatusOK, "Unlinked.")

	f.identities["id-bob@example.org"] = []account.LinkedIdentity{{Provider: "acme", Subject: "s1"}}
	v.get(settingsPath).send(settingsPath + "/providers/acme/link")
	v.get(callback).want(http.StatusUnprocessableEntity, "linked to another account")
	delete(f.identities, "id-bob@example.org")

	f.identities["id-ada@example.org"] = []account.LinkedIdentity{{Provider: "acme", Subject: "s1"}}
	f.people["ada@example.org"] = ""
	v.get(settingsPath).send(settingsPath+"/providers/acme/unlink").want(http.StatusUnprocessableEntity, "only way left")
}

func TestProvider_LinkOnlyForTheAccountThatAsked(t *testing.T) {
	f, v := settled(t)
	f.identity = oidc.Identity{Provider: "acme", Subject: "s1"}
	v.send(settingsPath + "/providers/acme/link")
	v.get(settingsPath).send("/signout").onward()
	v.get(callback).want(http.StatusBadRequest) // the attempt belonged to the signed-in browser session
	if len(f.identities) != 0 {
		t.Error("an identity was linked for somebody who has signed out")
	}
}

func TestForgotPassword(t *testing.T) {
	f := newFakeSettings()
	f.people["ada@example.org"] = adaPassword
	v := visit(t, newSite(t, f.fakeAccounts, f.all)).get("/forgot")
	v.send("/forgot", "email", "nonsense").want(http.StatusUnprocessableEntity, `id="email-error"`, `value="nonsense"`)
	pages := map[string]bool{}
	for _, email := range []string{"ada@example.org", "nobody@example.org"} {
		v.get("/forgot").send("/forgot", "email", email).onward().want(http.StatusOK, "Check your mail",
			"account with "+email+", a link", `href="/forgot">Use another address`)
		pages[strings.ReplaceAll(v.page, email, "")] = true
	}
	if len(pages) != 1 || len(f.mails) != 2 {
		t.Error("the responses distinguish known from unknown addresses")
	}
	form := v.get("/forgot").tokens()
	form.Set("email", "ada@example.org")
	for range mailsPerMinute - 3 { // three mails were sent above
		v.post("/forgot", form).want(http.StatusSeeOther)
	}
	v.get("/forgot").send("/forgot", "email", "ada@example.org").want(http.StatusTooManyRequests, "Too many attempts",
		`value="ada@example.org"`)

	f.mail = false
	v.get("/forgot").want(http.StatusOK, "sends no mail", "help@example.com")
	if strings.Contains(v.page, "<input id") {
		t.Error("the page asks for an address although the backend sends no mail")
	}
}

func TestResetPassword(t *testing.T) {
	f := newFakeSettings()
	f.people["ada@example.org"] = adaPassword
	f.tokens["sml_t0ken"] = "id-ada@example.org"
	site := newSite(t, f.fakeAccounts, f.all)
	v := visit(t, site).get("/reset?token=sml_t0ken")
	if got := v.header.Get("Location"); got != "/reset" || v.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("redirected to %s, want an address without the token and no referrer", got)
	}
	v.onward().want(http.StatusOK, "Choose a new password")
	if strings.Contains(v.page, "sml_") || f.people["ada@example.org"] != adaPassword {
		t.Error("the page contains the token, or opening it changed something")
	}
	v.want(http.StatusOK, "Revoke all linked agents", "Remove all passkeys", "Unlink all sign-in providers")
	if strings.Contains(v.page, " checked") {
		t.Error("a box for revoking access is checked by default")
	}
	v.send("/reset", "password", "short", "passkeys", "yes").want(http.StatusUnprocessableEntity, `id="password-error"`,
		`id="passkeys" name="passkeys" type="checkbox" value="yes" checked`)
	if strings.Count(v.page, " checked") != 1 {
		t.Error("the checked boxes differ from the person's choice")
	}
	v.send("/reset", "password", "a new long password", "links", "yes", "providers", "yes").onward().want(http.StatusOK,
		"signed in with it", "ada@example.org")
	if f.people["ada@example.org"] != "a new long password" {
		t.Error("the password was not changed")
	}
	if f.revoked != (account.Access{Links: true, Identities: true}) {
		t.Errorf("revoked %+v", f.revoked)
	}
	for _, old := range []string{"sml_t0ken", "sml_none", strings.Repeat("x", 5000)} {
		late := visit(t, site).get("/reset?token=" + old)
		if late.status == http.StatusSeeOther {
			late.onward().want(http.StatusOK).send("/reset", "password", "a new long password")
		}
		late.want(http.StatusNotFound, "no longer works", `href="/forgot"`)
	}
	visit(t, site).get("/reset").want(http.StatusNotFound)
}

func TestVerifyEmail(t *testing.T) {
	f, v := settled(t)
	f.tokens["sml_one"], f.tokens["sml_two"] = "id-ada@example.org", "id-ada@example.org"
	v.get("/verify?token=sml_one").onward().want(http.StatusOK, "Confirm the address")
	if len(f.verified) != 0 || strings.Contains(v.page, "sml_") {
		t.Fatal("opening the link confirmed the address, or the page contains the token")
	}
	v.send("/verify").onward().want(http.StatusOK, "the address is confirmed", ">confirmed<")
	v.get("/verify?token=sml_one").onward().send("/verify").want(http.StatusNotFound, "no longer works")
}

// If someone created an account with another user's address, that user's click must not confirm the address.
func TestVerifyEmail_OnlyForTheSignedInAccount(t *testing.T) {
	f, v := settled(t)
	f.people["bob@example.org"] = adaPassword
	f.tokens["sml_bob"] = "id-bob@example.org"
	v.get("/verify?token=sml_bob").onward().want(http.StatusOK, "signed in as <strong>ada@example.org")
	v.send("/verify").want(http.StatusUnprocessableEntity, "another account", "ada@example.org")
	if strings.Contains(v.page, "bob@") || strings.Contains(v.page, "sml_") {
		t.Error("the refusal reveals the link or its owner")
	}
	w := another(v).get("/verify?token=sml_bob").onward().want(http.StatusOK, "Sign in to confirm",
		`href="/signin?next=%2Fverify"`, `href="/forgot"`)
	form := w.get("/signin?next=/verify").tokens()
	w.post("/verify", form).onward().want(http.StatusOK, "Sign in to confirm")
	if len(f.verified) != 0 {
		t.Fatal("the address was confirmed without a sign-in to its account")
	}
	w.get("/signin?next=/verify").send("/signin?next=/verify", "email", "bob@example.org", "password",
		adaPassword).onward().
		want(http.StatusOK, "signed in as <strong>bob@example.org") // the link is remembered during the sign-in
	w.send("/verify").onward().want(http.StatusOK, "the address is confirmed")
	if !f.verified["id-bob@example.org"] {
		t.Error("the address was not confirmed")
	}
}

// cookieNames lists the cookies that a response sets. Their values contain the user's input.
func cookieNames(h http.Header) string {
	var names []string
	for _, line := range h.Values("Set-Cookie") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// If the backend sends mail, a sign-up gets the same response for every address. The mailed link and the chosen
// password complete the sign-up.
func TestSignUpByMail_DoesNotRevealAccounts(t *testing.T) {
	f := newFakeSettings()
	f.people["bob@example.org"] = "bob's own password"
	site := newSite(t, f.fakeAccounts, f.all)
	ask := func(email string) *visitor {
		v := visit(t, site).get(page)
		form := v.tokens()
		for name, value := range map[string]string{"email": email, "password": adaPassword, "accept": "yes"} {
			form.Set(name, value)
		}
		return v.post(withNext("/signup", page), form)
	}
	unknown, known := ask("ada@example.org"), ask("bob@example.org")
	if known.status != unknown.status || known.header.Get("Location") != unknown.header.Get("Location") ||
		cookieNames(known.header) != cookieNames(unknown.header) {
		t.Errorf("the responses differ: %d to %s, and %d to %s", known.status, known.header.Get("Location"), unknown.status,
			unknown.header.Get("Location"))
	}
	known.onward().want(http.StatusOK, "Check your mail", "Back to the code")
	if unknown.onward(); strings.ReplaceAll(unknown.page, "ada@", "bob@") != known.page {
		t.Error("the pages for a known and an unknown address differ")
	}
	if len(f.people) != 1 || len(f.mails) != 2 {
		t.Errorf("got accounts %v, mails %v; want one account and two mails", f.people, f.mails)
	}

	ask("ada@example.org")
	v := visit(t, site).get("/signup/confirm?token=sml_signup") // in another browser
	v.onward().want(http.StatusOK, "Finish signing up")
	if strings.Contains(v.page, "sml_") {
		t.Error("the page contains the token")
	}
	v.send("/signup/confirm", "password", "somebody else's").want(http.StatusUnprocessableEntity, `id="password-error"`)
	if f.people["ada@example.org"] != "" {
		t.Fatal("an account was created without its password")
	}
	v.send("/signup/confirm", "password", adaPassword).onward().want(http.StatusOK, "Approve", "ada@example.org")
	late := visit(t, site).get("/signup/confirm?token=sml_signup").onward()
	late.send("/signup/confirm", "password", adaPassword).want(http.StatusNotFound, "no longer works", `href="/signup"`)

	f.mail = false
	visit(t, site).get("/signup").signUp("carl@example.org", "/").want(http.StatusOK, "carl@example.org")
}

func TestPasskeyButtonOnTheActivationPage(t *testing.T) {
	f := newFakeSettings()
	v := visit(t, newSite(t, f.fakeAccounts, f.all)).get(page).want(http.StatusOK, code, "Continue with Acme", "passkeys.js",
		"data-passkey")
	v.send("/signin/passkey/begin").want(http.StatusOK)
	v.get(page).send(withNext("/signin/passkey", page), "credential", "x").want(http.StatusUnprocessableEntity, code,
		"was not accepted")
}

func TestSignIn_RecordsMethodAndAddress(t *testing.T) {
	f, v := settled(t)
	for _, visit := range f.visits {
		if visit.Method != account.ByPassword || visit.IP == "" || !strings.HasPrefix(visit.UserAgent, "Go-http-client") {
			t.Errorf("got visit %+v", visit)
		}
	}
	v.get(settingsPath).want(http.StatusOK, "with the password")
}

// If the password changes during a sign-in with the old one, the sign-in fails.
func TestSignIn_PasswordChangedMeanwhile(t *testing.T) {
	f := newFake(code)
	v := visit(t, newSite(t, f))
	f.people["ada@example.com"] = "correct horse battery"
	f.changed = "another long password"
	v.get("/signin").want(http.StatusOK)
	fields := v.tokens()
	fields.Set("email", "ada@example.com")
	fields.Set("password", f.people["ada@example.com"])
	if v.post("/signin", fields).want(http.StatusSeeOther); v.header.Get("Location") != "/signin" {
		t.Errorf("redirected to %q, want /signin", v.header.Get("Location"))
	}
	v.get("/signin").want(http.StatusOK, "Password")
}

// The address to which a mail was sent is shown only in the browser session that requested it.
func TestForgotPassword_ShowsTheAddressOnlyToWhoAsked(t *testing.T) {
	f := newFakeSettings()
	site := newSite(t, f.fakeAccounts, f.all)
	v := visit(t, site).get("/forgot")
	v.send("/forgot", "email", "ada@example.org").onward().want(http.StatusOK, "ada@example.org")
	visit(t, site).get("/forgot/sent").want(http.StatusOK, "account with that address")
}
