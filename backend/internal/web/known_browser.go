package web

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

// A known browser has signed in with an e-mail address before. It has a signed cookie for that address, so that it
// has an allowance of password guesses of its own. The cookie alone grants no access.

const (
	knownBrowserLife = 180 * 24 * time.Hour
	maxKnownBrowser  = 200 // bytes in the cookie
)

// rememberBrowser assigns this browser a new name for an address.
func (w *Web) rememberBrowser(c *call, email string) {
	email = account.FoldEmail(email)
	body := strconv.FormatInt(w.Now().Add(knownBrowserLife).Unix(), 36) + "." + rand.Text()
	w.setCookie(c, w.knownBrowserSuffix(email), body+"."+w.sign("known", email, body), knownBrowserLife)
}

// forgetBrowser removes the cookie for the address of a deleted account.
func (w *Web) forgetBrowser(c *call, email string) {
	w.setCookie(c, w.knownBrowserSuffix(account.FoldEmail(email)), "", -time.Second)
}

// knownBrowser returns the name under which this browser has signed in with an address, or "" if it has not.
func (w *Web) knownBrowser(c *call, email string) string {
	email = account.FoldEmail(email)
	value := w.cookieValue(c, w.knownBrowserSuffix(email), maxKnownBrowser)
	dot := strings.LastIndexByte(value, '.')
	if dot < 0 || !equal(value[dot+1:], w.sign("known", email, value[:dot])) {
		return ""
	}
	until, name, _ := strings.Cut(value[:dot], ".")
	if seconds, err := strconv.ParseInt(until, 36, 64); err != nil || w.Now().Unix() > seconds {
		return ""
	}
	return name
}

// knownBrowserSuffix returns a suffix that contains a keyed hash of the address. A browser may know several addresses,
// and a cookie's name must not reveal any of them.
func (w *Web) knownBrowserSuffix(email string) string {
	return "-known-" + w.sign("known cookie", email)[:8]
}
