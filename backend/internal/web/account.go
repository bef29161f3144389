package web

import (
	"crypto/subtle"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/account"
)

const (
	tooMany  = "Too many attempts from your network address. Wait a minute, then try again."
	badLogin = "The e-mail address or the password is wrong."
	badWord  = "This is not the word of this start of the service. Ask for it again: service-mcp login prints it."
	badEmail = "Enter an e-mail address like name@example.com."
	// guessesSpent is said of an address without an account too.
	guessesSpent = "Too many wrong passwords were tried for this e-mail address. Wait a few minutes, use a browser that you " +
		"signed in with before, or choose another way to sign in."
	suspended = "This account is suspended. The privacy page says whom to ask."
)

func (w *Web) signUpPage(rw http.ResponseWriter, r *http.Request) error {
	return w.accountPage(rw, r, signUp)
}

func (w *Web) signInPage(rw http.ResponseWriter, r *http.Request) error {
	return w.accountPage(rw, r, signIn)
}

func (w *Web) accountPage(rw http.ResponseWriter, r *http.Request, mode string) error {
	if _, signedIn := currentAccount(r); signedIn {
		http.Redirect(rw, r, nextOf(r), http.StatusSeeOther)
		return nil
	}
	return w.showForm(rw, r, http.StatusOK, accountForm{Mode: mode, Next: nextOf(r)})
}

// showForm renders the form where the person met it: on the activation page if it leads back there, so that the code
// stays in sight, else on its own page.
func (w *Web) showForm(rw http.ResponseWriter, r *http.Request, status int, f accountForm) error {
	if code := activationCode(f.Next); code != "" {
		return w.showActivation(rw, r, status, code, f)
	}
	return w.render(rw, r, status, "account", struct{ Form accountForm }{w.ways(f).links("")})
}

func (w *Web) signUp(rw http.ResponseWriter, r *http.Request) error {
	f, password := readForm(r, signUp)
	f.checkSignUp(password)
	if f.Failed() {
		return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
	}
	if w.signIns.Take(w.ClientIP(r)) > 0 {
		return w.tooMany(rw, r, f)
	}
	if !w.knowsWord(r) {
		return w.refuseWord(rw, r, f)
	}
	if w.Settings != nil && w.Settings.CanMail() {
		return w.requestSignUp(rw, r, f, password)
	}
	person, err := w.Accounts.SignUp(r.Context(), f.Email, password)
	if errors.Is(err, account.ErrEmailTaken) {
		f.Errors["email"] = "There is an account with this e-mail address already. Sign in instead, or use another address."
		return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
	}
	if errors.Is(err, account.ErrBadEmail) {
		f.Errors["email"] = badEmail
		return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
	}
	if err != nil {
		return err
	}
	return w.enter(rw, r, person, f.Next, account.ByPassword)
}

func (w *Web) signIn(rw http.ResponseWriter, r *http.Request) error {
	f, password := readForm(r, signIn)
	if w.signIns.Take(w.ClientIP(r)) > 0 {
		return w.tooMany(rw, r, f)
	}
	if !w.knowsWord(r) {
		return w.refuseWord(rw, r, f)
	}
	// What cannot be a password is not worth a hash; the answer is the same.
	err := account.ErrBadCredentials
	var person account.Account
	if n := utf8.RuneCountInString(password); n > 0 && n <= maxPassword && len(f.Email) <= maxEmail && f.Email != "" {
		person, err = w.Accounts.SignIn(r.Context(), f.Email, password, w.knownBrowser(r, f.Email))
	}
	var spent *account.TooManyGuessesError
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		f.Problem = badLogin
	case errors.As(err, &spent):
		return w.guessesSpent(rw, r, f, spent)
	case errors.Is(err, account.ErrSuspended): // only said to who knows the password
		f.Problem = suspended
	case err != nil:
		return err
	default:
		return w.enter(rw, r, person, f.Next, account.ByPassword)
	}
	return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
}

// knowsWord reports whether the form carries the sign-in word, where one is asked for: only who can read the state
// directory, or runs the tools, knows it.
func (w *Web) knowsWord(r *http.Request) bool {
	if w.SignInWord == "" {
		return true
	}
	given := strings.ToLower(strings.TrimSpace(r.PostFormValue("word")))
	return subtle.ConstantTimeCompare([]byte(given), []byte(w.SignInWord)) == 1
}

func (w *Web) refuseWord(rw http.ResponseWriter, r *http.Request, f accountForm) error {
	f.Errors["word"] = badWord
	return w.showForm(rw, r, http.StatusUnprocessableEntity, f)
}

func (w *Web) tooMany(rw http.ResponseWriter, r *http.Request, f accountForm) error {
	f.Problem = tooMany
	rw.Header().Set("Retry-After", "60")
	return w.showForm(rw, r, http.StatusTooManyRequests, f)
}

// guessesSpent says what still leads into the account while its passwords are not checked.
func (w *Web) guessesSpent(rw http.ResponseWriter, r *http.Request, f accountForm, spent *account.TooManyGuessesError) error {
	f.Problem = guessesSpent
	rw.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(spent.Wait.Seconds()))))
	return w.showForm(rw, r, http.StatusTooManyRequests, f)
}

// enter signs this browser in; method is how the person proved who they are.
func (w *Web) enter(rw http.ResponseWriter, r *http.Request, person account.Account, next, method string) error {
	err := w.openSession(rw, r, person, method)
	if errors.Is(err, account.ErrBadCredentials) { // the password was changed since it was checked
		w.newVisitor(rw)
		http.Redirect(rw, r, withNext("/signin", next), http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return err
	}
	w.rememberBrowser(rw, person.Email)
	http.Redirect(rw, r, next, http.StatusSeeOther)
	return nil
}

func (w *Web) signOut(rw http.ResponseWriter, r *http.Request) error {
	if err := w.closeSession(r); err != nil {
		return err
	}
	w.newVisitor(rw)
	http.Redirect(rw, r, nextOf(r), http.StatusSeeOther)
	return nil
}
