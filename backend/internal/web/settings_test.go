package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/test/passkeytest"
)

const adaPassword = "correct horse battery"

// settled returns ada, signed in and on her settings page.
func settled(t *testing.T, change ...func(*Options)) (*people, *visitor) {
	t.Helper()
	f := newSignIns(t)
	return f, settledAt(t, f, newSite(t, f, change...))
}

func settledAt(t *testing.T, f *people, site *httptest.Server) *visitor {
	t.Helper()
	f.add("ada@example.org")
	v := visit(t, site).get("/signin")
	v.send("/signin?next=/account/settings", "email", "ada@example.org", "password", adaPassword).onward()
	return v.want(http.StatusOK, "Account settings", `aria-current="page">Settings`)
}

func TestSettings_RequireSignIn(t *testing.T) {
	f := newSignIns(t, code)
	v := visit(t, newSite(t, f))
	for _, path := range []string{settingsPath, settingsPath + "/delete"} {
		v.get(path).want(http.StatusSeeOther)
		if got := v.header.Get("Location"); !strings.HasPrefix(got, "/signin?next=%2Faccount%2Fsettings") {
			t.Errorf("%s redirects to %s, want the sign-in page that leads back", path, got)
		}
	}
	form, before := v.get("/signin").tokens(), f.written()
	for _, path := range []string{"/email", "/email/resend", "/password", "/browsers/x/end", "/browsers/end-others",
		"/export", "/delete", "/passkeys", "/passkeys/begin", "/passkeys/x/remove", "/providers/acme/link",
		"/providers/acme/unlink"} {
		v.post(settingsPath+path, form).want(http.StatusSeeOther)
		v.post(settingsPath+path, nil).want(http.StatusForbidden)
	}
	if got := f.written(); got != before || len(f.box.sent) != 0 {
		t.Error("something was changed without a signed-in account")
	}
	bare := visit(t, newSite(t, f, func(o *Options) { o.Providers, o.Passkeys = nil, nil }))
	if bare.get("/signin"); strings.Contains(bare.page, "Acme") || strings.Contains(bare.page, "passkey") {
		t.Error("the page offers a method that this backend does not have")
	}
}

func TestSettings_ChangePassword(t *testing.T) {
	f, v := settled(t)
	other := f.openSession(idOf("ada@example.org"), account.Visit{})
	v.send(settingsPath+"/password", "password", "wrong", "new", "a new long password").
		want(http.StatusUnprocessableEntity, `href="#current-password"`, `id="current-password-error"`, "<title>Error:",
			"<details open>")
	v.send(settingsPath+"/password", "password", adaPassword, "new", "short").want(http.StatusUnprocessableEntity,
		`id="new-password-error"`)
	v.send(settingsPath+"/password", "password", adaPassword, "new", "a new long password").onward().want(http.StatusOK,
		"new password is saved")
	if !f.hasPassword("ada@example.org", "a new long password") {
		t.Error("the password was not changed")
	}
	if _, err := f.accounts.FindSession(t.Context(), other); err == nil {
		t.Error("the other browser is still signed in")
	}
}

// A change to an address that has an account gets the same response as any other change.
func TestSettings_ChangeEmailDoesNotRevealAccounts(t *testing.T) {
	f, v := settled(t)
	f.add("bob@example.org")
	var pages []string
	for _, email := range []string{"bob@example.org", "lovelace@example.org"} {
		pages = append(pages, v.send(settingsPath+"/email", "email", email, "password",
			adaPassword).onward().want(http.StatusOK, "a link to the new address").page)
	}
	if pages[0] != pages[1] {
		t.Error("the responses reveal whether the address has an account")
	}
}

func TestSettings_ChangeEmail(t *testing.T) {
	f, v := settled(t)
	v.want(http.StatusOK, "not confirmed", "Send the mail again")
	for _, tc := range []struct{ email, password, want string }{
		{"nonsense", adaPassword, `id="new-email-error"`},
		{"ada@example.org", adaPassword, "your account&#39;s address already"},
		{"lovelace@example.org", "wrong", `id="email-password-error"`},
	} {
		v.send(settingsPath+"/email", "email", tc.email, "password", tc.password).want(http.StatusUnprocessableEntity,
			tc.want, `value="`+tc.email+`"`, `role="alert"`)
		if strings.Contains(v.page, `"`+tc.password+`"`) {
			t.Error("the page contains the password")
		}
	}
	v.send(settingsPath+"/email", "email", "lovelace@example.org", "password", adaPassword).onward().want(http.StatusOK,
		"a link to the new address")
	v.send(settingsPath+"/email/resend").onward().want(http.StatusOK, "on its way")
	if to, again := f.mail().To, f.mail().To; to != "lovelace@example.org" || again != "ada@example.org" {
		t.Errorf("got mails to %s and %s, want one to each address", to, again)
	}
	f.exec("UPDATE accounts SET verified_at = 1")
	if v.get(settingsPath).want(http.StatusOK, ">confirmed<"); strings.Contains(v.page, "mail again") {
		t.Error("the page asks to confirm a confirmed address")
	}
	f.exec("UPDATE accounts SET verified_at = NULL")
	f.box.off = true
	if v.get(settingsPath).want(http.StatusOK, "cannot be changed here"); strings.Contains(v.page, "confirmed") ||
		strings.Contains(v.page, "We send") {
		t.Error("the page mentions mail although the backend sends none")
	}
	v.send(settingsPath+"/email", "email", "third@example.org", "password", adaPassword).want(http.StatusNotFound)
}

