package web

import "net/http"

// mountConnect adds the hosted connection pages and their preview in the dashboard.
func (w *Web) mountConnect(mux *http.ServeMux) {}
