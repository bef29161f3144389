package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
)

// minKeyBytes is the least key length that New takes: as long as the HMAC's output.
const minKeyBytes = 32

// Options are what the pages need from the composition root.
type Options struct {
	Accounts Accounts
	Links    Links
	// Simulators serves /s/{id}; nil leaves the simulator out.
	Simulators Simulators
	// Dashboard serves the pages below /account about projects, grants and the audit log; nil leaves them out.
	Dashboard *Dashboard
	// CredentialLinks serves the page to paste a credential on; nil leaves it out.
	CredentialLinks CredentialLinks
	// HostedPages serves /connect/{id} and its preview; nil leaves them out.
	HostedPages HostedPages
	// Analytics serves the analytics page of a project; nil leaves it out. IngestURL is where shipped apps send to;
	// empty: /api/analytics of SiteURL.
	Analytics AnalyticsReports
	IngestURL string
	// Settings serves the account's own settings and mailed links; nil leaves them out, and the two below with them.
	Settings Settings
	// Providers and Passkeys are further ways to sign in; nil leaves each out.
	Providers Providers
	Passkeys  Passkeys
	// Key signs CSRF tokens and code bindings; at least 32 bytes, the same on every replica.
	Key []byte
	// InstanceID goes into cookie names, since two backends on one host share the cookie jar (cookies ignore ports).
	InstanceID string
	// SiteURL is the address people use; its origin is trusted even where a proxy rewrites the Host header.
	SiteURL string
	// Embedded says that the daemon of the reader's own computer runs this backend, by plain HTTP on localhost.
	Embedded bool
	// SignInWord is what people must enter to sign up or in with a password, because the owner of a connection cannot be
	// learnt here; empty asks for none.
	SignInWord string
	// SignedOut tells people who sign in that every browser was signed out at the start.
	SignedOut bool
	// SupportContact is shown as it is; empty means that the operator named none.
	SupportContact string
	// Version is shown in the footer.
	Version string
	// ClientIP names the browser's address; nil takes the connection's own, never a header.
	ClientIP func(*http.Request) string
	// AddressKnown reports whether ClientIP names the browser itself and not a proxy on the way; nil: never.
	AddressKnown func(*http.Request) bool
	Log          *slog.Logger
	Now          func() time.Time
}

const (
	signInsPerMinute    = 20 // attempts to sign in or up, per address
	wrongCodesPerMinute = 10 // unknown, expired or used user codes looked at, per address
	// accountChangesPerMinute are the forms below /account that one account may send.
	accountChangesPerMinute = 120
)

// Web serves the pages.
type Web struct {
	Options
	templates templateSet
	assets    assetSet
	origins   *http.CrossOriginProtection
	cookie    string
	secure    bool // cookies are: people come by https
	signIns   *limit.Limiter
	codes     *limit.Limiter
	changes   *limit.Limiter
	doors     doors
}

// New checks the options and finds templates and assets.
func New(o Options) (*Web, error) {
	if o.Accounts == nil || o.Links == nil {
		return nil, errors.New("web: accounts and links are needed")
	}
	if o.Dashboard != nil && !o.Dashboard.complete() {
		return nil, errors.New("web: the dashboard needs all of its services")
	}
	if len(o.Key) < minKeyBytes {
		return nil, fmt.Errorf("web: the key has %d bytes, need %d", len(o.Key), minKeyBytes)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ClientIP == nil {
		o.ClientIP = peerIP
	}
	if o.AddressKnown == nil {
		o.AddressKnown = func(*http.Request) bool { return false }
	}
	w := &Web{
		Options: o,
		origins: http.NewCrossOriginProtection(),
		secure:  !o.Embedded && !isPlainLoopback(o.SiteURL),
		signIns: limit.New(signInsPerMinute, o.Now),
		codes:   limit.New(wrongCodesPerMinute, o.Now),
		changes: limit.New(accountChangesPerMinute, o.Now),
		doors:   newDoors(o),
	}
	if err := w.trustSite(); err != nil {
		return nil, err
	}
	w.cookie = cookieName(w.instance(), w.secure)
	var err error
	if w.assets, err = findAssets(); err != nil {
		return nil, err
	}
	if w.templates, err = findTemplates(w.assets); err != nil {
		return nil, err
	}
	return w, nil
}

// Mount adds every page to mux. It takes "/", so unknown paths get the not-found page.
func (w *Web) Mount(mux *http.ServeMux) {
	mux.Handle("GET /{$}", w.page(w.home))
	mux.Handle("GET /privacy", w.page(w.privacy))
	mux.Handle("GET /signup", w.page(w.signUpPage))
	mux.Handle("POST /signup", w.page(w.signUp))
	mux.Handle("GET /signin", w.page(w.signInPage))
	mux.Handle("POST /signin", w.page(w.signIn))
	mux.Handle("POST /signout", w.page(w.signOut))
	mux.Handle("GET /activate", w.page(w.activate))
	mux.Handle("POST /activate/approve", w.page(w.approve))
	mux.Handle("POST /activate/deny", w.page(w.deny))
	mux.Handle("GET /activate/approved", w.page(w.approved))
	mux.Handle("GET /activate/denied", w.page(w.denied))
	mux.Handle("GET /assets/{name}", http.HandlerFunc(w.asset))
	w.mountDocs(mux)
	w.mountSimulator(mux)
	w.mountDashboard(mux)
	w.mountSettings(mux)
	w.mountAnalytics(mux)
	w.mountConnect(mux)
	mux.Handle("/", w.page(w.notFound))
}

func (w *Web) trustSite() error {
	if w.SiteURL == "" {
		return nil
	}
	u, err := url.Parse(w.SiteURL)
	if err != nil || u.Host == "" {
		return fmt.Errorf("web: site URL %q has no host", w.SiteURL)
	}
	return w.origins.AddTrustedOrigin(strings.ToLower(u.Scheme + "://" + u.Host))
}

// isPlainLoopback reports whether people open the site by plain HTTP on this machine, where browsers keep no Secure
// cookie.
func isPlainLoopback(siteURL string) bool {
	u, err := url.Parse(siteURL)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// instance tells this backend's cookies from those of others. On this machine they share a host, so one without a name
// has its port's.
func (w *Web) instance() string {
	if w.InstanceID != "" || w.secure {
		return w.InstanceID
	}
	u, err := url.Parse(w.SiteURL)
	if err != nil {
		return ""
	}
	return u.Port()
}

func peerIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