func TestSettings_Browsers(t *testing.T) {
	f, v := settled(t)
	id := idOf("ada@example.org")
	f.openSession(id, account.Visit{Method: account.ByPasskey, UserAgent: "Mozilla/5.0 (iPhone) Version/18 Safari/604",
		IP: "192.0.2.9"})
	f.openSession(f.add("bob@example.org"), account.Visit{})
	phone := f.value("id FROM web_sessions WHERE ip = '192.0.2.9'")
	foreign := f.value("id FROM web_sessions WHERE account_id <> $1", id)
	v.get(settingsPath).want(http.StatusOK, "this browser", "Safari on iPhone", "192.0.2.9", "with a passkey",
		"Sign out all other browsers")
	if strings.Count(v.page, "this browser") != 1 || !strings.Contains(v.page, phone) {
		t.Error("the page does not tell this browser from the others")
	}
	v.send(settingsPath + "/browsers/" + foreign + "/end").want(http.StatusNotFound)
	v.get(settingsPath).send(settingsPath+"/browsers/"+phone+"/end").onward().want(http.StatusOK,
		"That browser is signed out")
	if strings.Contains(v.page, "Sign out all other") {
		t.Error("the page offers to sign out other browsers although there are none")
	}
	f.openSession(id, account.Visit{})
	v.send(settingsPath+"/browsers/end-others").onward().want(http.StatusOK, "All other browsers are signed out")
	if n := f.count("web_sessions"); n != 2 { // ada's in one browser, bob's in the other
		t.Errorf("%d sessions are open, want 2", n)
	}
}

func TestSettings_Passkeys(t *testing.T) {
	f, v := settled(t)
	// The browser has no challenge.
	v.send(settingsPath+"/passkeys", "name", "my laptop", "credential", "k1").want(http.StatusUnprocessableEntity,
		"was not added")
	laptop := passkeytest.New(t, passkeySite)
	answer := string(laptop.Create(t, []byte(v.send(settingsPath+"/passkeys/begin").want(http.StatusOK, `"challenge"`).page)))
	v.get(settingsPath).send(settingsPath+"/passkeys", "name", " ", "credential",
		answer).want(http.StatusUnprocessableEntity, `id="passkey-name-error"`)
	v.send(settingsPath+"/passkeys", "name", "<b>my laptop", "credential", answer).onward().want(http.StatusOK,
		"The passkey is added", "&lt;b&gt;my laptop", "Not used yet")
	form := v.tokens()

	w := another(v).get("/signin")
	begin := func() []byte {
		w.get("/signin")
		return []byte(w.send("/signin/passkey/begin").want(http.StatusOK, `"challenge"`).page)
	}
	unknown := passkeytest.New(t, passkeySite)
	unknown.Handle = laptop.Handle
	options := begin()
	w.get("/signin?next=/privacy").want(http.StatusOK, "Sign in with a passkey").send("/signin/passkey?next=/privacy",
		"credential", string(unknown.Sign(t, options))).want(http.StatusUnprocessableEntity, "was not accepted")
	w.send("/signin/passkey", "credential", string(laptop.Sign(t, options))).
		want(http.StatusUnprocessableEntity) // the challenge was already used
	answer = string(laptop.Sign(t, begin()))
	w.get("/signin").send("/signin/passkey?next=/privacy", "credential", answer).want(http.StatusSeeOther)
	if got := w.header.Get("Location"); got != "/privacy" {
		t.Errorf("redirected to %s, want /privacy", got)
	}
	w = another(v).get("/signin")
	laptop.Counter = 0 // as in an earlier copy
	answer = string(laptop.Sign(t, begin()))
	w.get("/signin").send("/signin/passkey", "credential", answer).want(http.StatusUnprocessableEntity,
		"seems to be a copy")
	f.addPasskey("ada@example.org")
	v.post(settingsPath+"/passkeys/k3/remove", form).want(http.StatusNotFound)
	v.post(settingsPath+"/passkeys/"+f.value("id FROM passkeys WHERE name <> 'mine'")+"/remove", form).onward().
		want(http.StatusOK, "The passkey is removed", "mine")
}

