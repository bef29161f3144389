package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/oidc"
)

const (
	settingsPath = "/account/settings"
	lastMethod   = "Set a password or add another way to sign in first: this is the only way left."
)

// mountSettings adds the pages for additional sign-in methods, for mailed links and for the account's settings.
func (w *Web) mountSettings(mux *http.ServeMux) {
	mount(mux, w.page, map[string]handler{
		"GET /signup/sent":     w.signUpSent,
		"GET /signup/confirm":  w.confirmForm,
		"POST /signup/confirm": w.limited(w.signIns, w.confirmSignUp),
		"GET /forgot":          w.forgotForm,
		"POST /forgot":         w.sendForgot,
		"GET /forgot/sent":     w.forgotSent,
		"GET /reset":           w.resetForm,
		"POST /reset":          w.limited(w.signIns, w.reset),
		"GET /verify":          w.verifyForm,
		"POST /verify":         w.limited(w.signIns, w.verify),
		"GET /goodbye":         w.goodbye,
	})
	mails, changes := w.rateLimits.mails, w.rateLimits.changes
	mount(mux, w.signedIn, map[string]handler{
		"GET " + settingsPath:                           w.settings,
		"POST " + settingsPath + "/email":               w.limited(mails, w.changeEmail),
		"POST " + settingsPath + "/email/resend":        w.limited(mails, w.resendMail),
		"POST " + settingsPath + "/password":            w.limited(changes, w.changePassword),
		"POST " + settingsPath + "/browsers/{id}/end":   w.limited(changes, w.endBrowser),
		"POST " + settingsPath + "/browsers/end-others": w.limited(changes, w.endOtherBrowsers),
		"POST " + settingsPath + "/export":              w.limited(mails, w.export),
		"GET " + settingsPath + "/delete":               w.deleteForm,
		"POST " + settingsPath + "/delete":              w.limited(changes, w.deleteAccount),
	})
	if w.Providers != nil {
		mount(mux, w.page, map[string]handler{
			"POST /signin/oidc/{provider}":         w.limited(w.signIns, w.signInWithProvider),
			"GET /signin/oidc/{provider}/callback": w.limited(changes, w.providerCallback),
			"GET /signin/welcome":                  w.welcome,
			"POST /signin/welcome":                 w.limited(w.signIns, w.acceptWelcome),
		})
		mount(mux, w.signedIn, map[string]handler{
			"POST " + settingsPath + "/providers/{provider}/link":   w.limited(changes, w.linkProvider),
			"POST " + settingsPath + "/providers/{provider}/unlink": w.limited(changes, w.unlinkProvider),
		})
	}
	if w.Passkeys != nil {
		mount(mux, w.page, map[string]handler{
			"POST /signin/passkey/begin": w.limited(changes, w.beginPasskey),
			"POST /signin/passkey":       w.signInWithPasskey,
		})
		mount(mux, w.signedIn, map[string]handler{
			"POST /account/proof/begin":                      w.limited(changes, w.beginProof),
			"POST " + settingsPath + "/passkeys/begin":       w.limited(changes, w.beginNewPasskey),
			"POST " + settingsPath + "/passkeys":             w.limited(changes, w.addPasskey),
			"POST " + settingsPath + "/passkeys/{id}/remove": w.limited(changes, w.removePasskey),
		})
	}
}

// settingsPage is the data of the template "settings".
type settingsPage struct {
	formErrors
	Done        *notice
	Email       string
	NewEmail    string // address as entered
	Verified    bool
	Mail        bool
	HasPassword bool
	Min         int
	Keys        passkeysPart
	Providers   []providerRow
	Browsers    []browserRow
	Others      bool   // whether the account is signed in on other browsers
	Ask         string // the provider whose form asks for the password; "" if none does
	Stale       bool   // whether the sign-in is not recent, so that new sign-in methods need the password
	Again       string // path to return to after signing in again; "" if that is not needed
}

// AskID returns the ID of the password input in the form of a provider.
func (p settingsPage) AskID() string { return "ask-password" }

type passkeysPart struct {
	On   bool
	Name string // name of a new passkey, as entered
	Site string // address at which passkeys work; "" if it is the address of this page
	List []passkeyRow
}

