package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/passkey"
	"github.com/service-dev/service/test/chromium"
)

// newSettingsPageTest returns a browser on the sign-in pages, and the fake services behind them.
func newSettingsPageTest(t *testing.T, change ...func(*Options)) (*pageTest, *fakeSettings) {
	t.Helper()
	f := newFakeSettings()
	f.people["ada@example.org"] = adaPassword
	s := &pageTest{t: t, site: newSite(t, f.fakeAccounts, append([]func(*Options){f.all}, change...)...)}
	s.ctx = newBrowser(t)
	return s, f
}

func (s *pageTest) open(path string) {
	s.t.Helper()
	s.do(chromedp.Navigate(s.site.URL + path))
	s.see(`document.readyState === "complete"`)
}

func (s *pageTest) signInAsAda() {
	s.t.Helper()
	s.open("/signin?next=/account/settings")
	s.do(chromium.Type("input[name=email]", "ada@example.org"),
		chromium.Type("input[name=password]", adaPassword), chromedp.Submit("input[name=email]"))
	s.see(`document.querySelector("h1").textContent === "Account settings"`)
}

// scheme sets the colour scheme of the page, light or dark.
func (s *pageTest) scheme(name string) {
	s.t.Helper()
	s.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	}))
}

// tabs presses Tab n times in the page's main part, and returns the names of the focused elements.
func (s *pageTest) tabs(n int) (names []string) {
	s.t.Helper()
	for range n {
		s.do(chromedp.KeyEvent(kb.Tab))
		names = append(names,
			eval[string](s,
				`((e) => (e.labels?.[0]?.textContent || e.textContent).replace(/\s+/g, " ").trim())(document.activeElement)`))
	}
	return names
}

func TestSignIn_ByKeyboard(t *testing.T) {
	s, _ := newSettingsPageTest(t)
	s.open("/signin")
	s.see(`document.querySelector("form[data-passkey]").checkVisibility()`) // a script shows it
	got := strings.Join(s.tabs(9), " | ")
	if want := "Skip to content | Service | E-mail | Password | Sign in | Forgot your password? | Continue with Acme | Sign in with a passkey | Create an account"; got != want {
		t.Errorf("the focus order is\n%s, want\n%s", got, want)
	}
	s.do(chromium.Type("#email", "ada@example.org"), chromium.Type("#password", adaPassword+"\r"))
	s.see(`location.pathname === "/" && document.body.innerText.includes("ada@example.org")`)
}

func TestFormErrors_LinkToTheirFields(t *testing.T) {
	s, _ := newSettingsPageTest(t)
	s.signInAsAda()
	s.do(chromedp.Click("section[aria-labelledby=password-title] summary"),
		chromium.Type("#current-password", "not the password"),
		chromium.Type("#new-password", "a new long password\r"))
	s.see(`document.querySelector("#summary")?.role === "alert" || document.querySelector("#summary")?.getAttribute("role") === "alert"`)
	s.see(`document.activeElement.id === "current-password" && document.activeElement.getAttribute("aria-invalid") === "true"`)
	s.do(chromedp.Focus("#summary a"), chromedp.KeyEvent("\r"))
	s.see(`document.activeElement.id === "current-password"`)
	if got := eval[string](s,
		`document.getElementById(document.activeElement.getAttribute("aria-describedby")).textContent`); got != wrongPassword {
		t.Errorf("the field is described by %q, want the wrong password", got)
	}
	s.picture("settings-error")
}

func TestProvider_IsReachedWithUnchangedPolicy(t *testing.T) {
	s, f := newSettingsPageTest(t)
	f.identity.Provider, f.identity.Subject, f.identity.Email, f.identity.EmailVerified = "acme", "s1", "bob@example.org",
		true
	provider := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { // another origin
		http.Redirect(rw, r, r.URL.Query().Get("redirect_uri")+"?code=c0de&state="+r.URL.Query().Get("state"),
			http.StatusSeeOther)
	}))
	t.Cleanup(provider.Close)
	f.site = provider.URL
	s.open("/signup")
	s.do(chromedp.Click("form[action='/signin/oidc/acme'] button"))
	s.see(`document.querySelector("h1").textContent.startsWith("Create an account with Acme")`)
	s.picture("welcome")
	s.do(chromedp.Click("#accept"), chromedp.Click("main button[type=submit]"))
	s.see(`document.body.innerText.includes("bob@example.org") && location.pathname === "/"`)
}

// The test fills every sign-in and settings page with content, and checks it in both colour schemes and at three
// widths.
func TestSettings_AreAccessible(t *testing.T) {
	s, f := newSettingsPageTest(t)
	check := func(name string) {
		t.Helper()
		for _, scheme := range []string{"dark", "light"} {
			s.scheme(scheme)
			s.picture(name + "-" + scheme)
			for _, width := range []int64{1280, 390, 320} {
				s.do(chromedp.EmulateViewport(width, 844))
				for _, wrong := range eval[[]string](s, stumbles) {
					t.Errorf("%s in %s at width %d has obstacles: %s", name, scheme, width, wrong)
				}
			}
		}
		s.do(chromedp.EmulateViewport(1280, 800))
	}
	f.tokens["sml_one"] = "id-ada@example.org"
	for name, path := range map[string]string{"signin": "/signin", "signup": "/signup", "forgot": "/forgot",
		"sent": "/forgot/sent", "signup-sent": "/signup/sent", "signup-confirm": "/signup/confirm?token=sml_signup",
		"reset":  "/reset?token=sml_one",
		"verify": "/verify?token=sml_one", "too-late": callback, "goodbye": "/goodbye", "activation": page} {
		s.open(path)
		check(name)
	}
	s.signInAsAda()
	f.keys = []passkey.Passkey{{ID: "k1", Name: "my laptop", CreatedAt: time.Now().Add(-80 * time.Hour),
		UsedAt: time.Now().Add(-2 * time.Hour)}, {ID: "k2", Name: strings.Repeat("long", 15), CreatedAt: time.Now()}}
	f.identities["id-ada@example.org"] = []account.LinkedIdentity{{Provider: "acme", Subject: "s1",
		Email: "a.l@acme.example", LinkedAt: time.Now()}}
	if _, err := f.OpenSession(t.Context(), "id-ada@example.org",
		account.Visit{Method: account.ByPasskey, UserAgent: "Mozilla/5.0 (iPhone) Safari/604",
			IP: "2001:db8:85a3:8d3:1319:8a2e:370:7348"}); err != nil {
		t.Fatal(err)
	}
	s.open("/verify?token=sml_one")
	check("verify-signed-in")
	s.open(settingsPath)
	check("settings")
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach((d) => { d.open = true; })`))
	check("settings-open")
	s.open(settingsPath + "/delete")
	check("delete")
	f.mail = false
	s.open("/forgot")
	check("forgot-nomail")
}
