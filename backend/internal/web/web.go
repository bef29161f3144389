package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/oidc"
	"github.com/service-dev/service/backend/internal/passkey"
	"github.com/service-dev/service/internal/loopback"
)

// minKeyBytes is the minimum key length that New accepts: the length of the HMAC's output.
const minKeyBytes = 32

// Options configure the pages.
type Options struct {
	Accounts *account.Service
	Links    *link.Service
	// Simulators serves /s/{id}. If it is nil, there are no simulator pages.
	Simulators *Simulators
	// Dashboard serves the pages below /account about projects, grants and the audit log, and projects' connection
	// pages. If it is nil, there are none.
	Dashboard *Dashboard
	// Analytics serves the analytics page of a project. If it is nil, there is none. Shipped apps send their events
	// to IngestURL; "" means /api/analytics on SiteURL.
	Analytics *analytics.Service
	IngestURL string
	// Providers and Passkeys are additional sign-in methods. Each may be nil.
	Providers *oidc.Service
	Passkeys  *passkey.Service
	// Key signs CSRF tokens and code bindings. It is at least 32 bytes long and the same on every replica.
	Key []byte
	// InstanceID is part of the cookies' names, because all backends on one host share their cookies, regardless of the
	// port.
	InstanceID string
	// SiteURL is the public URL. Its origin is trusted even if a proxy rewrites the Host header.
	SiteURL string
	// Embedded is set if the daemon on your own computer runs this backend, with plain HTTP on localhost.
	Embedded bool
	// AskProof requires the password or a passkey each time to approve a code, to raise an agent's access, and to
	// create a key or passkey, even right after a sign-in.
	AskProof bool
	// StateDir is the state directory of that daemon, or "" if tools find it by themselves.
	StateDir string
	// SignInWord is required to sign up or sign in with a password, on systems where the owner of a connection is
	// unknown. If it is "", no word is required.
	SignInWord string
	// SignedOut makes the sign-in page explain that the backend signed out every browser when it started.
	SignedOut bool
	// TempDir is the directory for temporary files. If it is not writable, the system's directory is used.
	TempDir string
	// SupportContact is shown unchanged; "" if the operator has set none.
	SupportContact string
	// Version is shown in the footer.
	Version string
	// ClientIP returns the browser's address. If it is nil, the address of the connection is used, never a header.
	ClientIP func(*http.Request) string
	// AddressKnown reports whether ClientIP returns the browser's address rather than a proxy's. If it is nil, pages
	// treat the address as unknown.
	AddressKnown func(*http.Request) bool
	Log          *slog.Logger
	Now          func() time.Time
}

const (
	signInsPerMinute    = 20 // attempts to sign in or sign up, per address
	wrongCodesPerMinute = 10 // unknown, expired or used user codes, per address
	// accountChangesPerMinute is how many forms below /account one account may post.
	accountChangesPerMinute = 120
)

// Web serves the pages.
type Web struct {
	Options
	templates  templateSet
	assets     assetSet
	origins    *http.CrossOriginProtection
	siteHost   string // host and port of SiteURL; "" if that is not set
	cookie     string // name of the session cookie; the names of other cookies start with it
	secure     bool   // whether cookies are Secure; set for https
	signIns    *limit.Limiter
	codes      *limit.Limiter
	changes    *limit.Limiter
	rateLimits rateLimits
	drawings   *limit.Slots // concurrent drawings of panels, by account
	exports    *limit.Slots // concurrent exports, by account
}

// New checks the options and loads the lists of templates and assets.
func New(o Options) (*Web, error) {
	if o.Accounts == nil || o.Links == nil {
		return nil, errors.New("web: accounts and links are required")
	}
	if o.Dashboard != nil && !o.Dashboard.complete() {
		return nil, errors.New("web: a service of the dashboard is missing")
	}
	if len(o.Key) < minKeyBytes {
		return nil, fmt.Errorf("web: the key is %d bytes long, want at least %d", len(o.Key), minKeyBytes)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ClientIP == nil {
		o.ClientIP = httpjson.PeerIP
	}
	if o.AddressKnown == nil {
		o.AddressKnown = func(*http.Request) bool { return false }
	}
	w := &Web{
		Options:    o,
		origins:    http.NewCrossOriginProtection(),
		secure:     !o.Embedded && !isPlainLoopback(o.SiteURL),
		signIns:    limit.New(signInsPerMinute, o.Now),
		codes:      limit.New(wrongCodesPerMinute, o.Now),
		changes:    limit.New(accountChangesPerMinute, o.Now),
		rateLimits: newRateLimits(o),
		drawings:   limit.NewSlots(drawingBounds),
		exports:    limit.NewSlots(exportBounds),
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

// Mount adds every page to mux. It handles "/", so unknown paths get the not-found page.
func (w *Web) Mount(mux *http.ServeMux) {
	mount(mux, w.page, map[string]handler{
		"GET /{$}":               w.home,
		"GET /privacy":           w.privacy,
		"GET /signup":            w.signUpPage,
		"POST /signup":           w.signUp,
		"GET /signin":            w.signInPage,
		"POST /signin":           w.signIn,
		"POST /signout":          w.signOut,
		"GET /activate":          w.activate,
		"POST /activate/approve": w.approve,
		"POST /activate/deny":    w.deny,
		"GET /activate/approved": w.approved,
		"GET /activate/denied":   w.denied,
	})
	mux.Handle("GET /assets/{name}", http.HandlerFunc(w.asset))
	mux.Handle("/", w.failWith(errNotFound))
	w.mountSiteHost(mux)
	w.mountDocs(mux)
	w.mountSimulator(mux)
	w.mountDashboard(mux)
	w.mountSettings(mux)
	w.mountAnalytics(mux)
	w.mountCredential(mux)
	w.mountConnect(mux)
}

func mount(mux *http.ServeMux, wrap func(handler) http.Handler, pages map[string]handler) {
	for pattern, h := range pages {
		mux.Handle(pattern, wrap(h))
	}
}

func (w *Web) trustSite() error {
	if w.SiteURL == "" {
		return nil
	}
	u, err := url.Parse(w.SiteURL)
	if err != nil || u.Host == "" {
		return fmt.Errorf("web: site URL %q has no host", w.SiteURL)
	}
	w.siteHost = strings.ToLower(u.Host)
	return w.origins.AddTrustedOrigin(strings.ToLower(u.Scheme + "://" + u.Host))
}

// isPlainLoopback reports whether the site uses plain HTTP on this machine. Browsers accept no Secure cookies there.
func isPlainLoopback(siteURL string) bool {
	u, err := url.Parse(siteURL)
	return err == nil && u.Scheme == "http" && loopback.IsBrowserHost(u.Hostname())
}

// instance distinguishes this backend's cookies from the cookies of other backends on the same host, which browsers
// send to every port. A backend without a name uses its port.
func (w *Web) instance() string {
	if w.InstanceID != "" {
		return w.InstanceID
	}
	u, err := url.Parse(w.SiteURL)
	if err != nil || u.Scheme == "https" && u.Port() == "443" {
		return ""
	}
	return u.Port()
}
