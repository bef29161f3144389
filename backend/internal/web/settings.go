package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/oidc"
)

const (
	settingsPath = "/account/settings"
	lastWayIn    = "This is the only way left to sign in to your account. Set a password or add another way first."
	needsConsent = "An account needs your agreement to the privacy policy."
)

// doneWords are the good news after a change, by the word in the address.
var doneWords = map[string]string{
	"mail-sent":       "The mail is on its way. Open the link in it to confirm the address.",
	"change-sent":     "We sent a link to the new address. Open it in a browser where you are signed in to change the address.",
	"verified":        "Thank you, the address is confirmed.",
	"password":        "The new password is saved. You are signed out in all other browsers.",
	"reset":           "The new password is saved, and you are signed in with it.",
	"passkey-added":   "The passkey is added. You can sign in with it from now on.",
	"passkey-removed": "The passkey is removed. It does not sign in any more; you may delete it from your device too.",
	"linked":          "Linked. You can sign in with it from now on.",
	"unlinked":        "Unlinked. It does not sign in any more.",
	"browser":         "That browser is signed out.",
	"browsers":        "All other browsers are signed out.",
}

// mountSettings adds the pages of signing in by other means than a password, of mailed links, and of the account's own
// settings.
func (w *Web) mountSettings(mux *http.ServeMux) {
	if w.Settings == nil {
		return
	}
	mails, changes := w.doors.mails, w.doors.changes
	mux.Handle("GET /signup/sent", w.page(w.signUpSent))
	mux.Handle("GET /signup/confirm", w.page(w.confirmForm))
	mux.Handle("POST /signup/confirm", w.page(w.limited(w.signIns, w.confirmSignUp)))
	mux.Handle("GET /forgot", w.page(w.forgotForm))
	mux.Handle("POST /forgot", w.page(w.sendForgotten))
	mux.Handle("GET /forgot/sent", w.page(w.forgottenSent))
	mux.Handle("GET /reset", w.page(w.resetForm))
	mux.Handle("POST /reset", w.page(w.limited(w.signIns, w.reset)))
	mux.Handle("GET /verify", w.page(w.verifyForm))
	mux.Handle("POST /verify", w.page(w.limited(w.signIns, w.verify)))
	mux.Handle("GET /goodbye", w.page(w.goodbye))
	mux.Handle("GET /account/settings", w.own(w.settings))
	mux.Handle("POST /account/settings/email", w.own(w.limitedOwn(mails, w.changeEmail)))
	mux.Handle("POST /account/settings/email/resend", w.own(w.limitedOwn(mails, w.resendMail)))
	mux.Handle("POST /account/settings/password", w.own(w.limitedOwn(changes, w.changePassword)))
	mux.Handle("POST /account/settings/browsers/{id}/end", w.own(w.limitedOwn(changes, w.endBrowser)))
	mux.Handle("POST /account/settings/browsers/end-others", w.own(w.limitedOwn(changes, w.endOtherBrowsers)))
	mux.Handle("POST /account/settings/export", w.own(w.limitedOwn(mails, w.export)))
	mux.Handle("GET /account/settings/delete", w.own(w.leavingForm))
	mux.Handle("POST /account/settings/delete", w.own(w.limitedOwn(changes, w.deleteAccount)))
	w.mountProviders(mux)
	w.mountPasskeys(mux)
}

func (w *Web) mountProviders(mux *http.ServeMux) {
	if w.Providers == nil {
		return
	}
	mux.Handle("POST /signin/oidc/{provider}", w.page(w.limited(w.signIns, w.leaveForProvider)))
	mux.Handle("GET /signin/oidc/{provider}/callback", w.page(w.limited(w.doors.changes, w.returnFromProvider)))
	mux.Handle("GET /signin/welcome", w.page(w.welcome))
	mux.Handle("POST /signin/welcome", w.page(w.limited(w.signIns, w.acceptWelcome)))
	mux.Handle("POST /account/settings/providers/{provider}/link", w.own(w.limitedOwn(w.doors.changes, w.leaveToLink)))
	mux.Handle("POST /account/settings/providers/{provider}/unlink", w.own(w.limitedOwn(w.doors.changes, w.unlink)))
}

func (w *Web) mountPasskeys(mux *http.ServeMux) {
	if w.Passkeys == nil {
		return
	}
	mux.Handle("POST /signin/passkey/begin", w.page(w.limited(w.doors.changes, w.askPasskey)))
	mux.Handle("POST /signin/passkey", w.page(w.signInWithPasskey))
	mux.Handle("POST /account/settings/passkeys/begin", w.own(w.limitedOwn(w.doors.changes, w.askNewPasskey)))
	mux.Handle("POST /account/settings/passkeys", w.own(w.limitedOwn(w.doors.changes, w.addPasskey)))
	mux.Handle("POST /account/settings/passkeys/{id}/remove", w.own(w.limitedOwn(w.doors.changes, w.removePasskey)))
}

