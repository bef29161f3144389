package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/test/oidctest"
)

const (
	acme     = "/signin/oidc/acme"
	callback = acme + "/callback?code=c0de&state=st4te" // not the answer to any attempt
)

// adaAtAcme is ada as Acme describes her.
var adaAtAcme = oidctest.Person{Subject: "s1", Email: "ada@example.org", EmailVerified: true}

// atProvider returns a visitor who was sent to the provider.
func atProvider(t *testing.T, next string) (*people, *visitor) {
	t.Helper()
	f := newSignIns(t, code)
	f.acme().Be(adaAtAcme)
	v := visit(t, newSite(t, f)).get(withNext("/signin", next)).want(http.StatusOK, "Continue with Acme",
		"Forgot your password")
	v.send(withNext(acme, next)).want(http.StatusOK, `href="`+f.acme().Issuer, "Continue to Acme")
	if got := v.header.Get("Refresh"); !strings.HasPrefix(got, "0; url="+f.acme().Issuer+"/authorize?") {
		t.Fatalf("the Refresh header is %s, want the provider's page", got)
	}
	if !strings.Contains(v.header.Get("Content-Security-Policy"), "form-action 'self';") {
		t.Error("the policy allows other form targets")
	}
	return f, v
}

// answer opens the provider's page to which the last response leads, and returns the path with its answer.
func (v *visitor) answer() string {
	v.t.Helper()
	_, at, _ := strings.Cut(v.header.Get("Refresh"), "url=")
	res, err := v.client.Get(at)
	if err != nil {
		v.t.Fatal(err)
	}
	res.Body.Close()
	return strings.TrimPrefix(res.Header.Get("Location"), v.site)
}

func TestProvider_NewIdentityIsAskedForConsent(t *testing.T) {
	f, v := atProvider(t, "/privacy")
	v.get(v.answer()).onward().want(http.StatusOK, "Create an account with Acme", "ada@example.org", "Nothing is stored so far")
	v.get("/signin/welcome").want(http.StatusOK) // a reload shows the question again
	if f.count("accounts")+f.count("identities")+f.count("web_sessions") != 0 {
		t.Fatal("something was stored before the consent")
	}
	v.send("/signin/welcome").want(http.StatusUnprocessableEntity, `id="accept-error"`, `href="#accept"`)
	v.send("/signin/welcome", "accept", "yes").want(http.StatusSeeOther)
	if got := v.header.Get("Location"); got != "/privacy" || f.count("identities WHERE email = 'ada@example.org'") != 1 {
		t.Errorf("redirected to %s, want /privacy and an identity of ada", got)
	}
	v.get("/").want(http.StatusOK, "ada@example.org")
	v.get("/signin/welcome").want(http.StatusSeeOther) // the flow is finished
	if n := f.count("web_sessions WHERE method <> 'oidc:acme'"); n > 0 {
		t.Errorf("%d sessions have another method than oidc:acme", n)
	}
}

func TestProvider_KnownIdentityReturnsToTheCode(t *testing.T) {
	f, v := atProvider(t, page)
	f.link(f.addWith("ada@example.org", ""), "acme", "s1", "")
	answer := v.answer()
	v.get(answer).onward().want(http.StatusOK, code, "Approve")
	v.get(answer).want(http.StatusBadRequest, "took too long") // a response is accepted only once
}

func TestProvider_UnrequestedAnswersAreRefused(t *testing.T) {
	f, v := atProvider(t, "/")
	f.link(f.addWith("ada@example.org", ""), "acme", "s1", "")
	another(v).get(v.answer()).want(http.StatusBadRequest, "Nothing was changed", "Start again")
	v.get("/signin/oidc/other/callback?state=st4te").want(http.StatusBadRequest)
	v.get("/signin").send(acme).want(http.StatusOK)
	v.get(acme+"/callback?code=c0de&state=forged").want(http.StatusUnprocessableEntity, "does not fit")
	if f.count("web_sessions") != 0 {
		t.Error("somebody was signed in")
	}
	v.get("/signin").send("/signin/oidc/unknown").want(http.StatusNotFound)
}

