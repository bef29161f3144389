package web

import (
	"errors"
	"net/http"

	"github.com/service-dev/service/backend/internal/account"
)

// Where mail is sent, a sign-up is finished by a mailed link: the page answers alike for an address that has an account,
// and the mail tells its owner.

func (w *Web) requestSignUp(rw http.ResponseWriter, r *http.Request, f accountForm, password string) error {
	err := w.Settings.RequestSignUp(r.Context(), f.Email, password, f.Next)
	if errors.Is(err, account.ErrBadEmail) {
		f.Errors["email"] = badEmail
		return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
	}
	if err != nil {
		return err
	}
	http.Redirect(rw, r, withNext("/signup/sent", f.Next), http.StatusSeeOther)
	return nil
}

func (w *Web) signUpSent(rw http.ResponseWriter, r *http.Request) error {
	s := said{
		Title: "Look into your mail",
		Text: []string{"A link to finish signing up is on its way. It works for 24 hours; keep the password that you chose at hand. If the address has an account already, the mail says so.",
			"Nothing came? Look into the spam folder, check the address, or try again in a few minutes."},
		Href: withNext("/signin", nextOf(r)), Label: "Back to sign in", Quiet: true,
	}
	if activationCode(nextOf(r)) != "" {
		s.Text = append(s.Text, "Your agent waits for a few minutes. If that is not enough, ask it again once you are signed in.")
		s.Href, s.Label = nextOf(r), "Back to the code"
	}
	return w.say(rw, r, http.StatusOK, s)
}

func (w *Web) confirmForm(rw http.ResponseWriter, r *http.Request) error {
	token, moved, err := w.takeToken(rw, r, momentSignUp)
	if err != nil || moved {
		return err
	}
	if token == "" {
		return w.oldLink(rw, r, "/signup", "Sign up again")
	}
	return w.showConfirm(rw, r, formErrors{})
}

func (w *Web) showConfirm(rw http.ResponseWriter, r *http.Request, f formErrors) error {
	return w.render(rw, r, statusOf(f), "signup_confirm", f)
}

func (w *Web) confirmSignUp(rw http.ResponseWriter, r *http.Request) error {
	var token string
	w.recall(r, momentSignUp, &token)
	person, next, err := w.Settings.FinishSignUp(r.Context(), token, clipped(r.PostFormValue("password")))
	var f formErrors
	var spent *account.TooManyGuessesError
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		f.wrong("password", "This is not the password that you chose when you signed up.")
		return w.showConfirm(rw, r, f)
	case errors.As(err, &spent):
		f.Problem = ownGuesses
		return w.showConfirm(rw, r, f)
	case errors.Is(err, account.ErrBadToken):
		w.forget(rw, momentSignUp)
		return w.oldLink(rw, r, "/signup", "Sign up again")
	case errors.Is(err, account.ErrEmailTaken):
		w.forget(rw, momentSignUp)
		return w.say(rw, r, http.StatusUnprocessableEntity, said{
			Title: "This address has an account by now", Text: []string{"It was made in the meantime. Sign in to it, or ask for a new password there."},
			Href: "/signin", Label: "Sign in",
		})
	case err != nil:
		return err
	}
	w.forget(rw, momentSignUp)
	return w.enter(rw, r, person, localPath(next), account.ByPassword)
}
