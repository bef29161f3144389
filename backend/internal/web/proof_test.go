package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/passkeytest"
)

var proofInput = regexp.MustCompile(`name="proof" value="([^"]+)"`)

func (v *visitor) proof() string {
	if m := proofInput.FindStringSubmatch(v.page); m != nil {
		return m[1]
	}
	return ""
}

func asksProof(o *Options) { o.AskProof = true }

// proving returns a site that asks for proofs, and ada's browser, which is signed in and shows the page of the code.
func proving(t *testing.T, codes ...string) (*people, *visitor) {
	t.Helper()
	f := newSignIns(t, codes...)
	f.box.off = true
	f.add("ada@example.org")
	v := visit(t, newSite(t, f, asksProof)).get("/signin")
	v.send("/signin", "email", "ada@example.org", "password", adaPassword).want(http.StatusSeeOther)
	return f, v.get(page).want(http.StatusOK, "Approve", "Your password")
}

func approveURL(code string) string { return "/activate/approve?code=" + code }

func TestApprove_NeedsTheAccountsPassword(t *testing.T) {
	f, v := proving(t, code)
	v.send(approveURL(code)).want(http.StatusUnprocessableEntity, code, "Your password")
	v.send(approveURL(code), "password", "mallory's password").want(http.StatusUnprocessableEntity, code, wrongPassword)
	v.send(approveURL(code), "proof", "x").want(http.StatusUnprocessableEntity)
	if who := f.approver(code); who != "" {
		t.Fatalf("%s approved without the password", who)
	}
	v.send(approveURL(code), "password", adaPassword).want(http.StatusSeeOther)
	if who := f.approver(code); who != "ada@example.org" {
		t.Errorf("approved by %q, want ada", who)
	}
}

// Wrong passwords are limited as in a sign-in.
func TestApprove_LimitsGuesses(t *testing.T) {
	_, v := proving(t, code)
	for range signInsPerMinute {
		v.send(approveURL(code), "password", "a guess of mine")
	}
	v.send(approveURL(code), "password", adaPassword).want(http.StatusUnprocessableEntity, tooMany)
}

func TestDeny_NeedsNoProof(t *testing.T) {
	f, v := proving(t, code)
	v.send("/activate/deny?code=" + code).want(http.StatusSeeOther)
	if f.code(code).State != link.Denied {
		t.Error("the code was not denied")
	}
}

// A user who signs in or up on the page of a code approves it without entering the password twice. The value that
// replaces the password is only in the response to that form, and valid only for that code, browser and account.
func TestApprove_RightAfterASignIn(t *testing.T) {
	const other = "HJKL-MNPQ"
	f := newSignIns(t, code, other)
	f.box.off = true
	site := newSite(t, f, asksProof)
	v := visit(t, site).get(page)
	form := v.tokens()
	for name, value := range map[string]string{"email": "ada@example.org", "password": adaPassword, "accept": "yes"} {
		form.Set(name, value)
	}
	v.post(withNext("/signup", page), form).want(http.StatusOK, code, "Approve", `data-here="`+page+`"`)
	proof, tokens := v.proof(), v.tokens()
	if proof == "" || strings.Contains(v.page, "Your password") {
		t.Fatalf("the response to a sign-up has the proof %q and may ask for the password again:\n%s", proof, v.page)
	}
	if got := v.get(page).want(http.StatusOK, "Your password").proof(); got != "" {
		t.Error("a GET of the page contains a proof")
	}
	v.get("/activate?code="+other).send(approveURL(other), "proof", proof).want(http.StatusUnprocessableEntity)
	stranger := visit(t, site).get("/signin")
	stranger.send("/signin", "email", "ada@example.org", "password", adaPassword).want(http.StatusSeeOther)
	stranger.get(page).send(approveURL(code), "proof", proof).want(http.StatusUnprocessableEntity)
	if n := f.count("device_codes WHERE state = 'approved'"); n > 0 {
		t.Fatalf("%d codes were approved with a proof for something else", n)
	}
	tokens.Set("proof", proof)
	v.post(approveURL(code), tokens).want(http.StatusSeeOther)
}

var beginURL = regexp.MustCompile(`data-begin="(/account/proof/begin[^"]+)"`)

