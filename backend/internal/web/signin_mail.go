package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/service-dev/service/backend/internal/account"
)

const (
	verifyPath = "/verify"
	// maxMailToken limits the token of a mailed link, in bytes.
	maxMailToken = 200
	noMailYet    = "No mail yet? Check your spam folder and the address, or try again in a few minutes."
)

type forgotPage struct {
	formErrors
	Mail  bool
	Local bool // the backend runs on the user's own computer
	Email string
}

func (w *Web) forgotForm(c *call) error { return w.showForgot(c, http.StatusOK, forgotPage{}) }

func (w *Web) showForgot(c *call, status int, p forgotPage) error {
	p.Mail, p.Local = w.Accounts.CanMail(), w.Embedded
	return w.render(c, status, "forgot", p)
}

// sendForgot responds identically to known and unknown addresses.
func (w *Web) sendForgot(c *call) error {
	p := forgotPage{Email: strings.TrimSpace(c.PostFormValue("email"))}
	if !w.Accounts.CanMail() {
		return w.showForgot(c, http.StatusOK, p)
	}
	if w.rateLimits.mails.Take(w.ClientIP(c.Request)) > 0 {
		p.Problem = tooMany
		c.rw.Header().Set("Retry-After", "60")
		return w.showForgot(c, http.StatusTooManyRequests, p)
	}
	err := account.ErrBadEmail
	if isPlausibleEmail(p.Email) {
		err = w.Accounts.ForgotPassword(c.Context(), p.Email)
	}
	if errors.Is(err, account.ErrBadEmail) {
		p.add("email", badEmail)
		return w.showForgot(c, p.status(), p)
	}
	if err != nil {
		return err
	}
	if err := w.saveFlow(c, flowMailed, p.Email); err != nil {
		return err
	}
	return c.redirect("/forgot/sent")
}

// mailedTo returns the address to which this browser session just requested a mail, or a description of it.
func (w *Web) mailedTo(c *call) string {
	var email string
	if !w.loadFlow(c, flowMailed, &email) {
		return "that address"
	}
	return printable(email)
}

func (w *Web) forgotSent(c *call) error {
	return w.showMessage(c, http.StatusOK, message{
		Title: "Check your mail",
		Text: []string{"If there is an account with " + w.mailedTo(c) + ", a link to choose a new password is on its way. " +
			"It works once and expires soon.", noMailYet},
		Href: "/signin", Label: "Back to sign in", Quiet: true, Other: "Use another address", OtherHref: "/forgot",
	})
}

// mailForm serves the page of a mailed link. It moves the link's token from the URL into the flow's state, redirects to
// the URL without it, and then calls show. Without a token, it explains that the link has expired and how to get a new
// one.
func (w *Web) mailForm(c *call, flow string, expired message, show func() error) error {
	if token := c.URL.Query().Get("token"); token != "" && len(token) <= maxMailToken {
		if err := w.saveFlow(c, flow, token); err != nil {
			return err
		}
		return c.redirect(c.URL.Path)
	}
	var token string
	if w.loadFlow(c, flow, &token); token == "" {
		return w.showExpired(c, expired)
	}
	return show()
}

// These are the targets of expired links.
var (
	askAgain    = message{Href: "/forgot", Label: "Ask for a new link"}
	signUpAgain = message{Href: "/signup", Label: "Sign up again"}
	toSettings  = message{Href: settingsPath, Label: "Go to your settings"}
)

// showExpired responds identically to mailed links that are unknown, used, expired or replaced by a newer one.
func (w *Web) showExpired(c *call, m message) error {
	m.Title = "This link no longer works"
	m.Text = []string{"A mailed link works once, for a short time, and only until a newer one is sent. " +
		"Nothing was changed."}
	return w.showMessage(c, http.StatusNotFound, m)
}

// resetPage is the data of the template "reset". Links, Passkeys and Providers report which other kinds of access can
// be revoked.
type resetPage struct {
	formErrors
	Min                        int
	Links, Passkeys, Providers checkbox
}

type checkbox struct{ On, Ticked bool }

func (w *Web) resetForm(c *call) error {
	return w.mailForm(c, flowReset, askAgain, func() error { return w.showReset(c, formErrors{}, account.Access{}) })
}

func (w *Web) showReset(c *call, f formErrors, revoke account.Access) error {
	return w.render(c, f.status(), "reset", resetPage{
		formErrors: f, Min: minPassword,
		Links: checkbox{true, revoke.Links}, Passkeys: checkbox{w.Passkeys != nil, revoke.Passkeys},
		Providers: checkbox{w.Providers != nil && len(w.Providers.Providers()) > 0, revoke.Identities},
	})
}

func (w *Web) reset(c *call) error {
	var token string
	w.loadFlow(c, flowReset, &token)
	ticked := func(name string) bool { return c.PostFormValue(name) != "" }
	revoke := account.Access{Links: ticked("links"), Passkeys: ticked("passkeys"), Identities: ticked("providers")}
	var f formErrors
	password := c.PostFormValue("password")
	if f.checkPassword("password", password); f.Failed() {
		return w.showReset(c, f, revoke)
	}
	owner, err := w.Accounts.ResetPassword(c.Context(), token, password, revoke)
	switch {
	case errors.Is(err, account.ErrBadToken):
		w.endFlow(c, flowReset)
		return w.showExpired(c, askAgain)
	case errors.Is(err, account.ErrSuspended):
		f.Problem = suspended
		return w.showReset(c, f, revoke)
	case err != nil:
		return err
	}
	w.endFlow(c, flowReset)
	return w.enter(c, owner, settingsPath+"?done=reset", account.ByMail)
}

// verifyPage is the data of the template "verify". If the visitor is not signed in, Email is "" and the page links to
// the sign-in, which returns to it.
type verifyPage struct{ Email, SignIn string }

func (w *Web) verifyForm(c *call) error {
	return w.mailForm(c, flowVerify, toSettings, func() error {
		return w.render(c, http.StatusOK, "verify",
			verifyPage{Email: c.account.Email, SignIn: withNext("/signin", verifyPath)})
	})
}

// verify confirms the address only if the browser is signed in to the account that requested the mail. Access to the
// mail proves only that the address is yours, not that you created the account.
func (w *Web) verify(c *call) error {
	if !c.isSignedIn() {
		return c.redirect(verifyPath)
	}
	var token string
	w.loadFlow(c, flowVerify, &token)
	w.endFlow(c, flowVerify)
	err := w.Accounts.Verify(c.Context(), c.account.ID, token)
	m := toSettings
	switch {
	case errors.Is(err, account.ErrBadToken):
		return w.showExpired(c, m)
	case errors.Is(err, account.ErrOthersToken):
		m.Title, m.Quiet = "This link is for another account", true
		m.Text = []string{
			"If that account is yours too, sign out, sign in to it, and open the link again.",
			"You are signed in as " + c.account.Email + ", and another account asked for this mail. Nothing was changed.",
		}
	case errors.Is(err, account.ErrEmailTaken):
		m.Title = "This address now has an account"
		m.Text = []string{"Somebody created an account with it in the meantime. Your own account keeps its old address."}
	case errors.Is(err, account.ErrSuspended):
		m = suspendedMessage()
	default:
		return w.settingsDone(c, err, "verified")
	}
	return w.showMessage(c, http.StatusUnprocessableEntity, m)
}

func suspendedMessage() message {
	return message{Title: "This account is suspended", Text: []string{suspended}, Href: "/privacy", Label: "Privacy page"}
}
