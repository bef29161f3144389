package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/oidc"
)

// oidcTrip is a browser on its way to a provider and back.
type oidcTrip struct {
	Attempt oidc.Attempt `json:"a"`
	Next    string       `json:"n"`
	Link    string       `json:"l,omitempty"` // the account that gets the identity linked; empty: signing in
}

// arrival is somebody whom a provider named and who has no account yet.
type arrival struct {
	Identity account.Identity `json:"i"`
	Next     string           `json:"n"`
}

func (w *Web) leaveForProvider(rw http.ResponseWriter, r *http.Request) error {
	return w.leave(rw, r, oidcTrip{Next: nextOf(r)}, withNext("/signin", nextOf(r)))
}

// leaveToLink goes only soon after a sign-in, and nothing is linked without having left: who finds a browser open must
// not get to keep the account.
func (w *Web) leaveToLink(rw http.ResponseWriter, r *http.Request, a Account) error {
	stale, err := w.stale(r, a)
	if err != nil {
		return err
	}
	if stale {
		return w.showSettings(rw, r, a, settingsPage{formErrors: formErrors{Problem: staleSignIn}})
	}
	return w.leave(rw, r, oidcTrip{Next: settingsPath, Link: a.ID}, settingsPath)
}

// leave sends the browser to a provider by way of a page of ours. A redirect would be part of the form's submission,
// which the policy keeps on this site (form-action), and so would every redirect that the provider makes; a page that
// moves on by itself is not, and the policy need not know where providers live.
func (w *Web) leave(rw http.ResponseWriter, r *http.Request, trip oidcTrip, back string) error {
	id := r.PathValue("provider")
	attempt, err := w.Providers.Begin(r.Context(), id, w.origin(r)+"/signin/oidc/"+url.PathEscape(id)+"/callback")
	if err != nil {
		return w.providerTrouble(rw, r, err, id, back)
	}
	trip.Attempt = attempt
	trip.Attempt.URL = ""
	if err := w.remember(rw, r, momentOIDC, trip); err != nil {
		return err
	}
	rw.Header().Set("Refresh", "0; url="+attempt.URL)
	return w.render(rw, r, http.StatusOK, "signin_leave", struct{ Name, URL, Back string }{w.providerName(id), attempt.URL, back})
}

// origin is the address that providers send people back to.
func (w *Web) origin(r *http.Request) string {
	if w.SiteURL != "" {
		return w.SiteURL
	}
	return "http://" + r.Host
}