func TestApprove_WithAPasskey(t *testing.T) {
	const other = "HJKL-MNPQ"
	f, v := proving(t, code, other)
	if strings.Contains(v.page, "Approve with a passkey") {
		t.Error("the page offers a passkey to an account without one")
	}
	mine, yours := f.addPasskey("ada@example.org"), passkeytest.New(t, passkeySite)
	yours.Handle = mine.Handle
	begin := func(code string) (options []byte) {
		approval := v.get("/activate?code="+code).want(http.StatusOK, "Approve with a passkey")
		m := beginURL.FindStringSubmatch(approval.page)
		if m == nil {
			t.Fatal("the page has no challenge")
		}
		return []byte(v.send(strings.ReplaceAll(m[1], "&amp;", "&")).want(http.StatusOK).page)
	}
	approve := func(answer []byte) *visitor {
		return v.get(page).send(approveURL(code), "credential", string(answer))
	}
	approve(mine.Sign(t, begin(other))).want(http.StatusUnprocessableEntity, badPasskey)
	approve(yours.Sign(t, begin(code))).want(http.StatusUnprocessableEntity, badPasskey)
	options := begin(code)
	approve(yours.Sign(t, options)).want(http.StatusUnprocessableEntity, badPasskey)
	approve(mine.Sign(t, options)).want(http.StatusUnprocessableEntity, badPasskey) // no challenge is left
	if n := f.count("device_codes WHERE state = 'approved'"); n > 0 {
		t.Fatalf("%d codes were approved with a passkey for something else", n)
	}
	approve(mine.Sign(t, begin(code))).want(http.StatusSeeOther)
}

// A recent sign-in is not enough to add a passkey or a provider where proofs are required.
func TestSignInMethods_NeedThePasswordEachTime(t *testing.T) {
	f, v := settled(t, asksProof)
	v.send(settingsPath+"/passkeys/begin").want(http.StatusConflict, askPassword)
	v.get(settingsPath).send(settingsPath+"/providers/acme/link").want(http.StatusUnprocessableEntity, askPassword)
	v.get(settingsPath).send(settingsPath+"/passkeys/begin", "password", adaPassword).want(http.StatusOK)
	if f.count("passkeys") > 0 {
		t.Error("a passkey was added")
	}
}

// Raising agents' access asks for the password on a page that repeats the form; lowering it does not.
func TestGrants_RaisingNeedsAProof(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h, asksProof)
	v := signedIn(t, site, ada).get("/account/mcp-access")
	v.send("/account/mcp-access/default", "analytics", "off").want(http.StatusSeeOther)
	before := len(h.called())
	v.get("/account/mcp-access").send("/account/mcp-access/default", "analytics", "read_write").
		want(http.StatusOK, "Give agents more access?", `name="analytics" value="read_write"`, "Your password")
	v.send("/account/mcp-access/default", "analytics", "read_write", "password", "wrong").
		want(http.StatusUnprocessableEntity, `name="analytics" value="read_write"`, wrongPassword)
	if strings.Contains(v.page, `value="wrong"`) {
		t.Error("the page contains the password")
	}
	if got := len(h.called()); got != before {
		t.Fatalf("the access was changed without a proof: %v", h.called())
	}
	v.send("/account/mcp-access/default", "analytics", "read_write", "password", password).want(http.StatusSeeOther)
}

// A user proves an action with a real passkey in the browser, and reloading a page after a sign-in is harmless.
func TestProof_InTheBrowser(t *testing.T) {
	f := newSignIns(t, code)
	f.box.off = true
	s, _ := newPasskeyStage(t, f, asksProof)
	s.signInAsAda()
	s.do(chromium.Type("#passkey-name", "my laptop"), chromium.Type("#passkey-password", adaPassword),
		chromedp.Click("form[data-passkey] button"))
	s.see(`document.querySelector("[role=status]")?.innerText.includes("The passkey is added")`)
	s.open(page)
	s.see(`document.querySelector(".ways")?.checkVisibility()`)
	s.picture("approve-proof")
	s.do(chromium.Type("#password", "not the password"), chromedp.Click("#approve"))
	s.see(`document.querySelector("#password-error")?.innerText.includes("not your current password")`)
	s.picture("approve-wrong")
	s.do(chromedp.Click("form[data-passkey] button"))
	s.see(`location.pathname === "/activate/approved"`)
}

func TestActionOf_IgnoresOnlyTokensAndProofs(t *testing.T) {
	action := func(target string, form url.Values) string {
		r, _ := http.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return actionOf(&call{Request: r})
	}
	same := action("/keys", url.Values{"name": {"a"}})
	added := url.Values{"name": {"a"}, "csrf": {"x"}, "password": {"y"}, "proof": {"z"}}
	if got := action("/keys", added); got != same {
		t.Errorf("got %q, want %q", got, same)
	}
	for _, other := range []string{
		action("/keys?x", url.Values{"name": {"a"}}), action("/keys", url.Values{"name": {"b"}}),
		action("/keys", url.Values{"name": {"a", "a"}}), action("/other", url.Values{"name": {"a"}})} {
		if other == same {
			t.Errorf("another action is also %q", other)
		}
	}
}
