package web

import (
	"errors"
	"net/http"
)

// maxForm bounds a posted form in bytes.
const maxForm = 64 << 10

// errNotFound and errForbidden, returned by a page, choose the error page. Any other error is a 500.
var (
	errNotFound  = errors.New("not found")
	errForbidden = errors.New("forbidden")
)

// pageFunc is a handler that may give up with an error; nothing may have been written then.
type pageFunc func(http.ResponseWriter, *http.Request) error

const (
	contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; " + otherPolicy
	// simulatorPolicy lets the simulator page compile its own WebAssembly, which is no eval of text.
	simulatorPolicy = "default-src 'none'; style-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; " + otherPolicy
	otherPolicy     = "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// page wraps every route of the HTML face: headers, refusal of what another site embeds, same-origin check, browser session, CSRF token on unsafe methods,
// and error pages. The ResponseWriter is passed on as it came, so a WebSocket upgrade works inside.
func (w *Web) page(h pageFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		setHeaders(rw.Header())
		if isEmbedded(r) {
			w.fail(rw, r, errForbidden)
			return
		}
		r.Body = http.MaxBytesReader(rw, r.Body, maxForm)
		b, err := w.identify(rw, r)
		if err != nil {
			w.fail(rw, r, err)
			return
		}
		r = r.WithContext(withBrowser(r.Context(), b))
		if err := w.checkOrigin(r); err != nil {
			w.fail(rw, r, err)
			return
		}
		if err := h(rw, r); err != nil {
			w.fail(rw, r, err)
		}
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

// isEmbedded reports whether another site had its reader's browser load this page as a part of its own: as an image, a
// frame or a script, or in advance. The person knows nothing of it, so it must not look anything up or be counted as
// theirs. Browsers tell by the Fetch Metadata headers; who sends none is let through, as anybody could leave them out.
func isEmbedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false // checkOrigin's to refuse
	}
	followed := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !followed || r.Header.Get("Sec-Purpose") != ""
}

// checkOrigin lets reading through; anything else must come from our own pages and carry this browser's token.
func (w *Web) checkOrigin(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if w.origins.Check(r) != nil || !w.csrfOK(r) {
		return errForbidden
	}
	return nil
}
