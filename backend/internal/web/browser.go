package web

import (
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
	visitorPrefix = "v." // prefix for visitors who are not signed in; followed by a random ID that is not stored
	signedPrefix  = "s." // signed in: the secret of a stored browser session
	sessionLife   = 30 * 24 * time.Hour
	minCookieID   = 20  // bytes after the prefix
	maxCookie     = 256 // bytes
)

var notInCookieName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// cookieName returns a name that includes the instance. Over HTTPS, the __Host- prefix prevents sibling hosts from
// setting the cookie.
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

// setCookie sets the cookie whose name ends in suffix. A negative life removes the cookie.
func (w *Web) setCookie(c *call, suffix, value string, life time.Duration) {
	http.SetCookie(c.rw, &http.Cookie{
		Name: w.cookie + suffix, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: w.secure, SameSite: http.SameSiteLaxMode,
	})
}

// cookieValue returns the value of a cookie. It returns "" if the browser sent no such cookie, or one longer than limit
// bytes.
func (w *Web) cookieValue(c *call, suffix string, limit int) string {
	cookie, err := c.Cookie(w.cookie + suffix)
	if err != nil || len(cookie.Value) > limit {
		return ""
	}
	return cookie.Value
}

// identify finds the browser session for the request's cookie. A visitor without a valid cookie gets a new one, for
// which the server stores no data.
func (w *Web) identify(c *call) error {
	c.browserID = w.cookieValue(c, "", maxCookie)
	if len(c.browserID) <= len(visitorPrefix)+minCookieID {
		c.browserID = ""
	}
	secret := browserSecret(c)
	if secret == "" {
		if !strings.HasPrefix(c.browserID, visitorPrefix) {
			w.newVisitor(c)
		}
		return nil
	}
	owner, err := w.Accounts.FindSession(c.Context(), secret)
	if errors.Is(err, account.ErrNoSession) {
		w.newVisitor(c)
		return nil
	}
	c.account = Account{ID: owner.ID, Email: owner.Email}
	return err
}

// browserSecret returns the secret in this browser's cookie, or "" if the visitor is not signed in.
func browserSecret(c *call) string {
	secret, ok := strings.CutPrefix(c.browserID, signedPrefix)
	if !ok {
		return ""
	}
	return secret
}

func (w *Web) newVisitor(c *call) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	c.browserID = visitorPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	w.setCookie(c, "", c.browserID, sessionLife)
}

// openSession signs the browser in for this call and later ones. The new cookie invalidates CSRF tokens from before
// the sign-in.
func (w *Web) openSession(c *call, owner account.Account, method string) error {
	if err := w.closeSession(c); err != nil {
		return err
	}
	secret, err := w.Accounts.OpenSession(c.Context(), owner.ID, account.Visit{
		Method: method, UserAgent: c.UserAgent(), IP: w.ClientIP(c.Request),
		BehindProxy: !w.AddressKnown(c.Request), PasswordHash: owner.PasswordHash,
		Browser: deviceName(c.UserAgent()),
	})
	if err != nil {
		return err
	}
	c.browserID, c.account = signedPrefix+secret, Account{ID: owner.ID, Email: owner.Email}
	w.setCookie(c, "", c.browserID, sessionLife)
	return nil
}

// closeSession ends this browser's stored session, if there is one.
func (w *Web) closeSession(c *call) error {
	if secret := browserSecret(c); secret != "" {
		return w.Accounts.CloseSession(c.Context(), secret)
	}
	return nil
}