// returnFromProvider signs in or links by GET: it acts only on an answer to a question that this very browser session
// asked (the state in its signed cookie).
func (w *Web) returnFromProvider(rw http.ResponseWriter, r *http.Request) error {
	var trip oidcTrip
	known := w.recall(r, momentOIDC, &trip)
	w.forget(rw, momentOIDC)
	if !known || trip.Attempt.Provider != r.PathValue("provider") {
		return w.say(rw, r, http.StatusBadRequest, said{
			Title: "That took too long",
			Text:  []string{"The sign-in was not started in this browser, or more than ten minutes ago. Nothing was changed."},
			Href:  "/signin", Label: "Start again",
		})
	}
	provider, back := trip.Attempt.Provider, withNext("/signin", trip.Next)
	if trip.Link != "" {
		back = settingsPath
	}
	found, err := w.Providers.Finish(r.Context(), trip.Attempt, r.URL.Query())
	if err != nil {
		return w.providerTrouble(rw, r, err, provider, back)
	}
	id := account.Identity(found)
	if trip.Link != "" {
		return w.linkIdentity(rw, r, trip.Link, id)
	}
	person, err := w.Settings.SignInWith(r.Context(), id)
	if errors.Is(err, account.ErrNeedsConsent) {
		if err := w.remember(rw, r, momentWelcome, arrival{Identity: id, Next: trip.Next}); err != nil {
			return err
		}
		http.Redirect(rw, r, "/signin/welcome", http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return w.providerTrouble(rw, r, err, provider, back)
	}
	return w.enter(rw, r, person, trip.Next, account.ByOIDC+provider)
}

func (w *Web) linkIdentity(rw http.ResponseWriter, r *http.Request, accountID string, id account.Identity) error {
	a, signedIn := currentAccount(r)
	if !signedIn || a.ID != accountID {
		return errForbidden
	}
	if err := w.Settings.LinkIdentity(r.Context(), a.ID, id, audit.Person()); err != nil {
		return w.providerTrouble(rw, r, err, id.Provider, settingsPath)
	}
	return w.done(rw, r, "linked")
}

// welcome asks whoever a provider named for consent before anything of them is stored.
func (w *Web) welcome(rw http.ResponseWriter, r *http.Request) error {
	return w.showWelcome(rw, r, formErrors{})
}

type welcomePage struct {
	formErrors
	Name  string
	Email string
}

func (w *Web) showWelcome(rw http.ResponseWriter, r *http.Request, f formErrors) error {
	var who arrival
	if !w.recall(r, momentWelcome, &who) {
		http.Redirect(rw, r, "/signin", http.StatusSeeOther)
		return nil
	}
	return w.render(rw, r, statusOf(f), "signin_welcome", welcomePage{f, w.providerName(who.Identity.Provider), who.Identity.Email})
}

func (w *Web) acceptWelcome(rw http.ResponseWriter, r *http.Request) error {
	var who arrival
	if !w.recall(r, momentWelcome, &who) {
		http.Redirect(rw, r, "/signin", http.StatusSeeOther)
		return nil
	}
	if r.PostFormValue("accept") == "" {
		var f formErrors
		f.wrong("accept", needsConsent)
		return w.showWelcome(rw, r, f)
	}
	person, err := w.Settings.SignUpWith(r.Context(), who.Identity)
	if errors.Is(err, account.ErrIdentityTaken) { // another tab was quicker
		person, err = w.Settings.SignInWith(r.Context(), who.Identity)
	}
	w.forget(rw, momentWelcome)
	if err != nil {
		return w.providerTrouble(rw, r, err, who.Identity.Provider, withNext("/signin", who.Next))
	}
	return w.enter(rw, r, person, who.Next, account.ByOIDC+who.Identity.Provider)
}

// providerTrouble says calmly what went wrong with a provider, and names the way on.
func (w *Web) providerTrouble(rw http.ResponseWriter, r *http.Request, err error, provider, back string) error {
	name := w.providerName(provider)
	s := said{Href: back, Label: "Go back and try again"}
	status := http.StatusUnprocessableEntity
	switch {
	case errors.Is(err, oidc.ErrUnknownProvider):
		return errNotFound
	case errors.Is(err, oidc.ErrDenied):
		s.Title, s.Text = "Not signed in with "+name, []string{name + " says that this was cancelled or not allowed. Nothing was changed."}
	case errors.Is(err, oidc.ErrUnreachable):
		w.Log.WarnContext(r.Context(), "signing in with a provider", "provider", provider, "error", err)
		s.Title, s.Text = name+" does not answer", []string{"Try again in a moment, or use another way to sign in. Nothing was changed."}
		status = http.StatusBadGateway
	case errors.Is(err, oidc.ErrInvalidAnswer):
		w.Log.WarnContext(r.Context(), "signing in with a provider", "provider", provider, "error", err)
		s.Title, s.Text = "The answer does not fit", []string{"What came back from " + name + " does not answer what this browser asked, so it was refused. Nothing was changed."}
	case errors.Is(err, account.ErrUnverifiedEmail):
		s.Title, s.Text = name+" does not vouch for your address", []string{"Confirm your e-mail address at " + name + " first, or create an account with a password and link " + name + " in its settings."}
	case errors.Is(err, account.ErrUnverifiedAccount), errors.Is(err, account.ErrEmailTaken):
		s.Title, s.Text = "There is an account with this address already", []string{
			"Its address was never confirmed, so we cannot tell whether it is yours.",
			"Sign in with its password and link " + name + " in the settings. If you do not know the password, choose a new one first.",
		}
		s.Href, s.Label = "/forgot", "Choose a new password"
	case errors.Is(err, account.ErrIdentityTaken):
		s.Title, s.Text = "This identity opens another account", []string{"It is linked to another account here. Unlink it there first, or use another one at " + name + "."}
		s.Label = "Go back"
	case errors.Is(err, account.ErrSuspended):
		s.Title, s.Text = "This account is suspended", []string{suspended}
		s.Href, s.Label = "/privacy", "Privacy page"
	default:
		return err
	}
	return w.say(rw, r, status, s)
}

func (w *Web) providerName(id string) string {
	for _, p := range w.Providers.Providers() {
		if p.ID == id {
			return p.Name
		}
	}
	return "the provider"
}
