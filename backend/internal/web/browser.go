package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

const (
	visitorPrefix = "v." // nobody is signed in: a random id that the server keeps nowhere
	signedPrefix  = "s." // signed in: the secret of a stored browser session
	cookieLife    = 30 * 24 * time.Hour
	maxCookie     = 256 // bytes; longer values are not ours
)

// browser is one browser session: what the cookie says and who is signed in with it.
type browser struct {
	id      string // the cookie's whole value; CSRF tokens and code bindings hang on it
	account *Account
}

type browserKey struct{}

// currentBrowser is the browser session that the guard found for this request.
func currentBrowser(r *http.Request) browser {
	b, _ := r.Context().Value(browserKey{}).(browser)
	return b
}

// currentAccount tells who is signed in. It works in every handler wrapped by Web.page.
func currentAccount(r *http.Request) (Account, bool) {
	b := currentBrowser(r)
	if b.account == nil {
		return Account{}, false
	}
	return *b.account, true
}

var notInCookieName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// cookieName carries the instance; over HTTPS the __Host- prefix keeps sibling hosts from planting it.
func cookieName(instance string, secure bool) string {
	name := "service"
	if id := notInCookieName.ReplaceAllString(instance, "-"); id != "" {
		name += "-" + id
	}
	if !secure {
		return name
	}
	return "__Host-" + name
}

// cookieValue is empty when the browser sent no cookie of ours.
func (w *Web) cookieValue(r *http.Request) string {
	c, err := r.Cookie(w.cookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// identify reads the cookie and returns the browser session behind it. A visitor without a usable cookie gets a new
// one, which writes nothing on the server.
func (w *Web) identify(rw http.ResponseWriter, r *http.Request) (browser, error) {
	value := w.cookieValue(r)
	if !wellFormed(value) {
		return w.newVisitor(rw), nil
	}
	secret, signed := strings.CutPrefix(value, signedPrefix)
	if !signed {
		return browser{id: value}, nil
	}
	person, err := w.Accounts.FindSession(r.Context(), secret)
	if errors.Is(err, account.ErrNoSession) {
		return w.newVisitor(rw), nil
	}
	if err != nil {
		return browser{}, err
	}
	return browser{id: value, account: &Account{ID: person.ID, Email: person.Email}}, nil
}

func wellFormed(value string) bool {
	if len(value) > maxCookie {
		return false
	}
	return len(value) > len(visitorPrefix)+20 &&
		(strings.HasPrefix(value, visitorPrefix) || strings.HasPrefix(value, signedPrefix))
}

func (w *Web) newVisitor(rw http.ResponseWriter) browser {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	id := visitorPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	w.setCookie(rw, id)
	return browser{id: id}
}

// openSession signs the person in: a new cookie, and with it new CSRF tokens, so that nothing a visitor's browser was
// given before the login stays valid.
func (w *Web) openSession(rw http.ResponseWriter, r *http.Request, person account.Account, method string) error {
	if err := w.closeSession(r); err != nil {
		return err
	}
	visit := w.visit(r, method)
	visit.PasswordHash = person.PasswordHash
	secret, err := w.Accounts.OpenSession(r.Context(), person.ID, visit)
	if err != nil {
		return err
	}
	w.setCookie(rw, signedPrefix+secret)
	return nil
}

// closeSession ends the stored session of this browser, if it has one.
func (w *Web) closeSession(r *http.Request) error {
	secret, signed := strings.CutPrefix(currentBrowser(r).id, signedPrefix)
	if !signed {
		return nil
	}
	return w.Accounts.CloseSession(r.Context(), secret)
}

func (w *Web) setCookie(rw http.ResponseWriter, value string) {
	http.SetCookie(rw, &http.Cookie{
		Name: w.cookie, Value: value, Path: "/",
		MaxAge: int(cookieLife.Seconds()), HttpOnly: true, Secure: w.secure, SameSite: http.SameSiteLaxMode,
	})
}

func withBrowser(ctx context.Context, b browser) context.Context {
	return context.WithValue(ctx, browserKey{}, b)
}
