package web

import "net/http"

func (w *Web) home(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "home", nil)
}

func (w *Web) privacy(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "privacy", nil)
}