func TestExport_IsAFile(t *testing.T) {
	f, v := settled(t)
	v.send(settingsPath+"/export").want(http.StatusOK, `"ada@example.org"`)
	if got := v.header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="account-`) ||
		v.header.Get("Content-Type") != "application/json" {
		t.Errorf("got headers %v, want a JSON attachment", v.header)
	}
	v.get(settingsPath)
	f.exec("DROP TABLE identities")
	v.send(settingsPath+"/export").want(http.StatusInternalServerError, "on our side")
	if v.header.Get("Content-Disposition") != "" || strings.Contains(v.page, "no such table") {
		t.Error("an error was sent as a file")
	}
}

// A process that is killed while it writes or sends an export leaves no file behind, because the file no longer has a
// name.
func TestExport_LeavesNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows the file has a name, and the kernel deletes it with its last handle")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, v := settled(t)
	looked := false
	f.onNow = func() { // while the accounts export, they read the clock again after they have noted it
		looked = looked || f.count("audit WHERE action = 'account.exported'") > 0
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("a kill now would leave the files %v, %v", left, err)
		}
	}
	v.send(settingsPath+"/export").want(http.StatusOK, `"ada@example.org"`)
	if !looked {
		t.Error("the account was not exported")
	}
}

// slowExport starts an export of 64 MB and returns before its body is read.
func slowExport(t *testing.T, f *people, v *visitor) *http.Response {
	t.Helper()
	for i := range 65 {
		f.exec(`INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary)
			VALUES ($1, $2, 1, 'person', '', 'big', '', $3)`, fmt.Sprint("big", i), idOf("ada@example.org"),
			strings.Repeat("x", 1<<20))
	}
	form := v.tokens()
	req, err := http.NewRequest(http.MethodPost, v.site+settingsPath+"/export", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := v.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// An account has one export at a time. It ends when the browser disconnects, even if it has not read everything.
func TestExport_OneAtATime(t *testing.T) {
	f := newSignIns(t, code)
	web, ended := newWeb(t, f), make(chan struct{}, 3)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		web.ServeHTTP(rw, r)
		if r.URL.Path == settingsPath+"/export" {
			ended <- struct{}{}
		}
	}))
	t.Cleanup(site.Close)
	v := settledAt(t, f, site)
	form := v.tokens()
	first := slowExport(t, f, v)
	v.post(settingsPath+"/export", form).want(http.StatusTooManyRequests, "Another export is not finished")
	if v.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	<-ended
	first.Body.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the first export did not end after its browser had left")
	}
	f.exec("DELETE FROM audit WHERE action = 'big'")
	v.post(settingsPath+"/export", form).want(http.StatusOK)
}

// The system's directory for temporary files does not have to exist.
func TestExport_WithoutSystemTempDir(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	_, v := settled(t, func(o *Options) { o.TempDir = t.TempDir() })
	v.send(settingsPath+"/export").want(http.StatusOK, `"ada@example.org"`)
	v.get(settingsPath).want(http.StatusOK)
}

// The account has been read completely before the browser reads anything: the response has the length of the file.
func TestExport_SlowReaderHoldsNoConnection(t *testing.T) {
	f, v := settled(t)
	if res := slowExport(t, f, v); res.ContentLength < 64<<20 {
		t.Errorf("the length is %d, want that of the whole export", res.ContentLength)
	}
}

func TestSettings_DeleteAccount(t *testing.T) {
	f, v := settled(t)
	cookie := v.client.Jar.Cookies(mustURL(v.site))
	v.get(settingsPath+"/delete").want(http.StatusOK, "permanently", "Keep my account")
	v.send(settingsPath+"/delete", "email", "bob@example.org", "password",
		adaPassword).want(http.StatusUnprocessableEntity, `id="email-error"`)
	v.send(settingsPath+"/delete", "email", "ada@example.org", "password", "wrong").want(http.StatusUnprocessableEntity,
		`id="password-error"`)
	if f.count("accounts") != 1 {
		t.Fatal("the account was deleted")
	}
	v.send(settingsPath+"/delete", "email", " Ada@example.org", "password", adaPassword).onward().want(http.StatusOK,
		"Your account is deleted")
	if f.count("accounts") != 0 || strings.Contains(v.page, "Sign out") {
		t.Error("want ada's account deleted and the browser signed out")
	}
	v.client.Jar.SetCookies(mustURL(v.site), cookie)
	v.get(settingsPath).want(http.StatusSeeOther)
}

