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
	tooMany      = "Too many attempts from your network address. Wait a minute, then try again."
	badLogin     = "The e-mail address or the password is wrong. Check both, and try again."
	badWord      = "Enter the current sign-in word, which service-mcp login shows. It changes at every start."
	badEmail     = "Enter an e-mail address like name@example.com."
	needsConsent = "To create an account, accept the privacy policy."
	suspended    = "This account is suspended. The privacy page says whom to ask."
	// guessesSpent is also shown for an address without an account.
	guessesSpent = "Wait a few minutes, use a browser that you signed in with before, or choose another way to sign in. " +
		"Too many wrong passwords were tried for this e-mail address."
)

func (w *Web) signUpPage(c *call) error { return w.accountPage(c, signUp) }

func (w *Web) signInPage(c *call) error { return w.accountPage(c, signIn) }

func (w *Web) accountPage(c *call, mode string) error {
	if c.isSignedIn() {
		return c.redirect(w.landing(nextOf(c)))
	}
	return w.showForm(c, http.StatusOK, accountForm{Mode: mode, Next: nextOf(c)})
}

// showForm renders the form on the activation page if next leads there, so that the code stays visible. Otherwise it
// renders a separate page.
func (w *Web) showForm(c *call, status int, f accountForm) error {
	if code := activationCode(f.Next); code != "" {
		return w.showActivation(c, status, code, f, proofForm{})
	}
	return w.render(c, status, "account", struct{ Form accountForm }{w.complete(c, f).links("")})
}

// rejectForm shows the form again with the text next to one field.
func (w *Web) rejectForm(c *call, f accountForm, field, text string) error {
	f.add(field, text)
	return w.showForm(c, http.StatusUnprocessableEntity, f)
}

func (w *Web) signUp(c *call) error {
	f, password := readForm(c, signUp)
	f.checkSignUp(password)
	switch {
	case f.Failed():
		return w.showForm(c, http.StatusUnprocessableEntity, f)
	case w.signIns.Take(w.ClientIP(c.Request)) > 0:
		return w.tooMany(c, f)
	case !w.wordOK(c):
		return w.rejectForm(c, f, "word", badWord)
	case w.Accounts.CanMail():
		return w.requestSignUp(c, f, password)
	}
	owner, err := w.Accounts.SignUp(c.Context(), f.Email, password)
	switch {
	case errors.Is(err, account.ErrEmailTaken):
		return w.rejectForm(c, f, "email",
			"Sign in instead, or use another address: there is an account with this e-mail address already.")
	case errors.Is(err, account.ErrBadEmail):
		return w.rejectForm(c, f, "email", badEmail)
	case err != nil:
		return err
	}
	return w.enter(c, owner, f.Next, account.ByPassword)
}

func (w *Web) signIn(c *call) error {
	f, password := readForm(c, signIn)
	if w.signIns.Take(w.ClientIP(c.Request)) > 0 {
		return w.tooMany(c, f)
	}
	if !w.wordOK(c) {
		return w.rejectForm(c, f, "word", badWord)
	}
	// Input that cannot be correct gets the same response, but no hash is computed for it.
	err := account.ErrBadCredentials
	var owner account.Account
	n := utf8.RuneCountInString(password)
	if n > 0 && n <= maxPassword && len(f.Email) <= maxEmail && f.Email != "" {
		owner, err = w.Accounts.SignIn(c.Context(), f.Email, password, w.knownBrowser(c, f.Email))
	}
	var spent *account.TooManyGuessesError
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		f.Problem = badLogin
	case errors.As(err, &spent):
		f.Problem = guessesSpent
		c.rw.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(spent.Wait.Seconds()))))
		return w.showForm(c, http.StatusTooManyRequests, f)
	case errors.Is(err, account.ErrSuspended): // returned only for the correct password
		f.Problem = suspended
	case err != nil:
		return err
	default:
		return w.enter(c, owner, f.Next, account.ByPassword)
	}
	return w.showForm(c, http.StatusUnprocessableEntity, f)
}

// wordOK reports whether the form contains the sign-in word, if one is required. Only users who can read the state
// directory or run the tools know the word.
func (w *Web) wordOK(c *call) bool {
	if w.SignInWord == "" {
		return true
	}
	given := strings.ToLower(strings.TrimSpace(c.PostFormValue("word")))
	return subtle.ConstantTimeCompare([]byte(given), []byte(w.SignInWord)) == 1
}

func (w *Web) tooMany(c *call, f accountForm) error {
	f.Problem = tooMany
	c.rw.Header().Set("Retry-After", "60")
	return w.showForm(c, http.StatusTooManyRequests, f)
}

// enter signs this browser in and redirects to next, or to the dashboard if next is empty. If approval requires proof
// and next is the page of a code, it shows that page instead, because only the response to a sign-in may contain the
// proof that replaces the password.
func (w *Web) enter(c *call, owner account.Account, next, method string) error {
	err := w.openSession(c, owner, method)
	if errors.Is(err, account.ErrBadCredentials) { // the password was changed after the check
		w.newVisitor(c)
		return c.redirect(withNext("/signin", next))
	}
	if err != nil {
		return err
	}
	w.rememberBrowser(c, owner.Email)
	if code := activationCode(next); code != "" && w.AskProof {
		proof := proofForm{Proof: w.proofAfterSignIn(c, approval(code))}
		return w.showActivation(c, http.StatusOK, code, accountForm{}, proof)
	}
	if lost, err := w.lostPasskeys(c, owner.ID); err != nil {
		return err
	} else if lost && method == account.ByPassword && (next == "/" || next == "/account") {
		return w.settingsDone(c, nil, "passkeys-lost")
	}
	return c.redirect(w.landing(next))
}

func (w *Web) signOut(c *call) error {
	if err := w.closeSession(c); err != nil {
		return err
	}
	w.newVisitor(c)
	return c.redirect(nextOf(c))
}
