package app

import (
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/service-dev/service/backend/internal/config"
)

// forwardedFor is a RoundTripper that sends its value as X-Forwarded-For, as a proxy does.
type forwardedFor string

func (f forwardedFor) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", string(f))
	return http.DefaultTransport.RoundTrip(r)
}

// Free credit counts toward the network from which an account was created, even if the user is signed out when it is
// spent. Clients of a proxy that is not in trusted_proxies share one network.
func TestFreeCredit_CountsTheNetworkOfTheSignUp(t *testing.T) {
	for name, tc := range map[string]struct {
		trusted    []netip.Prefix
		bobs, eves string
	}{
		"trusted proxy": {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			"8.8.4.1", "8.8.4.77"},
		"unknown proxy": {nil, "8.8.4.1", "9.9.9.9"},
	} {
		t.Run(name, func(t *testing.T) {
			eachGateway(t, func(t *testing.T, w *gatewayWorld) {
				for email, ip := range map[string]string{"bob@example.org": tc.bobs, "eve@example.org": tc.eves} {
					w.signUpAndOut(email, ip)
				}
				var browsers, grants, networks int
				if err := w.db.QueryRow(`SELECT (SELECT COUNT(*) FROM web_sessions), COUNT(*),
					COUNT(DISTINCT network_hash) FROM credit_free_grants WHERE network_hash <> ''`).
					Scan(&browsers, &grants, &networks); err != nil {
					t.Fatal(err)
				}
				if browsers != 0 || grants != 2 || networks != 1 {
					t.Errorf("got %d signed-in browsers and %d grants to %d networks, want 0, 2 and 1",
						browsers, grants, networks)
				}
				// An operator created Ada's account, so its network is unknown.
				res, text := w.ask("POST", "/v1/chat/completions", chatBody("good", ""))
				if res.StatusCode != http.StatusOK {
					t.Errorf("call of Ada's app: got %d %s, want 200", res.StatusCode, text)
				}
			}, func(c *config.Config) { c.TrustedProxies = tc.trusted })
		})
	}
}

// signUpAndOut creates an account with a browser at ip and signs out.
func (w *gatewayWorld) signUpAndOut(email, ip string) {
	w.t.Helper()
	b := w.browser(forwardedFor(ip))
	b.get("/signup")
	form := url.Values{"email": {email}, "accept": {"1"}, "password": {testPassword}}
	if status := b.post("/signup", form); status != http.StatusSeeOther {
		w.t.Fatalf("sign up: got status %d, want 303", status)
	}
	b.get("/privacy")
	if status := b.post("/signout", url.Values{}); status != http.StatusSeeOther {
		w.t.Fatalf("sign out: got status %d, want 303", status)
	}
}
