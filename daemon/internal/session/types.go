package session

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

// Transports starts the glasses of a session. Errors are *backend.Problem.
type Transports interface {
	// Attach starts one pair of glasses at a transport adapter. ctx bounds only the start.
	Attach(ctx context.Context, name string, open backend.TransportOpen) (backend.Glasses, error)
	// Transport describes a transport without starting its adapter.
	Transport(name string) (backend.Transport, error)
}

// localSim is the transport of local sessions that select none.
const localSim = "localsim"

// Endpoints provides the addresses to which apps connect.
type Endpoints interface {
	// AppEndpoint starts the app server if necessary and returns the WebSocket address of a session.
	AppEndpoint(ctx context.Context, id string) (string, error)
	// GatewayURL is the base address at which the assistants of apps call models.
	GatewayURL(ctx context.Context) (string, error)
}

// Live is a backend's access to open sessions. Errors are *backend.Problem.
type Live interface {
	// WaitEvents is like ListEvents, but waits up to wait for a row if there is none.
	WaitEvents(
		ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration,
	) (backendapi.EventPage, error)
	// Control sends one control frame to the session's page and returns its result (glasses.Result), which may be an
	// error of the glasses.
	Control(
		ctx context.Context, target backend.Target, id, typ string, payload json.RawMessage, media []byte,
	) (json.RawMessage, error)
}

// LocalRequest requests a local session. Defaults for empty fields: the project of the caller's directory, the
// session's own device model or the default one, the session's own transport or localsim, the session's own clock or
// the real one, and no fixtures.
type LocalRequest struct {
	Project     string
	DeviceModel string
	Transport   string // the name of a transport whose adapter runs on this machine
	Clock       string // backend.ClockVirtual or backend.ClockReal
	// FixturesDir is relative to the caller's directory unless it is absolute.
	FixturesDir string
	// AssistantScript is the path of a script, or of a scenario that contains one, relative like FixturesDir. If empty,
	// the session keeps its script.
	AssistantScript string
	// Pace is PaceReal for a panel that takes the time of a real one for each picture, PaceNone for one that does not, or
	// empty for the session's own or PaceNone.
	Pace string
	// TwinOf is the id of a local session, e.g. one with real glasses, whose device model the simulated glasses get, with
	// PaceReal.
	TwinOf string
	// GlassesName names the pair of real glasses; if empty, the one used last or the only one in range.
	GlassesName string
	// Via is the carrier of real glasses: ViaAuto, ViaBlueZ or ViaBrowser. If empty, that of the open session or ViaAuto.
	Via string
	// Fresh requests another session even if one is open for the project and the directory.
	Fresh bool
}

// The values of LocalRequest.Pace.
const (
	PaceNone = "none"
	PaceReal = "real"
)

// Bounds of local sessions.
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

// IsLocal reports whether id is the id of a local session.
func IsLocal(id string) bool { return strings.HasPrefix(id, "loc_") }
