package web

import "net/http"

// mountDashboard adds the pages below /account that are about projects, grants and the audit log.
func (w *Web) mountDashboard(mux *http.ServeMux) {}
