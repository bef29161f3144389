package web

import "net/http"

// mountSettings adds the pages of signing in by other means than a password, of mailed links, and of the account's own
// settings.
func (w *Web) mountSettings(mux *http.ServeMux) {}