// settingsPage is what the template "settings" shows.
type settingsPage struct {
	formErrors
	Done        string
	Email       string
	NewEmail    string // what was typed
	Verified    bool
	Mail        bool
	HasPassword bool
	Min         int
	Keys        passkeysPart
	Providers   []providerRow
	Browsers    []browserRow
	Others      bool // whether other browsers are signed in
}

type passkeysPart struct {
	On   bool
	List []passkeyRow
}

type passkeyRow struct{ ID, Name, Added, LastUsed string }

type providerRow struct {
	ID, Name, Email, Since string
	Linked                 bool
}

type browserRow struct {
	ID, Device, Address, Since, LastUsed string
	This                                 bool
}

// Current is the field for the current password with this id, for the template of that name.
func (p settingsPage) Current(id string) struct{ ID, Error string } {
	return struct{ ID, Error string }{id, p.Error(id)}
}

func (w *Web) settings(rw http.ResponseWriter, r *http.Request, a Account) error {
	return w.showSettings(rw, r, a, settingsPage{Done: doneWords[r.URL.Query().Get("done")]})
}

// done sends the browser back to the settings, where the word's sentence stands above.
func (w *Web) done(rw http.ResponseWriter, r *http.Request, word string) error {
	http.Redirect(rw, r, settingsPath+"?done="+word, http.StatusSeeOther)
	return nil
}

func (w *Web) showSettings(rw http.ResponseWriter, r *http.Request, a Account, p settingsPage) error {
	person, err := w.Settings.ByID(r.Context(), a.ID)
	if err != nil {
		return err
	}
	p.Email, p.Verified, p.HasPassword = person.Email, person.Verified(), person.HasPassword()
	p.Mail, p.Min = w.Settings.CanMail(), minPassword
	for _, fill := range []func(*http.Request, Account, *settingsPage) error{w.fillKeys, w.fillProviders, w.fillBrowsers} {
		if err := fill(r, a, &p); err != nil {
			return err
		}
	}
	return w.render(rw, r, statusOf(p.formErrors), "settings", p)
}

func (w *Web) fillKeys(r *http.Request, a Account, p *settingsPage) error {
	if w.Passkeys == nil {
		return nil
	}
	keys, err := w.Passkeys.List(r.Context(), a.ID)
	if err != nil {
		return err
	}
	p.Keys.On = true
	for _, k := range keys {
		p.Keys.List = append(p.Keys.List, passkeyRow{ID: k.ID, Name: told(k.Name), Added: w.lately(k.CreatedAt), LastUsed: w.lately(k.UsedAt)})
	}
	return nil
}

func (w *Web) fillProviders(r *http.Request, a Account, p *settingsPage) error {
	if w.Providers == nil {
		return nil
	}
	linked, err := w.Settings.Identities(r.Context(), a.ID)
	if err != nil {
		return err
	}
	offered := w.Providers.Providers()
	for _, l := range linked { // one that the operator took away can still be unlinked
		if !slices.ContainsFunc(offered, func(p oidc.Provider) bool { return p.ID == l.Provider }) {
			offered = append(offered, oidc.Provider{ID: l.Provider, Name: l.Provider + " (no longer offered)"})
		}
	}
	for _, one := range offered {
		row := providerRow{ID: one.ID, Name: one.Name}
		for _, l := range linked {
			if l.Provider == one.ID {
				row.Linked, row.Email, row.Since = true, l.Email, w.lately(l.LinkedAt)
			}
		}
		p.Providers = append(p.Providers, row)
	}
	return nil
}

func (w *Web) fillBrowsers(r *http.Request, a Account, p *settingsPage) error {
	open, err := w.Settings.Sessions(r.Context(), a.ID, browserSecret(r))
	if err != nil {
		return err
	}
	for _, s := range open {
		p.Browsers = append(p.Browsers, browserRow{
			ID: s.ID, Device: deviceOf(s.UserAgent), Address: s.IP, This: s.Current, Since: w.lately(s.CreatedAt) + methodWords(s.Method), LastUsed: w.lately(s.UsedAt),
		})
		p.Others = p.Others || !s.Current
	}
	return nil
}

func methodWords(method string) string {
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

// browserSecret is the secret in this browser's cookie, empty when nobody is signed in.
func browserSecret(r *http.Request) string {
	secret, signed := strings.CutPrefix(currentBrowser(r).id, signedPrefix)
	if !signed {
		return ""
	}
	return secret
}

// lately says when something was, more exactly the nearer it is; empty for never.
func (w *Web) lately(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch d := w.Now().Sub(t); {
	case d < time.Hour:
		return ago(d)
	case d < 2*time.Hour:
		return "1 hour ago"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " hours ago"
	}
	return "on " + t.UTC().Format("2 January 2006")
}
