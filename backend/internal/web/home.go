package web

import (
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
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
	// What event logs of simulator sessions hold, and for how long after the last use.
	LogDays, LogRows, LogMegabytes, LogGigabytes int64
	// Embedded says that this backend runs on the reader's own computer, and takes no events.
	Embedded bool
}

func (w *Web) privacy(rw http.ResponseWriter, r *http.Request) error {
	return w.render(rw, r, http.StatusOK, "privacy",
		privacyPage{Events: wire.List(), KeptDays: int(telemetry.Kept / (24 * time.Hour)), Embedded: w.Embedded,
			LogDays: int64(sessions.IdleKept / (24 * time.Hour)), LogRows: sessions.DefaultQuota.SessionRows,
			LogMegabytes: sessions.DefaultQuota.SessionBytes >> 20, LogGigabytes: sessions.DefaultQuota.AccountBytes >> 30})
}
