package web

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/account"
)

const (
	verifyPath = "/verify"
	// maxMailToken bounds what a mailed link may carry, in bytes.
	maxMailToken = 200
)

type forgotPage struct {
	formErrors
	Mail  bool
	Email string
}

func (w *Web) forgotForm(rw http.ResponseWriter, r *http.Request) error {
	return w.showForgot(rw, r, http.StatusOK, forgotPage{})
}

func (w *Web) showForgot(rw http.ResponseWriter, r *http.Request, status int, p forgotPage) error {
	p.Mail = w.Settings.CanMail()
	return w.render(rw, r, status, "forgot", p)
}

// sendForgotten answers the same for known and unknown addresses.
func (w *Web) sendForgotten(rw http.ResponseWriter, r *http.Request) error {
	p := forgotPage{Email: strings.TrimSpace(r.PostFormValue("email"))}
	if !w.Settings.CanMail() {
		return w.showForgot(rw, r, http.StatusOK, p)
	}
	if w.doors.mails.Take(w.ClientIP(r)) > 0 {
		p.Problem = tooMany
		rw.Header().Set("Retry-After", "60")
		return w.showForgot(rw, r, http.StatusTooManyRequests, p)
	}
	err := account.ErrBadEmail
	if plausibleEmail(p.Email) {
		err = w.Settings.ForgotPassword(r.Context(), p.Email)
	}
	if errors.Is(err, account.ErrBadEmail) {
		p.wrong("email", badEmail)
		return w.showForgot(rw, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	http.Redirect(rw, r, "/forgot/sent", http.StatusSeeOther)
	return nil
}

func (w *Web) forgottenSent(rw http.ResponseWriter, r *http.Request) error {
	return w.say(rw, r, http.StatusOK, said{
		Title: "Look into your mail",
		Text: []string{"If there is an account with that address, a link to choose a new password is on its way. It works once, and not for long.",
			"Nothing came? Look into the spam folder, check the address, or try again in a few minutes."},
		Href: "/signin", Label: "Back to sign in", Quiet: true,
	})
}

// takeToken moves a mailed link's token from the address into a moment and sends the browser to the address without it;
// moved tells whether it did. What neither carries a token nor remembers one is an old link.
func (w *Web) takeToken(rw http.ResponseWriter, r *http.Request, purpose string) (token string, moved bool, err error) {
	given := r.URL.Query().Get("token")
	if given != "" && len(given) <= maxMailToken {
		if err := w.remember(rw, r, purpose, given); err != nil {
			return "", false, err
		}
		http.Redirect(rw, r, r.URL.Path, http.StatusSeeOther)
		return "", true, nil
	}
	w.recall(r, purpose, &token)
	return token, false, nil
}

// resetPage is the form of a mailed link. Links, Passkeys and Providers are what else may be taken away.
type resetPage struct {
	formErrors
	Min                        int
	Links, Passkeys, Providers offer
}

// offer is a box to tick.
type offer struct{ On, Ticked bool }

func (w *Web) resetForm(rw http.ResponseWriter, r *http.Request) error {
	token, moved, err := w.takeToken(rw, r, momentReset)
	if err != nil || moved {
		return err
	}
	if token == "" {
		return w.oldLink(rw, r, "/forgot", "Ask for a new link")
	}
	return w.showReset(rw, r, formErrors{}, account.Access{})
}

func (w *Web) showReset(rw http.ResponseWriter, r *http.Request, f formErrors, revoke account.Access) error {
	return w.render(rw, r, statusOf(f), "reset", resetPage{
		formErrors: f, Min: minPassword,
		Links: offer{true, revoke.Links}, Passkeys: offer{w.Passkeys != nil, revoke.Passkeys},
		Providers: offer{w.Providers != nil && len(w.Providers.Providers()) > 0, revoke.Identities},
	})
}

// readRevoke takes what was ticked to go along with the old password.
func readRevoke(r *http.Request) account.Access {
	ticked := func(name string) bool { return r.PostFormValue(name) != "" }
	return account.Access{Links: ticked("links"), Passkeys: ticked("passkeys"), Identities: ticked("providers")}
}

func (w *Web) reset(rw http.ResponseWriter, r *http.Request) error {
	var token string
	w.recall(r, momentReset, &token)
	password, revoke := r.PostFormValue("password"), readRevoke(r)
	var f formErrors
	if trouble := passwordTrouble(password); trouble != "" {
		f.wrong("password", trouble)
		return w.showReset(rw, r, f, revoke)
	}
	person, err := w.Settings.ResetPassword(r.Context(), token, password, revoke)
	switch {
	case errors.Is(err, account.ErrBadToken):
		w.forget(rw, momentReset)
		return w.oldLink(rw, r, "/forgot", "Ask for a new link")
	case errors.Is(err, account.ErrSuspended):
		f.Problem = suspended
		return w.showReset(rw, r, f, revoke)
	case err != nil:
		return err
	}
	w.forget(rw, momentReset)
	return w.enter(rw, r, person, settingsPath+"?done=reset", account.ByMail)
}

// passwordTrouble says what is wrong with a new password, or nothing.
func passwordTrouble(password string) string {
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		return "Use at least 10 characters. A few words in a row make a good password."
	case n > maxPassword:
		return "Use at most 200 characters."
	}
	return ""
}

// verifyPage asks who is signed in to confirm; for nobody, Email is empty and the page leads to the sign-in and back.
type verifyPage struct{ Email, SignIn string }

func (w *Web) verifyForm(rw http.ResponseWriter, r *http.Request) error {
	token, moved, err := w.takeToken(rw, r, momentVerify)
	if err != nil || moved {
		return err
	}
	if token == "" {
		return w.oldLink(rw, r, settingsPath, "Go to your settings")
	}
	a, _ := currentAccount(r)
	return w.render(rw, r, http.StatusOK, "verify", verifyPage{Email: a.Email, SignIn: withNext("/signin", verifyPath)})
}

// verify confirms only for who is signed in to the account that asked for the mail. Whoever reads the mail proves that
// the address is theirs, and no more: somebody else may have made the account with it.
func (w *Web) verify(rw http.ResponseWriter, r *http.Request) error {
	a, signedIn := currentAccount(r)
	if !signedIn {
		http.Redirect(rw, r, verifyPath, http.StatusSeeOther)
		return nil
	}
	var token string
	w.recall(r, momentVerify, &token)
	w.forget(rw, momentVerify)
	err := w.Settings.Verify(r.Context(), a.ID, token)
	switch {
	case errors.Is(err, account.ErrBadToken):
		return w.oldLink(rw, r, settingsPath, "Go to your settings")
	case errors.Is(err, account.ErrOthersToken):
		return w.say(rw, r, http.StatusUnprocessableEntity, said{
			Title: "This link is for another account",
			Text: []string{"You are signed in as " + a.Email + ", and another account asked for this mail. Nothing was changed.",
				"If that account is yours too, sign out, sign in to it, and open the link again."},
			Href: settingsPath, Label: "Go to your settings", Quiet: true,
		})
	case errors.Is(err, account.ErrEmailTaken):
		return w.say(rw, r, http.StatusUnprocessableEntity, said{
			Title: "This address has an account by now", Text: []string{"Somebody made an account with it in the meantime. Your own account keeps its old address."},
			Href: settingsPath, Label: "Go to your settings",
		})
	case errors.Is(err, account.ErrSuspended):
		return w.say(rw, r, http.StatusUnprocessableEntity, said{Title: "This account is suspended", Text: []string{suspended}, Href: "/privacy", Label: "Privacy page"})
	case err != nil:
		return err
	}
	return w.done(rw, r, "verified")
}

// oldLink is one answer for mailed links that are unknown, used, overdue or replaced by a newer one.
func (w *Web) oldLink(rw http.ResponseWriter, r *http.Request, href, label string) error {
	return w.say(rw, r, http.StatusNotFound, said{
		Title: "This link does not work any more",
		Text:  []string{"A mailed link works once, for a short time, and only until a newer one is sent. Nothing was changed."},
		Href:  href, Label: label,
	})
}
