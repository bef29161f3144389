package web

import (
	"net/http"
	"net/url"
)

// ownFunc is a page of the signed-in account a. Like pageFunc it may give up with an error before it writes.
type ownFunc func(rw http.ResponseWriter, r *http.Request, a Account) error

// own wraps every page below /account: whoever is not signed in goes to /signin first, and comes back to what was to be
// read. A form that was sent without being signed in is not sent again: it comes back to the page it was on.
func (w *Web) own(h func(rw http.ResponseWriter, r *http.Request, a Account) error) http.Handler {
	return w.page(func(rw http.ResponseWriter, r *http.Request) error {
		a, signedIn := currentAccount(r)
		if signedIn {
			return h(rw, r, a)
		}
		next := "/account"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next = r.URL.RequestURI()
		}
		http.Redirect(rw, r, "/signin?next="+url.QueryEscape(next), http.StatusSeeOther)
		return nil
	})
}

// mountDashboard adds the pages below /account that are about projects, grants and the audit log.
func (w *Web) mountDashboard(mux *http.ServeMux) {}
