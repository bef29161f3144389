package api

import "net/http"

// mountIngest adds the route on which shipped apps send what they count.
func (a *API) mountIngest(mux *http.ServeMux) {}
