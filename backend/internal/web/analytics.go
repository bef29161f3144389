package web

import "net/http"

// mountAnalytics adds the analytics page of a project.
func (w *Web) mountAnalytics(mux *http.ServeMux) {}
