package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/projects"
)

// maxForm limits a posted form, in bytes.
const maxForm = 64 << 10

// errNotFound and errForbidden select the error page when a handler returns them.
var (
	errNotFound  = errors.New("not found")
	errForbidden = errors.New("forbidden")
)

// Account contains the data about the signed-in account that pages need.
type Account struct {
	ID    string
	Email string
}

// call is one request being handled by page.
type call struct {
	*http.Request
	rw        http.ResponseWriter
	browserID string           // value of the session cookie; CSRF tokens and code bindings depend on it
	account   Account          // zero if the visitor is not signed in
	project   projects.Project // set by withProject; its ID is not an alias
}

// handler serves one page. It may return an error only before it writes.
type handler func(*call) error

func (c *call) isSignedIn() bool { return c.account.ID != "" }

func (c *call) redirect(to string) error {
	http.Redirect(c.rw, c.Request, to, http.StatusSeeOther)
	return nil
}

const (
	contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; " + otherPolicy
	// simulatorPolicy lets the simulator page compile its WebAssembly. It does not allow eval of text.
	// Its event log shows pictures and sound that the page itself created.
	simulatorPolicy = "default-src 'none'; style-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; " +
		"img-src 'self' data: blob:; media-src blob:; " + limitPolicy
	otherPolicy = "img-src 'self' data:; " + limitPolicy
	limitPolicy = "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// page wraps every HTML route. It sets security headers, refuses pages embedded by other sites, and checks the
// origin. It redirects the browser to the site's host, finds the browser session, checks the CSRF token of unsafe
// methods, and renders error pages. It passes the ResponseWriter on unchanged, so that a handler can upgrade to a
// WebSocket.
func (w *Web) page(h handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		setHeaders(rw.Header())
		c := &call{Request: r, rw: rw}
		if err := w.serve(c, h); err != nil {
			w.fail(c, err)
		}
	})
}

func (w *Web) serve(c *call, h handler) error {
	if isEmbedded(c.Request) {
		return errForbidden
	}
	if w.mustMove(c) {
		return w.showMove(c)
	}
	c.Body = http.MaxBytesReader(c.rw, c.Body, maxForm)
	if err := w.identify(c); err != nil {
		return err
	}
	if !isRead(c.Request) && (w.origins.Check(c.Request) != nil || !w.csrfOK(c)) {
		return errForbidden
	}
	if !isRead(c.Request) {
		c.Request = c.WithContext(account.WithAddress(c.Context(), w.ClientIP(c.Request)))
	}
	return h(c)
}

// signedIn wraps every page below /account. It redirects visitors to /signin, which redirects back to the requested
// page. It does not repeat a form posted by a visitor, who continues on the dashboard after signing in. signedIn also
// limits the changes of one account across all its browsers.
func (w *Web) signedIn(h handler) http.Handler {
	return w.page(func(c *call) error {
		switch {
		case !c.isSignedIn() && isRead(c.Request):
			return c.redirect("/signin?next=" + url.QueryEscape(c.URL.RequestURI()))
		case !c.isSignedIn():
			return c.redirect("/signin?next=" + url.QueryEscape("/account"))
		case !isRead(c.Request) && w.changes.Take(c.account.ID) > 0:
			return w.showTooMany(c)
		}
		return h(c)
	})
}

// withProject is like signedIn, for a page of the project {id} in the path. It redirects from the alias of a merged
// project to the project that it was merged into.
func (w *Web) withProject(h handler) http.Handler {
	return w.signedIn(func(c *call) (err error) {
		if c.project, err = w.Dashboard.Projects.Get(c.Context(), c.account.ID, c.PathValue("id")); err != nil {
			return err
		}
		if c.project.ID != c.PathValue("id") && c.Method == http.MethodGet {
			return c.redirect(projectPath(c.project.ID))
		}
		return h(c)
	})
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// isEmbedded reports whether another site made the browser load this page inside its own page (as an image, a frame
// or a script) or prefetch it. The user does not know about such a request, so it must not look anything up or count
// against the user. Browsers indicate such requests in Fetch Metadata headers. A request without them is allowed,
// because anyone can omit them.
func isEmbedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	if !isRead(r) {
		return false // the same-origin check refuses it
	}
	isNavigation := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !isNavigation || r.Header.Get("Sec-Purpose") != ""
}
