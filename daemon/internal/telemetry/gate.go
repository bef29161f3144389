package telemetry

import (
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
)

// The switches that decide about an upload, as Gate names them.
const (
	ByEnv      = "SERVICE_TELEMETRY"
	ByDNT      = "DO_NOT_TRACK"
	ByCI       = "CI"
	ByConsent  = "consent"
	ByEmbedded = "embedded"            // there is no backend to upload to
	ByBackend  = "SERVICE_BACKEND_URL" // this shell's calls go elsewhere
	ByNotice   = "notice"              // the person was not told yet
	ByDefault  = "default"
)

// Gate tells whether the caller's events may be uploaded, and which switch decided, strongest first (design D28). The
// shell's own switches win over the stored decision; none of them is ever stored.
func (r *Recorder) Gate(who caller.Caller) (allowed bool, decidedBy string) {
	if by := off(who); by != "" {
		return false, by
	}
	state, err := r.o.Consents.Get()
	if err != nil || state == consent.Declined {
		return false, ByConsent
	}
	own, err := r.o.Backend(caller.Caller{})
	switch {
	case err != nil || own.Kind == config.KindEmbedded:
		return false, ByEmbedded
	case !r.goesTo(own, who):
		return false, ByBackend
	case state == consent.Accepted:
		return true, ByConsent
	case r.o.Memory.NoticeShownAt().IsZero():
		return false, ByNotice
	}
	return true, ByDefault
}

// off names the switch of the caller's shell that stops uploads; empty when there is none.
func off(who caller.Caller) string {
	switch {
	case who.Env["SERVICE_TELEMETRY"] == "0":
		return ByEnv
	case on(who.Env["DO_NOT_TRACK"]):
		return ByDNT
	case on(who.Env["CI"]):
		return ByCI
	}
	return ""
}

func on(value string) bool { return value != "" && value != "0" && value != "false" }

// goesTo tells whether the caller works with the daemon's own backend: what it does elsewhere is nobody's business here.
func (r *Recorder) goesTo(own config.Backend, who caller.Caller) bool {
	if who.Env["SERVICE_BACKEND_URL"] == "" {
		return true
	}
	theirs, err := r.o.Backend(who)
	return err == nil && theirs.URL == own.URL
}
