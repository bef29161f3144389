package telemetry

import (
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
)

// Switches that decide on an upload, as returned by Gate.
const (
	ByEnv               = "SERVICE_TELEMETRY"
	ByDNT               = "DO_NOT_TRACK"
	ByCI                = "CI"
	ByConsent           = "consent"
	ByUnreadableConsent = "consent_unreadable"  // the decision cannot be read
	ByEmbedded          = "embedded"            // there is no backend to upload to
	ByBackend           = "SERVICE_BACKEND_URL" // this shell uses another backend
	ByNotice            = "notice"              // the first-run notice was not shown yet
	ByDefault           = "default"
)

// Gate reports whether the caller's events may be uploaded, and which switch decided. The first switch that applies
// decides. The shell's own switches take precedence over the stored decision and are never stored.
func (r *Recorder) Gate(who caller.Caller) (allowed bool, decidedBy string) {
	allowed, decidedBy, _ = r.gate(who)
	return allowed, decidedBy
}

// gate is like Gate, but also returns the daemon's own backend at the time of the decision, or "" if the decision did
// not depend on a backend.
func (r *Recorder) gate(who caller.Caller) (allowed bool, decidedBy string, own config.Backend) {
	if by := disabledBy(who); by != "" {
		return false, by, own
	}
	state, err := r.o.Consents.Get()
	switch {
	case err != nil:
		return false, ByUnreadableConsent, own
	case state == consent.Declined:
		return false, ByConsent, own
	}
	own, err = r.o.Backend(caller.Caller{})
	switch {
	case err == nil && !r.usesBackend(own, who):
		return false, ByBackend, own
	case err != nil || own.Kind == config.KindEmbedded:
		return false, ByEmbedded, own
	case state == consent.Accepted:
		return true, ByConsent, own
	case r.toldAt().IsZero():
		return false, ByNotice, own
	}
	return true, ByDefault, own
}

// disabledBy returns the switch in the caller's shell that disables uploads, or "" if there is none.
func disabledBy(who caller.Caller) string {
	switch {
	case isNo(who.Env["SERVICE_TELEMETRY"]):
		return ByEnv
	case isYes(who.Env["DO_NOT_TRACK"]):
		return ByDNT
	case isYes(who.Env["CI"]):
		return ByCI
	}
	return ""
}

// isNo reports whether value is one of the common values for "no".
func isNo(value string) bool {
	return slices.Contains([]string{"0", "no", "off", "false"}, strings.ToLower(value))
}

func isYes(value string) bool { return value != "" && !isNo(value) }

// usesBackend reports whether the caller uses the daemon's own backend. Events about calls to another backend are not
// sent to the daemon's backend.
func (r *Recorder) usesBackend(own config.Backend, who caller.Caller) bool {
	if who.Env["SERVICE_BACKEND_URL"] == "" {
		return true
	}
	theirs, err := r.o.Backend(who)
	return err == nil && theirs.URL == own.URL
}
