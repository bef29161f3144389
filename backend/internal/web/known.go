package web

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
)

const (
	// knownLife is how long a browser counts as known after it signed in.
	knownLife = 180 * 24 * time.Hour
	maxKnown  = 200 // bytes of the cookie
)

// A known browser is one that has signed in with an e-mail address before. It holds a signed cookie of that address, so
// that wrong passwords from elsewhere do not count against it. The cookie opens nothing by itself.

// rememberBrowser gives this browser a new name for an address.
func (w *Web) rememberBrowser(rw http.ResponseWriter, email string) {
	email = plainEmail(email)
	body := strconv.FormatInt(w.Now().Add(knownLife).Unix(), 36) + "." + rand.Text()
	w.setKnown(rw, email, body+"."+w.sign("known", email, body), int(knownLife.Seconds()))
}

// forgetBrowser drops the cookie of an address, for an account that is deleted.
func (w *Web) forgetBrowser(rw http.ResponseWriter, email string) {
	w.setKnown(rw, plainEmail(email), "", -1)
}

// knownBrowser returns the name under which this browser signed in with an address, or "" if it did not.
func (w *Web) knownBrowser(r *http.Request, email string) string {
	email = plainEmail(email)
	c, err := r.Cookie(w.knownCookie(email))
	if err != nil || len(c.Value) > maxKnown {
		return ""
	}
	cut := strings.LastIndexByte(c.Value, '.')
	if cut < 0 || !same(c.Value[cut+1:], w.sign("known", email, c.Value[:cut])) {
		return ""
	}
	until, name, _ := strings.Cut(c.Value[:cut], ".")
	if seconds, err := strconv.ParseInt(until, 36, 64); err != nil || w.Now().Unix() > seconds {
		return ""
	}
	return name
}

// knownCookie is named after a keyed hash of the address: one browser may know several, and none is written in it.
func (w *Web) knownCookie(email string) string {
	return w.cookie + "-known-" + w.sign("known cookie", email)[:8]
}

func (w *Web) setKnown(rw http.ResponseWriter, email, value string, seconds int) {
	http.SetCookie(rw, &http.Cookie{
		Name: w.knownCookie(email), Value: value, Path: "/",
		MaxAge: seconds, HttpOnly: true, Secure: w.secure, SameSite: http.SameSiteLaxMode,
	})
}

// plainEmail is an address as it is compared.
func plainEmail(email string) string { return account.FoldEmail(email) }
