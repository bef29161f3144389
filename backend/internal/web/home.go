package web

import (
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

func (w *Web) home(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "home", nil)
}

// privacyPage is what the template "privacy" shows beside its own words.
type privacyPage struct {
	// Events are all that an install may tell of its use: the list that both ends hold it to.
	Events   []wire.Description
	KeptDays int
	// Embedded says that this backend runs on the reader's own computer, and takes no events.
	Embedded bool
}

func (w *Web) privacy(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "privacy",
		privacyPage{Events: wire.List(), KeptDays: int(telemetry.Kept / (24 * time.Hour)), Embedded: w.Embedded})
}
