package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/service-dev/service/backend/internal/connpage"
)

// HostedPages is what the hosted connection pages need. Errors are package connpage's.
type HostedPages interface {
	Get(ctx context.Context, account, project string) (connpage.Page, error)
	ByPageID(ctx context.Context, id string) (connpage.Page, error)
}

// mountConnect adds the hosted connection pages, their preview in the dashboard, and the page to paste a credential on.
func (w *Web) mountConnect(mux *http.ServeMux) {
	w.mountCredential(mux)
	if w.HostedPages == nil {
		return
	}
	mux.Handle("GET /connect/{pageId}", http.HandlerFunc(w.connect))
	mux.Handle("GET /account/projects/{id}/connection-page/preview", w.own(w.connectPreview))
}

// connect serves a page to whoever has its address, inside any app or site. It knows nobody and sets no cookie.
func (w *Web) connect(rw http.ResponseWriter, r *http.Request) {
	d, err := w.hosted(r)
	if err != nil {
		w.page(func(http.ResponseWriter, *http.Request) error { return err }).ServeHTTP(rw, r)
		return
	}
	sum := sha256.Sum256(d.HTML)
	h := rw.Header()
	h.Set("Content-Security-Policy", d.Policy+"; frame-ancestors *")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "public, max-age=60")
	h.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = rw.Write(d.HTML) // the browser may be gone
}

func (w *Web) hosted(r *http.Request) (connpage.Document, error) {
	p, err := w.HostedPages.ByPageID(r.Context(), r.PathValue("pageId"))
	if errors.Is(err, connpage.ErrNotFound) {
		return connpage.Document{}, errNotFound
	}
	if err != nil {
		return connpage.Document{}, fmt.Errorf("serving a connection page: %w", err)
	}
	return connpage.Render(p, connpage.Live)
}

// connectPreview shows the page of an own project with sample data and no script, for a frame in the dashboard.
func (w *Web) connectPreview(rw http.ResponseWriter, r *http.Request, a Account) error {
	p, err := w.HostedPages.Get(r.Context(), a.ID, r.PathValue("id"))
	if errors.Is(err, connpage.ErrNotFound) {
		return errNotFound
	}
	if err != nil {
		return err
	}
	state := connpage.Disconnected
	if r.URL.Query().Get("state") == "connected" {
		state = connpage.Connected
	}
	d, err := connpage.Render(p, state)
	if err != nil {
		return err
	}
	h := rw.Header()
	h.Set("Content-Security-Policy", d.Policy+"; frame-ancestors 'self'")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = rw.Write(d.HTML) // the browser may be gone
	return nil
}
