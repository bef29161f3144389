package session

import (
	"context"
	"regexp"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
)

// Transports starts the glasses of a session. Its methods return a *problem.Error on failure.
type Transports interface {
	// Attach starts one pair of glasses with a transport adapter. ctx applies only to the start.
	Attach(ctx context.Context, name string, open backend.TransportOpen) (backend.Glasses, error)
	// Transport describes a transport without starting its adapter.
	Transport(name string) (backend.Transport, error)
}

// localSim is the default transport of local sessions.
const localSim = "localsim"

// Endpoints provides the addresses to which apps connect.
type Endpoints interface {
	// AppEndpoint starts the app server if necessary and returns the WebSocket address of a session.
	AppEndpoint(ctx context.Context, id string) (string, error)
	// GatewayURL returns the base address where the assistants of apps call models.
	GatewayURL(ctx context.Context) (string, error)
}

// LocalRequest requests a local session. Empty fields have these defaults: the project of the caller's directory; the
// device model, transport and clock of an open session, or else the default model, localsim and the real clock; no
// fixtures.
type LocalRequest struct {
	Project     string
	DeviceModel string
	Transport   string // a transport whose adapter runs on this machine
	Clock       string // backend.ClockVirtual or backend.ClockReal
	// FixturesDir is relative to the caller's directory unless it is absolute.
	FixturesDir string
	// AssistantScript is the path of a script, or of a scenario that contains one. A relative path starts at the
	// caller's directory. If it is empty, the session keeps its script.
	AssistantScript string
	// Pace is PaceReal for a panel that takes as long for each picture as a real one, or PaceNone for one that does
	// not. If it is empty, the open session's pace or PaceNone is used.
	Pace string
	// TwinOf is the ID of a local session, e.g. one with real glasses. The simulated glasses have the same device
	// model, and PaceReal.
	TwinOf string
	// GlassesName is the name of the pair of real glasses. If it is empty, the most recently used pair or the only pair
	// in range is used.
	GlassesName string
	// Via is the carrier of real glasses: ViaAuto, ViaBlueZ or ViaBrowser. If it is empty, the open session's carrier
	// or ViaAuto is used.
	Via string
	// Fresh requests another session even if one is open for the project and the directory.
	Fresh bool
}

// Values of LocalRequest.Pace.
const (
	PaceNone = "none"
	PaceReal = "real"
)

// Limits of local sessions.
const (
	MaxLocal   = 100                 // open sessions
	MaxApps    = 64                  // apps attached to one session
	MaxMedia   = 64 << 20            // bytes of one session's media; the oldest are deleted
	MaxLog     = 64 << 20            // bytes of one session's event log; the oldest rows are deleted
	MaxRows    = 100_000             // rows of one session's event log; the oldest are deleted
	MaxAdvance = 24 * 60 * 60 * 1000 // ms per call
	MaxUpload  = 1 << 20             // bytes of a picture or a WAV for the glasses
)

var localPattern = regexp.MustCompile(`^loc_[a-z2-7]{20}$`)

// IsLocal reports whether id is the ID of a local session.
func IsLocal(id string) bool { return strings.HasPrefix(id, "loc_") }
