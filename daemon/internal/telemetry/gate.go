package telemetry

import (
	"slices"
	"strings"

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
	ByNonsense = "consent_unreadable"  // what was decided is not known
	ByEmbedded = "embedded"            // there is no backend to upload to
	ByBackend  = "SERVICE_BACKEND_URL" // this shell's calls go elsewhere
	ByNotice   = "notice"              // the person was not told yet
	ByDefault  = "default"
)

// Gate tells whether the caller's events may be uploaded, and which switch decided, strongest first. The
// shell's own switches win over the stored decision; none of them is ever stored.
func (r *Recorder) Gate(who caller.Caller) (allowed bool, decidedBy string) {
	allowed, decidedBy, _ = r.gate(who)
	return allowed, decidedBy
}

// gate also tells the daemon's own backend, as it was when this was decided; it is empty where no backend had a say.
func (r *Recorder) gate(who caller.Caller) (allowed bool, decidedBy string, own config.Backend) {
	if by := off(who); by != "" {
		return false, by, own
	}
	state, err := r.o.Consents.Get()
	switch {
	case err != nil:
		return false, ByNonsense, own
	case state == consent.Declined:
		return false, ByConsent, own
	}
	own, err = r.o.Backend(caller.Caller{})
	switch {
	case err == nil && !r.goesTo(own, who):
		return false, ByBackend, own
	case err != nil || own.Kind == config.KindEmbedded:
		return false, ByEmbedded, own
	case state == consent.Accepted:
		return true, ByConsent, own
	case r.o.Memory.NoticeShownAt().IsZero():
		return false, ByNotice, own
	}
	return true, ByDefault, own
}

// off names the switch of the caller's shell that stops uploads; empty when there is none.
func off(who caller.Caller) string {
	switch {
	case no(who.Env["SERVICE_TELEMETRY"]):
		return ByEnv
	case on(who.Env["DO_NOT_TRACK"]):
		return ByDNT
	case on(who.Env["CI"]):
		return ByCI
	}
	return ""
}

// no tells whether a variable is one of the words that people write for no.
func no(value string) bool {
	return slices.Contains([]string{"0", "no", "off", "false"}, strings.ToLower(value))
}

func on(value string) bool { return value != "" && !no(value) }

// goesTo tells whether the caller works with the daemon's own backend: what it does elsewhere is nobody's business here.
func (r *Recorder) goesTo(own config.Backend, who caller.Caller) bool {
	if who.Env["SERVICE_BACKEND_URL"] == "" {
		return true
	}
	theirs, err := r.o.Backend(who)
	return err == nil && theirs.URL == own.URL
}
