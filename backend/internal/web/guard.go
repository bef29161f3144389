package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/projects"
)

// maxForm bounds a posted form in bytes.
const maxForm = 64 << 10

// errNotFound and errForbidden, returned by a handler, select the error page.
var (
	errNotFound  = errors.New("not found")
	errForbidden = errors.New("forbidden")
)

// call is one request being handled by page.
type call struct {
	*http.Request
	rw        http.ResponseWriter
	browserID string           // the session cookie's value, which CSRF tokens and code bindings depend on
	account   Account          // zero if nobody is signed in
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
	// simulatorPolicy lets the simulator page compile its WebAssembly, which does not allow eval of text.
	simulatorPolicy = "default-src 'none'; style-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; " +
		otherPolicy
	otherPolicy = "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// page wraps every HTML route: security headers, refusal of pages embedded by other sites, the same-origin check, the
// browser session, the CSRF token of unsafe methods, and error pages. It passes the ResponseWriter on unchanged, so
// that a handler can upgrade to a WebSocket.
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
	c.Body = http.MaxBytesReader(c.rw, c.Body, maxForm)
	if err := w.identify(c); err != nil {
		return err
	}
	if !isRead(c.Request) && (w.origins.Check(c.Request) != nil || !w.csrfOK(c)) {
		return errForbidden
	}
	return h(c)
}

// signedIn wraps every page below /account. Visitors are sent to /signin and then return to the page that they
// requested; a form posted without being signed in is not repeated and leads to the dashboard. It also limits how many
// changes one account may make, in all browsers together.
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

// withProject is signedIn for the account's project {id} in the path. The alias of a merged project redirects to the
// project that it was merged into.
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

// isEmbedded reports whether another site made the browser load this page as part of its own: as an image, a frame or a
// script, or in advance. The user does not know about such a request, so it must neither look anything up nor count
// against them. Browsers indicate that in Fetch Metadata headers; a request without them passes, since anybody can omit
// them.
func isEmbedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	if !isRead(r) {
		return false // refused by the same-origin check
	}
	isNavigation := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !isNavigation || r.Header.Get("Sec-Purpose") != ""
}
