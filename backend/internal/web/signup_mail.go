package web

import (
	"errors"
	"net/http"

	"github.com/service-dev/service/backend/internal/account"
)

// If the backend sends mail, a mailed link completes the sign-up. The page responds identically if the address
// already has an account, and the mail informs the owner.

func (w *Web) requestSignUp(c *call, f accountForm, password string) error {
	err := w.Accounts.RequestSignUp(c.Context(), f.Email, password, f.Next)
	if errors.Is(err, account.ErrBadEmail) {
		return w.rejectForm(c, f, "email", badEmail)
	}
	if err != nil {
		return err
	}
	if err := w.saveFlow(c, flowMailed, f.Email); err != nil {
		return err
	}
	return c.redirect(withNext("/signup/sent", f.Next))
}

func (w *Web) signUpSent(c *call) error {
	m := message{
		Title: "Check your mail",
		Text: []string{"A link to finish signing up is on its way to " + w.mailedTo(c) + ". It works for 24 hours. " +
			"Keep the password that you chose: you need it then. If the address has an account already, the mail says so.",
			noMailYet},
		Href: withNext("/signin", nextOf(c)), Label: "Back to sign in", Quiet: true,
		Other: "Use another address", OtherHref: withNext("/signup", nextOf(c)),
	}
	if activationCode(nextOf(c)) != "" {
		m.Text = append(m.Text, "Your agent waits for a few minutes. "+
			"If that is not enough, ask it again once you are signed in.")
		m.Href, m.Label = nextOf(c), "Back to the code"
	}
	return w.showMessage(c, http.StatusOK, m)
}

func (w *Web) confirmForm(c *call) error {
	return w.mailForm(c, flowSignUp, signUpAgain, func() error { return w.showConfirm(c, formErrors{}) })
}

func (w *Web) showConfirm(c *call, f formErrors) error {
	return w.render(c, f.status(), "signup_confirm", f)
}

func (w *Web) confirmSignUp(c *call) error {
	var token string
	w.loadFlow(c, flowSignUp, &token)
	owner, next, err := w.Accounts.FinishSignUp(c.Context(), token, passwordValue(c))
	var f formErrors
	var spent *account.TooManyGuessesError
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		f.add("password", "This is not the password that you chose when you signed up.")
		return w.showConfirm(c, f)
	case errors.As(err, &spent):
		f.Problem = tooManyPasswords
		return w.showConfirm(c, f)
	case errors.Is(err, account.ErrBadToken):
		w.endFlow(c, flowSignUp)
		return w.showExpired(c, signUpAgain)
	case errors.Is(err, account.ErrEmailTaken):
		w.endFlow(c, flowSignUp)
		return w.showMessage(c, http.StatusUnprocessableEntity, message{
			Title: "This address now has an account",
			Text:  []string{"Sign in to it, or ask for a new password there. It was created in the meantime."},
			Href:  "/signin", Label: "Sign in",
		})
	case err != nil:
		return err
	}
	w.endFlow(c, flowSignUp)
	return w.enter(c, owner, localPath(next), account.ByPassword)
}