func TestProvider_ErrorsAreExplained(t *testing.T) {
	verified := func(f *people) {
		f.exec("UPDATE accounts SET verified_at = 1 WHERE id = $1", f.add("ada@example.org"))
	}
	for name, tc := range map[string]struct {
		faults  oidctest.Faults
		person  oidctest.Person
		prepare func(f *people)
		status  int
		want    string
	}{
		"denied":             {oidctest.Faults{Deny: true}, adaAtAcme, nil, 422, "cancelled"},
		"unreachable":        {oidctest.Faults{TokenStatus: 503}, adaAtAcme, nil, 502, "does not answer"},
		"log":                {oidctest.Faults{TokenStatus: 503}, adaAtAcme, nil, 502, "log tells its operator"},
		"invalid":            {oidctest.Faults{Nonce: "another"}, adaAtAcme, nil, 422, "does not fit"},
		"unverified email":   {person: oidctest.Person{Subject: "s1", Email: "ada@example.org"}, status: 422, want: "does not vouch"},
		"unverified account": {oidctest.Faults{}, adaAtAcme, func(f *people) { f.add("ada@example.org") }, 422, `href="/forgot"`},
		"taken":              {oidctest.Faults{}, adaAtAcme, verified, 422, "From then on"},
		"suspended": {oidctest.Faults{}, adaAtAcme, func(f *people) {
			f.link(f.add("ada@example.org"), "acme", "s1", "")
			f.exec("UPDATE accounts SET state = 'suspended'")
		}, 422, "suspended"},
		"broken": {oidctest.Faults{}, adaAtAcme, func(f *people) { f.exec("DROP TABLE identities") }, 500, "on our side"},
	} {
		f, v := atProvider(t, "/")
		f.acme().SetFaults(tc.faults)
		f.acme().Be(tc.person)
		if tc.prepare != nil {
			tc.prepare(f)
		}
		answer := v.answer()
		v.get(answer).want(tc.status, tc.want)
		_, secrets, _ := strings.Cut(answer, "?")
		if strings.Contains(v.page, secrets) || strings.Contains(v.page, "no such table") || f.count("web_sessions") != 0 {
			t.Errorf("%s: the page reveals details, or somebody was signed in", name)
		}
	}
}

func TestProvider_LinkAndUnlink(t *testing.T) {
	f, v := settled(t)
	f.acme().Be(oidctest.Person{Subject: "s1", Email: "a.l@acme.example"})
	v.want(http.StatusOK, "Not linked")
	v.send(settingsPath+"/providers/acme/link").want(http.StatusOK, "Continue to Acme")
	v.get(v.answer()).onward().want(http.StatusOK, "Linked.", "as a.l@acme.example", "Unlink")
	v.send(settingsPath+"/providers/acme/unlink").onward().want(http.StatusOK, "Unlinked.", "Not linked")
	v.send(settingsPath + "/providers/acme/unlink").want(http.StatusNotFound)

	f.link(idOf("ada@example.org"), "gone", "s2", "")
	v.get(settingsPath).want(http.StatusOK,
		"gone (no longer offered)").send(settingsPath+"/providers/gone/unlink").onward().want(http.StatusOK, "Unlinked.")

	f.link(f.add("bob@example.org"), "acme", "s1", "")
	v.get(settingsPath).send(settingsPath + "/providers/acme/link")
	v.get(v.answer()).want(http.StatusUnprocessableEntity, "linked to another account")
	f.exec("DELETE FROM identities")

	f.link(idOf("ada@example.org"), "acme", "s1", "")
	f.exec("UPDATE accounts SET password_hash = '' WHERE id = $1", idOf("ada@example.org"))
	v.get(settingsPath).send(settingsPath+"/providers/acme/unlink").want(http.StatusUnprocessableEntity, "only way left")
}

func TestProvider_LinkOnlyForTheAccountThatAsked(t *testing.T) {
	f, v := settled(t)
	f.acme().Be(adaAtAcme)
	v.send(settingsPath + "/providers/acme/link")
	answer := v.answer()
	v.get(settingsPath).send("/signout").onward()
	v.get(answer).want(http.StatusBadRequest) // the attempt belonged to the signed-in browser session
	if f.count("identities") != 0 {
		t.Error("an identity was linked for somebody who has signed out")
	}
}

