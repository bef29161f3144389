package web

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

const (
	staleSignIn = "Sign out, sign in again and try once more. " +
		"You signed in here a while ago, and this makes sure that it is you."
	askPassword      = "Enter your current password. This makes sure that it is you."
	wrongPassword    = "This is not your current password."
	tooManyPasswords = "Wait a few minutes, then try again. Too many wrong passwords were entered."
	tooManyMails     = "Wait a while before you ask for another mail. We sent several in the last hour."
	mailQueueFull    = "Try again in a few minutes. Too much mail is waiting to be sent."
)

// mailProblem explains why a mail was not sent. It returns "" for other errors.
func mailProblem(err error) string {
	switch {
	case errors.Is(err, account.ErrTooManyMails):
		return tooManyMails
	case errors.Is(err, mail.ErrFull):
		return mailQueueFull
	}
	return ""
}

// passwordProblem explains why the current password was rejected. It returns "" for other errors.
func passwordProblem(err error) string {
	var spent *account.TooManyGuessesError
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		return wrongPassword
	case errors.As(err, &spent):
		return tooManyPasswords
	}
	return ""
}

// changeEmail sends a link to the new address. It requires mail, because only the link proves that the user owns the
// address.
func (w *Web) changeEmail(c *call) error {
	if !w.Accounts.CanMail() {
		return errNotFound
	}
	p := settingsPage{NewEmail: strings.TrimSpace(c.PostFormValue("email"))}
	unproven, err := w.isUnproven(c)
	if err != nil {
		return err
	}
	if unproven {
		p.Problem, p.Again = staleSignIn, settingsPath
		if isPlausibleEmail(p.NewEmail) {
			p.Again += "?new-email=" + url.QueryEscape(p.NewEmail)
		}
		return w.showSettings(c, p)
	}
	err = account.ErrBadEmail
	if isPlausibleEmail(p.NewEmail) {
		err = w.Accounts.ChangeEmail(c.Context(), c.account.ID, p.NewEmail, passwordValue(c), audit.Person())
	}
	switch {
	case errors.Is(err, account.ErrBadEmail):
		p.add("new-email", badEmail)
	case errors.Is(err, account.ErrEmailTaken):
		p.add("new-email", "This is your account's address already.")
	case passwordProblem(err) != "":
		p.add("email-password", passwordProblem(err))
	case mailProblem(err) != "":
		p.Problem = mailProblem(err)
	default:
		return w.settingsDone(c, err, "change-sent")
	}
	return w.showSettings(c, p)
}

func (w *Web) resendMail(c *call) error {
	err := w.Accounts.SendVerification(c.Context(), c.account.ID)
	if problem := mailProblem(err); problem != "" {
		return w.showProblem(c, problem)
	}
	return w.settingsDone(c, err, "mail-sent")
}

// changePassword changes the password, or sets the first one.
func (w *Web) changePassword(c *call) error {
	var p settingsPage
	password := c.PostFormValue("new")
	if p.checkPassword("new-password", password); p.Failed() {
		return w.showSettings(c, p)
	}
	owner, err := w.Accounts.ByID(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	unproven, err := w.isUnproven(c)
	if err != nil {
		return err
	}
	if unproven {
		return w.showStale(c)
	}
	if owner.HasPassword() {
		err = w.Accounts.ChangePassword(c.Context(), c.account.ID, passwordValue(c), password, browserSecret(c),
			audit.Person())
	} else {
		err = w.Accounts.SetPassword(c.Context(), c.account.ID, password, browserSecret(c), audit.Person())
	}
	switch {
	case passwordProblem(err) != "":
		p.add("current-password", passwordProblem(err))
	case errors.Is(err, account.ErrHasPassword):
		p.Problem = "Your account got a password in the meantime. If you set it yourself, change it here."
	default:
		return w.settingsDone(c, err, "password")
	}
	return w.showSettings(c, p)
}

// isUnproven reports whether the account has no password to enter and the sign-in is not recent. Someone else may
// then have found the browser unattended.
func (w *Web) isUnproven(c *call) (bool, error) {
	owner, err := w.Accounts.ByID(c.Context(), c.account.ID)
	if err != nil || owner.HasPassword() {
		return false, err
	}
	return w.isStale(c)
}

// freshSignIn is the maximum age of a sign-in that allows adding a sign-in method without the password. If the
// account has no password, it also applies to setting one, changing the address and deleting the account.
const freshSignIn = 10 * time.Minute

// isStale reports whether this browser has no sign-in newer than freshSignIn.
func (w *Web) isStale(c *call) (bool, error) {
	if w.AskProof {
		return true, nil
	}
	open, err := w.Accounts.Sessions(c.Context(), c.account.ID, browserSecret(c))
	for _, s := range open {
		if s.Current && w.Now().Sub(s.CreatedAt) < freshSignIn {
			return false, err
		}
	}
	return true, err
}

// prove checks that the user is the account's owner before a sign-in method is added. It accepts a recent sign-in, or
// the password in the same form. It returns the message for the user, or "". canEnter reports whether the form can
// ask for the password; if not, the user must sign in again.
func (w *Web) prove(c *call) (problem string, canEnter bool, err error) {
	stale, err := w.isStale(c)
	if err != nil || !stale {
		return "", false, err
	}
	owner, err := w.Accounts.ByID(c.Context(), c.account.ID)
	switch {
	case err != nil:
		return "", false, err
	case !owner.HasPassword():
		return staleSignIn, false, nil
	case passwordValue(c) == "":
		return askPassword, true, nil
	}
	err = w.Accounts.CheckPassword(c.Context(), c.account.ID, passwordValue(c))
	if problem := passwordProblem(err); problem != "" {
		return problem, true, nil
	}
	return "", true, err
}

// showStale shows the settings with a button to sign in again.
func (w *Web) showStale(c *call) error {
	return w.showSettings(c, settingsPage{formErrors: formErrors{Problem: staleSignIn}, Again: settingsPath})
}

func (w *Web) unlinkProvider(c *call) error {
	linked, err := w.Accounts.Identities(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	err = errNotFound
	for _, l := range linked {
		if l.Provider != c.PathValue("provider") {
			continue
		}
		err = w.Accounts.Unlink(c.Context(), c.account.ID, l.Provider, l.Subject, browserSecret(c),
			audit.Person())
		if errors.Is(err, account.ErrLastWayIn) {
			return w.showProblem(c, lastMethod)
		}
		if err != nil && !errors.Is(err, account.ErrNotFound) {
			return err
		}
		err = nil // another request may have unlinked it
	}
	return w.settingsDone(c, err, "unlinked")
}

func (w *Web) endBrowser(c *call) error {
	err := w.Accounts.EndSession(c.Context(), c.account.ID, c.PathValue("id"), audit.Person())
	return w.settingsDone(c, err, "browser")
}

func (w *Web) endOtherBrowsers(c *call) error {
	_, err := w.Accounts.EndOtherSessions(c.Context(), c.account.ID, browserSecret(c), audit.Person())
	return w.settingsDone(c, err, "browsers")
}
