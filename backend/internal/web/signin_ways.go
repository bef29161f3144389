package web

import (
	"net/http"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/limit"
)

// Attempts a minute and address: of what sends mail, and of what changes an account or asks for its password.
const (
	mailsPerMinute   = 6
	changesPerMinute = 30
)

// doors are the limits of the sign-in and settings pages.
type doors struct{ mails, changes *limit.Limiter }

func newDoors(o Options) doors {
	return doors{mails: limit.New(mailsPerMinute, o.Now), changes: limit.New(changesPerMinute, o.Now)}
}

// wayIn is a button that signs people in without a password.
type wayIn struct {
	Name   string
	Action string
}

// ways adds to the account form how people may sign in besides a password, as far as this backend has it.
func (w *Web) ways(f accountForm) accountForm {
	f.NeedsWord, f.SignedOut = w.SignInWord != "", w.SignedOut
	if w.Settings == nil {
		return f
	}
	f.Forgot = "/forgot"
	if w.Providers != nil {
		for _, p := range w.Providers.Providers() {
			f.Providers = append(f.Providers, wayIn{Name: p.Name, Action: withNext("/signin/oidc/"+p.ID, f.Next)})
		}
	}
	if w.Passkeys != nil {
		f.Passkeys = withNext("/signin/passkey", f.Next)
	}
	return f
}

// visit says how and from where a browser is signed in.
func (w *Web) visit(r *http.Request, method string) account.Visit {
	return account.Visit{Method: method, UserAgent: r.UserAgent(), IP: w.ClientIP(r)}
}

// limited lets h run while its address has attempts left.
func (w *Web) limited(l *limit.Limiter, h pageFunc) pageFunc {
	return func(rw http.ResponseWriter, r *http.Request) error {
		if l.Take(w.ClientIP(r)) > 0 {
			return w.sayTooMany(rw, r)
		}
		return h(rw, r)
	}
}

// limitedOwn is limited for pages below /account.
func (w *Web) limitedOwn(l *limit.Limiter, h ownFunc) ownFunc {
	return func(rw http.ResponseWriter, r *http.Request, a Account) error {
		return w.limited(l, func(rw http.ResponseWriter, r *http.Request) error { return h(rw, r, a) })(rw, r)
	}
}