func TestForgotPassword(t *testing.T) {
	f := newSignIns(t, code)
	f.add("ada@example.org")
	v := visit(t, newSite(t, f)).get("/forgot")
	v.send("/forgot", "email", "nonsense").want(http.StatusUnprocessableEntity, `id="email-error"`, `value="nonsense"`)
	pages := map[string]bool{}
	for _, email := range []string{"ada@example.org", "nobody@example.org"} {
		v.get("/forgot").send("/forgot", "email", email).onward().want(http.StatusOK, "Check your mail",
			"account with "+email+", a link", `href="/forgot">Use another address`)
		pages[strings.ReplaceAll(v.page, email, "")] = true
	}
	if len(pages) != 1 {
		t.Error("the responses distinguish known from unknown addresses")
	}
	if m := f.mail(); m.To != "ada@example.org" || !strings.Contains(m.Link, "/reset?token=") {
		t.Errorf("got mail %+v, want a link for ada", m)
	}
	form := v.get("/forgot").tokens()
	form.Set("email", "ada@example.org")
	for range mailsPerMinute - 3 { // three mails were sent above
		v.post("/forgot", form).want(http.StatusSeeOther)
	}
	v.get("/forgot").send("/forgot", "email", "ada@example.org").want(http.StatusTooManyRequests, "Too many attempts",
		`value="ada@example.org"`)

	f.box.off = true
	v.get("/forgot").want(http.StatusOK, "sends no mail", "help@example.com")
	if strings.Contains(v.page, "<input id") {
		t.Error("the page asks for an address although the backend sends no mail")
	}
}

