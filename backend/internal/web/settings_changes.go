package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

const (
	staleSignIn   = "You signed in here a while ago. To be sure that it is you, sign out, sign in again and try once more."
	wrongPassword = "This is not your current password."
	ownGuesses    = "Too many wrong passwords. Wait a few minutes, then try again."
	mailsSpent    = "We sent several mails in the last hour. Wait a while before asking for another."
	mailFull      = "Too much mail is waiting to be sent. Try again in a few minutes."
)

// mailTrouble says why a mail was not sent, or nothing if err is about something else.
func mailTrouble(err error) string {
	switch {
	case errors.Is(err, account.ErrTooManyMails):
		return mailsSpent
	case errors.Is(err, mail.ErrFull):
		return mailFull
	}
	return ""
}

// passwordRefused says why the current password was not taken, or nothing if err is about something else.
func passwordRefused(err error) string {
	var spent *account.TooManyGuessesError
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		return wrongPassword
	case errors.As(err, &spent):
		return ownGuesses
	}
	return ""
}

// changeEmail has a link sent to the new address; without mail nobody could prove that it is theirs.
func (w *Web) changeEmail(rw http.ResponseWriter, r *http.Request, a Account) error {
	if !w.Settings.CanMail() {
		return errNotFound
	}
	p := settingsPage{NewEmail: strings.TrimSpace(r.PostFormValue("email"))}
	unsure, err := w.unsure(r, a)
	if err != nil {
		return err
	}
	if unsure {
		p.Problem = staleSignIn
		return w.showSettings(rw, r, a, p)
	}
	err = account.ErrBadEmail
	if plausibleEmail(p.NewEmail) {
		err = w.Settings.ChangeEmail(r.Context(), a.ID, p.NewEmail, clipped(r.PostFormValue("password")), audit.Person())
	}
	switch {
	case err == nil:
		return w.done(rw, r, "change-sent")
	case errors.Is(err, account.ErrBadEmail):
		p.wrong("new-email", badEmail)
	case errors.Is(err, account.ErrEmailTaken):
		p.wrong("new-email", "This is your account's address already.")
	case passwordRefused(err) != "":
		p.wrong("email-password", passwordRefused(err))
	case mailTrouble(err) != "":
		p.Problem = mailTrouble(err)
	default:
		return err
	}
	return w.showSettings(rw, r, a, p)
}

func (w *Web) resendMail(rw http.ResponseWriter, r *http.Request, a Account) error {
	err := w.Settings.SendVerification(r.Context(), a.ID)
	if trouble := mailTrouble(err); trouble != "" {
		return w.showSettings(rw, r, a, settingsPage{formErrors: formErrors{Problem: trouble}})
	}
	if err != nil {
		return err
	}
	return w.done(rw, r, "mail-sent")
}

// changePassword changes it, or sets the first one.
func (w *Web) changePassword(rw http.ResponseWriter, r *http.Request, a Account) error {
	var p settingsPage
	password := r.PostFormValue("new")
	if trouble := passwordTrouble(password); trouble != "" {
		p.wrong("new-password", trouble)
		return w.showSettings(rw, r, a, p)
	}
	person, err := w.Settings.ByID(r.Context(), a.ID)
	if err != nil {
		return err
	}
	unsure, err := w.unsure(r, a)
	if err != nil {
		return err
	}
	if unsure {
		p.Problem = staleSignIn
		return w.showSettings(rw, r, a, p)
	}
	if person.HasPassword() {
		err = w.Settings.ChangePassword(r.Context(), a.ID, clipped(r.PostFormValue("password")), password, browserSecret(r), audit.Person())
	} else {
		err = w.Settings.SetPassword(r.Context(), a.ID, password, browserSecret(r), audit.Person())
	}
	switch {
	case passwordRefused(err) != "":
		p.wrong("current-password", passwordRefused(err))
	case errors.Is(err, account.ErrHasPassword):
		p.Problem = "Your account got a password in the meantime. Change it here if it was you."
	case err != nil:
		return err
	default:
		return w.done(rw, r, "password")
	}
	return w.showSettings(rw, r, a, p)
}

// unsure tells whether nothing shows that it is the account's own person who asks: there is no password to ask for, and
// this browser signed in a while ago. Who finds it open must not get to keep the account.
func (w *Web) unsure(r *http.Request, a Account) (bool, error) {
	person, err := w.Settings.ByID(r.Context(), a.ID)
	if err != nil || person.HasPassword() {
		return false, err
	}
	return w.stale(r, a)
}

// clipped makes what is too long to be a password no password at all.
func clipped(password string) string {
	if len(password) > 4*maxPassword {
		return ""
	}
	return password
}

func (w *Web) unlink(rw http.ResponseWriter, r *http.Request, a Account) error {
	linked, err := w.Settings.Identities(r.Context(), a.ID)
	if err != nil {
		return err
	}
	found := false
	for _, l := range linked {
		if l.Provider != r.PathValue("provider") {
			continue
		}
		found = true
		err := w.Settings.Unlink(r.Context(), a.ID, l.Provider, l.Subject, audit.Person())
		if errors.Is(err, account.ErrLastWayIn) {
			return w.showSettings(rw, r, a, settingsPage{formErrors: formErrors{Problem: lastWayIn}})
		}
		if err != nil && !errors.Is(err, account.ErrNotFound) {
			return err
		}
	}
	if !found {
		return errNotFound
	}
	return w.done(rw, r, "unlinked")
}

func (w *Web) endBrowser(rw http.ResponseWriter, r *http.Request, a Account) error {
	err := w.Settings.EndSession(r.Context(), a.ID, r.PathValue("id"), audit.Person())
	if errors.Is(err, account.ErrNotFound) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	return w.done(rw, r, "browser")
}

func (w *Web) endOtherBrowsers(rw http.ResponseWriter, r *http.Request, a Account) error {
	if _, err := w.Settings.EndOtherSessions(r.Context(), a.ID, browserSecret(r), audit.Person()); err != nil {
		return err
	}
	return w.done(rw, r, "browsers")
}

// oneLine is a name that somebody typed, without what does not print and without space around it.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "")))
}