func TestSettings_WithoutPasswordRequireFreshSignIn(t *testing.T) {
	f, v := settled(t)
	f.exec("UPDATE accounts SET password_hash = ''")
	v.get(settingsPath).want(http.StatusOK, "You have no password", "Set a password")
	f.pass(freshSignIn + time.Minute)
	v.send(settingsPath+"/password", "new", "another horse battery").want(http.StatusUnprocessableEntity, "sign in again")
	v.send(settingsPath+"/email", "email", "thief@example.org").want(http.StatusUnprocessableEntity, "sign in again")
	if f.count("accounts WHERE password_hash <> ''") != 0 || len(f.box.sent) != 0 {
		t.Fatal("an old sign-in set a password or changed the address")
	}
	v.get(settingsPath+"/delete").want(http.StatusOK, "Sign in again to prove")
	v.send(settingsPath+"/delete", "email", "ada@example.org").want(http.StatusUnprocessableEntity, "Sign in again to prove")
	if f.count("accounts") != 1 {
		t.Fatal("an old sign-in deleted the account")
	}
	f.pass(-freshSignIn)
	v.get(settingsPath+"/delete").send(settingsPath+"/delete", "email", "ada@example.org").onward().want(http.StatusOK,
		"deleted")
}

// Adding a sign-in method requires a recent sign-in or the password, because the method works permanently. The password
// is asked for in place, and the entered values stay.
func TestSettings_NewSignInMethodAsksForThePassword(t *testing.T) {
	f, v := settled(t)
	const hiddenField = `data-password hidden>`
	v.want(http.StatusOK, hiddenField)
	f.pass(freshSignIn + time.Minute)
	v.get(settingsPath).want(http.StatusOK, `id="passkey-password"`).lacks(hiddenField)
	form := v.tokens()
	v.post(settingsPath+"/passkeys/begin", form).want(http.StatusConflict, `"password":true`, "Enter your current password")
	form.Set("password", "not the password")
	v.post(settingsPath+"/passkeys/begin", form).want(http.StatusConflict, `"password":true`, "not your current password")
	form.Del("password")
	form.Set("name", "mine")
	form.Set("credential", "k1")
	v.post(settingsPath+"/passkeys", form).want(http.StatusUnprocessableEntity, "was not added", `value="mine"`)
	v.post(settingsPath+"/providers/acme/link", form).want(http.StatusUnprocessableEntity, "Enter your current password",
		`id="ask-password"`, `aria-invalid="true"`)
	form.Set("password", "not the password")
	v.post(settingsPath+"/providers/acme/link", form).want(http.StatusUnprocessableEntity,
		"not your current password").lacks("not the password")
	v.get(callback).want(http.StatusBadRequest)
	if f.count("passkeys")+f.count("identities") != 0 {
		t.Fatal("an old sign-in added a sign-in method without the password")
	}
	form.Set("password", adaPassword)
	v.post(settingsPath+"/providers/acme/link", form).want(http.StatusOK, "Acme").lacks(adaPassword)
	options := v.post(settingsPath+"/passkeys/begin", form).want(http.StatusOK, "challenge").page
	form.Del("password")
	form.Set("credential", string(passkeytest.New(t, passkeySite).Create(t, []byte(options))))
	v.post(settingsPath+"/passkeys", form).want(http.StatusSeeOther)
	if f.count("passkeys") != 1 {
		t.Error("the passkey was not added with the right password")
	}
}

// Without a password, the user must sign in again, and then returns to the entered values.
func TestSettings_SignInAgainKeepsTheEntry(t *testing.T) {
	f, v := settled(t)
	f.exec("UPDATE accounts SET password_hash = ''")
	f.pass(freshSignIn + time.Minute)
	const back = "/account/settings?new-email=new%40example.org"
	v.get(settingsPath).send(settingsPath+"/email", "email", "new@example.org").want(http.StatusUnprocessableEntity,
		"Sign in again", `action="/signout?next=%2faccount%2fsettings%3fnew-email%3dnew%2540example.org"`, `value="new@example.org"`)
	v.get(back).want(http.StatusOK, `value="new@example.org"`, "<details open>")
	v.get("/account/settings?new-email=%22%3E").want(http.StatusOK).lacks("<details open>")
	form := v.tokens()
	v.post(settingsPath+"/passkeys/begin", form).want(http.StatusConflict, `"password":false`, "sign in again")
	v.post(settingsPath+"/providers/acme/link", form).want(http.StatusUnprocessableEntity, "Sign in again")
}

func TestSettings_ChangesAreLimitedPerAddress(t *testing.T) {
	f, v := settled(t)
	form := v.tokens()
	for range mailsPerMinute {
		f.exec("DELETE FROM mails") // whose number is limited per account too
		v.post(settingsPath+"/email/resend", form).want(http.StatusSeeOther)
	}
	v.post(settingsPath+"/email/resend", form).want(http.StatusTooManyRequests, "Too many attempts")
	for range changesPerMinute {
		v.post(settingsPath+"/password", form).want(http.StatusUnprocessableEntity)
	}
	v.post(settingsPath+"/delete", form).want(http.StatusTooManyRequests)
	if v.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
}