func TestResetPassword(t *testing.T) {
	f := newSignIns(t, code)
	f.add("ada@example.org")
	id := idOf("ada@example.org")
	f.exec("UPDATE accounts SET verified_at = 1")
	f.addPasskey("ada@example.org")
	f.link(id, "acme", "s1", "")
	f.exec(`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
		VALUES ('link1', $1, 'x', 'maple', '', '', '', 1)`, id)
	site, old := newSite(t, f), f.resetToken("ada@example.org")
	v := visit(t, site).get("/reset?token=" + old)
	if got := v.header.Get("Location"); got != "/reset" || v.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("redirected to %s, want an address without the token and no referrer", got)
	}
	v.onward().want(http.StatusOK, "Choose a new password")
	if strings.Contains(v.page, "sml_") || !f.hasPassword("ada@example.org", adaPassword) {
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
	if !f.hasPassword("ada@example.org", "a new long password") {
		t.Error("the password was not changed")
	}
	if links, keys, identities := f.count("links WHERE revoked_at IS NULL"), f.count("passkeys"), f.count("identities"); links != 0 || keys != 1 || identities != 0 {
		t.Errorf("the account has %d links, %d passkeys and %d identities, want only the passkey", links, keys, identities)
	}
	for _, old := range []string{old, "sml_none", strings.Repeat("x", 5000)} {
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
	token := f.verifyToken(idOf("ada@example.org"))
	v.get("/verify?token="+token).onward().want(http.StatusOK, "Confirm the address")
	if f.isVerified(idOf("ada@example.org")) || strings.Contains(v.page, "sml_") {
		t.Fatal("opening the link confirmed the address, or the page contains the token")
	}
	v.send("/verify").onward().want(http.StatusOK, "the address is confirmed", ">confirmed<")
	v.get("/verify?token="+token).onward().send("/verify").want(http.StatusNotFound, "no longer works")
}

// If someone created an account with another user's address, that user's click must not confirm the address.
func TestVerifyEmail_OnlyForTheSignedInAccount(t *testing.T) {
	f, v := settled(t)
	f.add("bob@example.org")
	token := f.verifyToken(idOf("bob@example.org"))
	v.get("/verify?token="+token).onward().want(http.StatusOK, "signed in as <strong>ada@example.org")
	v.send("/verify").want(http.StatusUnprocessableEntity, "another account", "ada@example.org")
	if strings.Contains(v.page, "bob@") || strings.Contains(v.page, "sml_") {
		t.Error("the refusal reveals the link or its owner")
	}
	w := another(v).get("/verify?token="+token).onward().want(http.StatusOK, "Sign in to confirm",
		`href="/signin?next=%2Fverify"`, `href="/forgot"`)
	form := w.get("/signin?next=/verify").tokens()
	w.post("/verify", form).onward().want(http.StatusOK, "Sign in to confirm")
	if f.isVerified(idOf("bob@example.org")) {
		t.Fatal("the address was confirmed without a sign-in to its account")
	}
	w.get("/signin?next=/verify").send("/signin?next=/verify", "email", "bob@example.org", "password",
		adaPassword).onward().
		want(http.StatusOK, "signed in as <strong>bob@example.org") // the link is remembered during the sign-in
	w.send("/verify").onward().want(http.StatusOK, "the address is confirmed")
	if !f.isVerified(idOf("bob@example.org")) {
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
	f := newSignIns(t, code)
	f.addWith("bob@example.org", f.hashOf("bob's own password"))
	site := newSite(t, f)
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
	to := map[string]mail.Message{}
	for range 2 {
		m := f.mail()
		to[m.To] = m
	}
	token := token(to["ada@example.org"])
	if f.count("accounts") != 1 || token == "" || to["bob@example.org"].Subject != "You have an account already" {
		t.Errorf("got mails %v, want one account, a link for ada and a notice for bob", to)
	}

	v := visit(t, site).get("/signup/confirm?token=" + token) // in another browser
	v.onward().want(http.StatusOK, "Finish signing up")
	if strings.Contains(v.page, "sml_") {
		t.Error("the page contains the token")
	}
	v.send("/signup/confirm", "password", "somebody else's").want(http.StatusUnprocessableEntity, `id="password-error"`)
	if f.count("accounts") != 1 {
		t.Fatal("an account was created without its password")
	}
	v.send("/signup/confirm", "password", adaPassword).onward().want(http.StatusOK, "Approve", "ada@example.org")
	late := visit(t, site).get("/signup/confirm?token=" + token).onward()
	late.send("/signup/confirm", "password", adaPassword).want(http.StatusNotFound, "no longer works", `href="/signup"`)

	f.box.off = true
	visit(t, site).get("/signup").signUp("carl@example.org", "/").want(http.StatusOK, "carl@example.org")
}

func TestPasskeyButtonOnTheActivationPage(t *testing.T) {
	f := newSignIns(t, code)
	v := visit(t, newSite(t, f)).get(page).want(http.StatusOK, code, "Continue with Acme", "passkeys.js",
		"data-passkey")
	v.send("/signin/passkey/begin").want(http.StatusOK)
	v.get(page).send(withNext("/signin/passkey", page), "credential", "x").want(http.StatusUnprocessableEntity, code,
		"was not accepted")
}

func TestSignIn_RecordsMethodAndAddress(t *testing.T) {
	f, v := settled(t)
	if f.count("web_sessions WHERE method = 'password' AND ip <> '' AND user_agent LIKE 'Go-http-client%'") != 1 {
		t.Error("the session lacks its method, address or user agent")
	}
	v.get(settingsPath).want(http.StatusOK, "with the password")
}

// If the password changes during a sign-in with the old one, the sign-in fails.
func TestSignIn_PasswordChangedMeanwhile(t *testing.T) {
	f := newPeople(t, code)
	id, changed := f.add("ada@example.com"), f.hashOf("another long password")
	// The pages ask whether the address is known after they have checked the password, before they open the session.
	v := visit(t, newSite(t, f, func(o *Options) {
		o.AddressKnown = func(*http.Request) bool {
			f.exec("UPDATE accounts SET password_hash = $1 WHERE id = $2", changed, id)
			return true
		}
	}))
	v.get("/signin").want(http.StatusOK)
	fields := v.tokens()
	fields.Set("email", "ada@example.com")
	fields.Set("password", password)
	if v.post("/signin", fields).want(http.StatusSeeOther); v.header.Get("Location") != "/signin" {
		t.Errorf("redirected to %q, want /signin", v.header.Get("Location"))
	}
	v.get("/signin").want(http.StatusOK, "Password")
}

// The address to which a mail was sent is shown only in the browser session that requested it.
func TestForgotPassword_ShowsTheAddressOnlyToWhoAsked(t *testing.T) {
	f := newSignIns(t, code)
	site := newSite(t, f)
	v := visit(t, site).get("/forgot")
	v.send("/forgot", "email", "ada@example.org").onward().want(http.StatusOK, "ada@example.org")
	visit(t, site).get("/forgot/sent").want(http.StatusOK, "account with that address")
}