type passkeyRow struct {
	ID, Name, Added, LastUsed string
	Elsewhere                 bool // whether it works only at another address
}

type providerRow struct {
	ID, Name, Email, Since string
	Linked                 bool
}

type browserRow struct {
	ID, Device, Address, Since, LastUsed string
	This                                 bool
}

// Current is the data of the template "current-password": the ID and the error of the input for the current password.
func (p settingsPage) Current(id string) struct{ ID, Error string } {
	return struct{ ID, Error string }{id, p.Error(id)}
}

func (w *Web) settings(c *call) error {
	p := settingsPage{Done: c.notice()}
	if entered := c.URL.Query().Get("new-email"); isPlausibleEmail(entered) { // entered before signing in again
		p.NewEmail = entered
	}
	return w.showSettings(c, p)
}

// settingsDone redirects to the settings with a notice, unless err prevented the change.
func (w *Web) settingsDone(c *call, err error, code string) error {
	return c.done(err, settingsPath, code)
}

// showProblem shows the settings with the problem of the last form.
func (w *Web) showProblem(c *call, problem string) error {
	return w.showSettings(c, settingsPage{formErrors: formErrors{Problem: problem}})
}

func (w *Web) showSettings(c *call, p settingsPage) error {
	owner, err := w.Accounts.ByID(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	p.Email, p.Verified, p.HasPassword = owner.Email, owner.Verified(), owner.HasPassword()
	p.Mail, p.Min = w.Accounts.CanMail(), minPassword
	if p.Stale, err = w.isStale(c); err != nil {
		return err
	}
	for _, add := range []func(*call, *settingsPage) error{w.addPasskeys, w.addProviders, w.addBrowsers} {
		if err := add(c, &p); err != nil {
			return err
		}
	}
	return w.render(c, p.status(), "settings", p)
}

func (w *Web) addPasskeys(c *call, p *settingsPage) error {
	if w.Passkeys == nil {
		return nil
	}
	keys, err := w.Passkeys.List(c.Context(), c.account.ID)
	p.Keys.On = true
	if !w.isSiteHost(c) {
		p.Keys.Site = w.SiteURL
	}
	for _, k := range keys {
		p.Keys.List = append(p.Keys.List, passkeyRow{
			ID: k.ID, Name: printable(k.Name), Added: ago(k.CreatedAt, w.Now()), LastUsed: ago(k.UsedAt, w.Now()),
			Elsewhere: !w.worksHere(k),
		})
	}
	return err
}

func (w *Web) addProviders(c *call, p *settingsPage) error {
	if w.Providers == nil {
		return nil
	}
	linked, err := w.Accounts.Identities(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	offered := w.Providers.Providers()
	for _, l := range linked { // an identity of a provider that the operator removed can still be unlinked
		if !slices.ContainsFunc(offered, func(p oidc.Provider) bool { return p.ID == l.Provider }) {
			offered = append(offered, oidc.Provider{ID: l.Provider, Name: l.Provider + " (no longer offered)"})
		}
	}
	for _, provider := range offered {
		row := providerRow{ID: provider.ID, Name: provider.Name}
		for _, l := range linked {
			if l.Provider == provider.ID {
				row.Linked, row.Email, row.Since = true, l.Email, ago(l.LinkedAt, w.Now())
			}
		}
		p.Providers = append(p.Providers, row)
	}
	return nil
}

func (w *Web) addBrowsers(c *call, p *settingsPage) error {
	open, err := w.Accounts.Sessions(c.Context(), c.account.ID, browserSecret(c))
	for _, s := range open {
		p.Browsers = append(p.Browsers, browserRow{
			ID: s.ID, Device: deviceName(s.UserAgent), Address: s.IP, This: s.Current,
			Since: ago(s.CreatedAt, w.Now()) + methodText(s.Method), LastUsed: ago(s.UsedAt, w.Now()),
		})
		p.Others = p.Others || !s.Current
	}
	return err
}

func methodText(method string) string {
	switch {
	case method == account.ByPassword:
		return " with the password"
	case method == account.ByPasskey:
		return " with a passkey"
	case method == account.ByMail:
		return " by a mailed link"
	case strings.HasPrefix(method, account.ByOIDC):
		return " with a sign-in provider"
	}
	return ""
}
