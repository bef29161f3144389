package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

func (w *Web) home(c *call) error {
	var page struct{ Export *setting }
	if name, value, ok := strings.Cut(w.exportCommand(), "="); ok {
		page.Export = &setting{name, value}
	}
	return w.render(c, http.StatusOK, "home", page)
}

// setting is an assignment that a page may break into two lines after its name.
type setting struct{ Name, Value string }

// privacyPage is the data of the template "privacy".
type privacyPage struct {
	Events   []wire.Description // every event that an install may report
	KeptDays int
	// Limits of the event logs of simulator sessions, and the days that logs are kept after their last use.
	LogDays, LogRows, LogMegabytes, LogGigabytes int64
	Embedded                                     bool // the backend runs on your own computer and accepts no events
}

func (w *Web) privacy(c *call) error {
	quota := sessions.DefaultQuota
	return w.render(c, http.StatusOK, "privacy", privacyPage{
		Events: wire.List(), KeptDays: int(telemetry.Kept / (24 * time.Hour)), Embedded: w.Embedded,
		LogDays: int64(sessions.IdleKept / (24 * time.Hour)), LogRows: quota.SessionRows,
		LogMegabytes: quota.SessionBytes >> 20, LogGigabytes: quota.AccountBytes >> 30,
	})
}
