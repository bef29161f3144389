package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/oidc"
)

// providerAttempt contains the state that a provider's callback needs.
type providerAttempt struct {
	Attempt oidc.Attempt `json:"a"`
	Next    string       `json:"n"`
	Link    string       `json:"l,omitempty"` // the account to link the identity to; "" to sign in
}

// newIdentity is an identity that has no account yet.
type newIdentity struct {
	Identity account.Identity `json:"i"`
	Next     string           `json:"n"`
}

func (w *Web) signInWithProvider(c *call) error {
	return w.leaveForProvider(c, providerAttempt{Next: nextOf(c)}, withNext("/signin", nextOf(c)))
}

// linkProvider requires a recent sign-in or the password, so that someone who finds a browser unattended cannot gain
// permanent access.
func (w *Web) linkProvider(c *call) error {
	problem, canEnter, err := w.prove(c)
	switch {
	case err != nil:
		return err
	case canEnter && problem != "":
		p := settingsPage{Ask: c.PathValue("provider")}
		p.add(p.AskID(), problem)
		return w.showSettings(c, p)
	case problem != "":
		return w.showStale(c)
	}
	return w.leaveForProvider(c, providerAttempt{Next: settingsPath, Link: c.account.ID}, settingsPath)
}

// leaveForProvider sends the browser to a provider through an intermediate page that redirects by itself. Browsers
// count a direct redirect, and all later ones, as part of the form's submission, which the policy restricts to this
// site (form-action). Without the page, the policy would have to list the providers' hosts.
func (w *Web) leaveForProvider(c *call, state providerAttempt, back string) error {
	id := c.PathValue("provider")
	attempt, err := w.Providers.Begin(c.Context(), id, w.origin(c)+"/signin/oidc/"+url.PathEscape(id)+"/callback")
	if err != nil {
		return w.showProviderError(c, err, id, back)
	}
	state.Attempt = attempt
	state.Attempt.URL = ""
	if err := w.saveAttempt(c, state); err != nil {
		return err
	}
	c.rw.Header().Set("Refresh", "0; url="+attempt.URL)
	data := struct{ Name, URL, Back string }{w.providerName(id), attempt.URL, back}
	return w.render(c, http.StatusOK, "signin_redirect", data)
}

// saveAttempt stores the attempt. It drops a return path that is too long for a cookie.
func (w *Web) saveAttempt(c *call, state providerAttempt) error {
	withoutNext := state
	withoutNext.Next = "/"
	return w.saveFlow(c, flowOIDC, state, withoutNext)
}

// origin returns the origin of the callback URL.
func (w *Web) origin(c *call) string {
	if w.SiteURL != "" {
		return w.SiteURL
	}
	return "http://" + c.Host
}

// providerCallback signs in or links on a GET. It acts only on the response to an attempt that this browser session
// started. The state in the session's signed cookie proves this.
func (w *Web) providerCallback(c *call) error {
	var state providerAttempt
	started := w.loadFlow(c, flowOIDC, &state)
	w.endFlow(c, flowOIDC)
	if !started || state.Attempt.Provider != c.PathValue("provider") {
		return w.showMessage(c, http.StatusBadRequest, message{
			Title: "That took too long",
			Text: []string{"The sign-in was not started in this browser, or more than ten minutes ago. " +
				"Nothing was changed."},
			Href: "/signin", Label: "Start again",
		})
	}
	provider, back := state.Attempt.Provider, withNext("/signin", state.Next)
	if state.Link != "" {
		back = settingsPath
	}
	identity, err := w.Providers.Finish(c.Context(), state.Attempt, c.URL.Query())
	if err != nil {
		return w.showProviderError(c, err, provider, back)
	}
	id := account.Identity(identity)
	if state.Link != "" {
		return w.linkIdentity(c, state.Link, id)
	}
	owner, err := w.Accounts.SignInWith(c.Context(), id)
	if errors.Is(err, account.ErrNeedsConsent) {
		if err := w.saveFlow(c, flowWelcome, newIdentity{id, state.Next}, newIdentity{id, "/"}); err != nil {
			return err
		}
		return c.redirect("/signin/welcome")
	}
	if err != nil {
		return w.showProviderError(c, err, provider, back)
	}
	return w.enter(c, owner, state.Next, account.ByOIDC+provider)
}

