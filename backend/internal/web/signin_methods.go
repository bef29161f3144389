package web

import "github.com/service-dev/service/backend/internal/limit"

// Attempts per minute and network address.
const (
	mailsPerMinute   = 6  // requests that send mail
	changesPerMinute = 30 // requests that change an account or require its password
)

// rateLimits limits attempts on the sign-in and settings pages.
type rateLimits struct{ mails, changes *limit.Limiter }

func newRateLimits(o Options) rateLimits {
	return rateLimits{mails: limit.New(mailsPerMinute, o.Now), changes: limit.New(changesPerMinute, o.Now)}
}

// providerButton is a button for signing in with a provider.
type providerButton struct {
	Name   string
	Action string
}

// complete adds the sign-in methods of this backend to the account form.
func (w *Web) complete(c *call, f accountForm) accountForm {
	f.NeedsWord, f.SignedOut = w.SignInWord != "", w.SignedOut
	f.Forgot = "/forgot"
	if w.Providers != nil {
		for _, p := range w.Providers.Providers() {
			f.Providers = append(f.Providers, providerButton{p.Name, withNext("/signin/oidc/"+p.ID, f.Next)})
		}
	}
	if w.Passkeys != nil && w.isSiteHost(c) {
		f.Passkeys = withNext("/signin/passkey", f.Next)
	}
	return f
}

// limited calls h while the client's address has attempts left.
func (w *Web) limited(l *limit.Limiter, h handler) handler {
	return func(c *call) error {
		if l.Take(w.ClientIP(c.Request)) > 0 {
			return w.showTooMany(c)
		}
		return h(c)
	}
}
