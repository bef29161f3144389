package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/oidctest"
)

// newSettingsPageTest returns a browser on the sign-in pages, and the services behind them.
func newSettingsPageTest(t *testing.T, change ...func(*Options)) (*pageTest, *people) {
	t.Helper()
	f := newSignIns(t, code)
	f.add("ada@example.org")
	s := &pageTest{t: t, site: newSite(t, f, change...)}
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
	f.acme().Be(oidctest.Person{Subject: "s1", Email: "bob@example.org", EmailVerified: true}) // another origin
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
	id, one := idOf("ada@example.org"), f.verifyToken(idOf("ada@example.org"))
	for name, path := range map[string]string{"signin": "/signin", "signup": "/signup", "forgot": "/forgot",
		"sent": "/forgot/sent", "signup-sent": "/signup/sent", "signup-confirm": "/signup/confirm?token=x",
		"reset":  "/reset?token=" + one,
		"verify": "/verify?token=" + one, "too-late": callback, "goodbye": "/goodbye", "activation": page} {
		s.open(path)
		check(name)
	}
	s.signInAsAda()
	for i, name := range []string{"my laptop", strings.Repeat("long", 15)} {
		f.exec(`INSERT INTO passkeys (id, account_id, credential_id, name, credential, sign_count, created_at, used_at, host)
			VALUES ($1, $2, $1, $3, '{}', 0, $4, $5, 'glasses.example')`, fmt.Sprint("k", i), id, name,
			f.now().Add(-80*time.Hour).UnixMilli(), f.now().Add(-2*time.Hour).UnixMilli())
	}
	f.link(id, "acme", "s1", "a.l@acme.example")
	f.openSession(id, account.Visit{Method: account.ByPasskey, UserAgent: "Mozilla/5.0 (iPhone) Safari/604",
		IP: "2001:db8:85a3:8d3:1319:8a2e:370:7348"})
	s.open("/verify?token=" + one)
	check("verify-signed-in")
	s.open(settingsPath)
	check("settings")
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach((d) => { d.open = true; })`))
	check("settings-open")
	s.open(settingsPath + "/delete")
	check("delete")
	f.box.off = true
	s.open("/forgot")
	check("forgot-nomail")
}
