package web

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/connpage"
)

// mountConnect adds the hosted connection pages and their preview in the dashboard.
func (w *Web) mountConnect(mux *http.ServeMux) {
	if w.Dashboard == nil {
		return
	}
	mux.Handle("GET /connect/{pageId}", http.HandlerFunc(w.connect))
	mux.Handle("GET /account/projects/{id}/connection-page/preview", w.signedIn(w.connectPreview))
	mux.Handle("POST /account/projects/{id}/connection-page/preview", w.page(w.enteredPreview))
}

// connect serves a page to anyone who has its URL, inside any app or site. It identifies no user and sets no cookie.
func (w *Web) connect(rw http.ResponseWriter, r *http.Request) {
	p, err := w.Dashboard.Pages.ByPageID(r.Context(), r.PathValue("pageId"))
	var d connpage.Document
	if err == nil {
		d, err = connpage.Render(p, connpage.Live)
	}
	if err != nil {
		w.failWith(fmt.Errorf("serve connection page: %w", err)).ServeHTTP(rw, r)
		return
	}
	h := rw.Header()
	h.Set("Content-Security-Policy", d.Policy+"; frame-ancestors *")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "public, max-age=60")
	serveContent(rw, r, htmlType, hashOf(d.HTML, 12), inMemory(d.HTML))
}

// connectPreview shows the page of one of the account's projects, with sample data and no script, for a frame in the
// dashboard.
func (w *Web) connectPreview(c *call) error {
	p, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.PathValue("id"))
	if err != nil {
		return err
	}
	return showPreview(c, p)
}

// enteredPreview renders the values in the form without storing them. It is not rate limited like a change, because the
// form's script posts while the user types.
func (w *Web) enteredPreview(c *call) error {
	if !c.isSignedIn() {
		return c.redirect("/signin?next=" + url.QueryEscape("/account"))
	}
	p, err := w.Dashboard.Pages.Get(c.Context(), c.account.ID, c.PathValue("id"))
	if err != nil {
		return err
	}
	entered := readConnectionForm(c, p).Page
	if !connpage.IsColour(entered.Accent) { // it may be half typed
		entered.Accent = p.Accent
	}
	return showPreview(c, entered)
}

func showPreview(c *call, p connpage.Page) error {
	state := connpage.Disconnected
	if c.URL.Query().Get("state") == "connected" {
		state = connpage.Connected
	}
	d, err := connpage.Render(p, state)
	if err != nil {
		return err
	}
	h := c.rw.Header()
	h.Set("Content-Security-Policy", d.Policy+"; frame-ancestors 'self'")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Type", htmlType)
	_, _ = c.rw.Write(d.HTML) // the browser may have disconnected
	return nil
}