func (w *Web) linkIdentity(c *call, accountID string, id account.Identity) error {
	if c.account.ID != accountID {
		return errForbidden
	}
	if err := w.Accounts.LinkIdentity(c.Context(), accountID, id, audit.Person()); err != nil {
		return w.showProviderError(c, err, id.Provider, settingsPath)
	}
	return w.settingsDone(c, nil, "linked")
}

// welcome asks for consent before it stores anything about a new identity.
func (w *Web) welcome(c *call) error { return w.showWelcome(c, formErrors{}) }

type welcomePage struct {
	formErrors
	Name  string
	Email string
}

func (w *Web) showWelcome(c *call, f formErrors) error {
	var who newIdentity
	if !w.loadFlow(c, flowWelcome, &who) {
		return c.redirect("/signin")
	}
	return w.render(c, f.status(), "signin_welcome",
		welcomePage{f, w.providerName(who.Identity.Provider), who.Identity.Email})
}

func (w *Web) acceptWelcome(c *call) error {
	var who newIdentity
	if !w.loadFlow(c, flowWelcome, &who) {
		return c.redirect("/signin")
	}
	if c.PostFormValue("accept") == "" {
		var f formErrors
		f.add("accept", needsConsent)
		return w.showWelcome(c, f)
	}
	owner, err := w.Accounts.SignUpWith(c.Context(), who.Identity)
	if errors.Is(err, account.ErrIdentityTaken) { // another tab linked the identity first
		owner, err = w.Accounts.SignInWith(c.Context(), who.Identity)
	}
	w.endFlow(c, flowWelcome)
	if err != nil {
		return w.showProviderError(c, err, who.Identity.Provider, withNext("/signin", who.Next))
	}
	return w.enter(c, owner, who.Next, account.ByOIDC+who.Identity.Provider)
}

// showProviderError explains the failure at a provider and how to continue.
func (w *Web) showProviderError(c *call, err error, provider, back string) error {
	name := w.providerName(provider)
	m := message{Href: back, Label: "Go back and try again"}
	status := http.StatusUnprocessableEntity
	switch {
	case errors.Is(err, oidc.ErrDenied):
		m.Title = "Not signed in with " + name
		m.Text = []string{name + " says that this was cancelled or not allowed. Nothing was changed."}
	case errors.Is(err, oidc.ErrUnreachable):
		status = http.StatusBadGateway
		m.Title = name + " does not answer as it should"
		m.Text = []string{"Try again in a moment, or use another way to sign in. Nothing was changed.",
			"If it does not help, the server's log tells its operator why."}
	case errors.Is(err, oidc.ErrInvalidAnswer):
		m.Title = "The answer does not fit"
		m.Text = []string{"What " + name + " answered is not what this browser asked for, so it was refused. " +
			"Nothing was changed."}
	case errors.Is(err, account.ErrUnverifiedEmail):
		m.Title = name + " does not vouch for your address"
		m.Text = []string{name + " did not say that the address is yours. If you can confirm it there, do that and try again.",
			"Otherwise create an account with a password and link " + name + " in its settings. The server's log tells its " +
				"operator which setting accepts addresses from " + name + "."}
	case errors.Is(err, account.ErrEmailTaken):
		m.Title, m.Label = "This address already has an account", "Sign in another way"
		m.Text = []string{
			"Sign in as before and link " + name + " in the settings. From then on you can sign in with it.",
			"If you cannot sign in any more, choose a new password first.",
		}
	case errors.Is(err, account.ErrUnverifiedAccount):
		m.Title = "This address already has an account"
		m.Text = []string{
			"Sign in with its password and link " + name + " in the settings. " +
				"If you do not know the password, choose a new one first.",
			"The account's address was never confirmed, so we cannot tell whether it is yours.",
		}
		m.Href, m.Label = "/forgot", "Choose a new password"
	case errors.Is(err, account.ErrIdentityTaken):
		m.Title, m.Label = "This identity is linked to another account", "Go back"
		m.Text = []string{"Unlink it there first, or use another account at " + name + "."}
	case errors.Is(err, account.ErrSuspended):
		m = suspendedMessage()
	default:
		return err
	}
	if status == http.StatusBadGateway || errors.Is(err, oidc.ErrInvalidAnswer) || oidc.HasErrorCode(err) {
		w.Log.WarnContext(c.Context(), "failed to sign in with provider", "provider", provider, "err", err)
	}
	return w.showMessage(c, status, m)
}

func (w *Web) providerName(id string) string {
	for _, p := range w.Providers.Providers() {
		if p.ID == id {
			return p.Name
		}
	}
	return "the provider"
}
