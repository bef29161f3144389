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

// Transports starts the glasses of a session. Its methods return a *backend.Problem on failure.
type Transports interface {
	// Attach starts one pair of glasses at a transport adapter. ctx applies only to the start.
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
	// GatewayURL returns the base address at which the assistants of apps call models.
	GatewayURL(ctx context.Context) (string, error)
}

// Live is a backend's access to open sessions. Its methods return a *backend.Problem on failure.
type Live interface {
	// WaitEvents is like ListEvents, but waits up to wait for a row if there are none.
	WaitEvents(
		ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration,
	) (backendapi.EventPage, error)
	// Control sends one control frame to the session's page and returns its result (glasses.Result), which may be an
	// error of the glasses.
	Control(
		ctx context.Context, target backend.Target, id, typ string, payload json.RawMessage, media []byte,
	) (json.RawMessage, error)
}

// LocalRequest requests a local session. Empty fields have these defaults: the project of the caller's directory, the
// session's own device model or the default one, the session's own transport or localsim, the session's own clock or
// the real one, and no fixtures.
type LocalRequest struct {
	Project     string
	DeviceModel string
	Transport   string // the name of a transport whose adapter runs on this machine
	Clock       string // backend.ClockVirtual or backend.ClockReal
	// FixturesDir is relative to the caller's directory unless it is absolute.
	FixturesDir string
	// AssistantScript is the path of a script, or of a scenario that contains one. A relative path starts at the
	// caller's directory. If it is empty, the session keeps its script.
	AssistantScript string
	// Pace is PaceReal for a panel that takes as long as a real one for each picture, PaceNone for one that does not,
	// or empty for the session's own pace or PaceNone.
	Pace string
	// TwinOf is the id of a local session, e.g. one with real glasses. The simulated glasses get its device model and
	// PaceReal.
	TwinOf string
	// GlassesName is the name of the pair of real glasses; if empty, the most recently used pair or the only one in
	// range is used.
	GlassesName string
	// Via is the carrier of real glasses: ViaAuto, ViaBlueZ or ViaBrowser. If empty, the open session's carrier or
	// ViaAuto is used.
	Via string
	// Fresh requests another session even if one is open for the project and the directory.
	Fresh bool
}

// The values of LocalRequest.Pace.
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

// IsLocal reports whether id is the id of a local session.
func IsLocal(id string) bool { return strings.HasPrefix(id, "loc_") }
