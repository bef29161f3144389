package session

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
)

// Transports opens the glasses' side of a session. Errors are *backend.Problem.
type Transports interface {
	// Attach starts one pair of glasses at a transport adapter. ctx bounds the opening alone.
	Attach(ctx context.Context, name string, open backend.TransportOpen) (backend.Glasses, error)
}

// localSim is the adapter of local sessions.
const localSim = "localsim"

// Endpoints tells where apps attach to local sessions.
type Endpoints interface {
	// AppEndpoint opens the door when it is closed, and gives the WebSocket address of a session.
	AppEndpoint(ctx context.Context, id string) (string, error)
}

// Live is what a backend does with a session besides keeping it. Errors are *backend.Problem.
type Live interface {
	// WaitEvents is ListEvents that waits up to wait for a row when there is none.
	WaitEvents(ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration) (backend.EventPage, error)
	// Control carries one control frame to the session's page and gives its result (glasses.Result), which may be an error
	// of the glasses.
	Control(ctx context.Context, target backend.Target, id, typ string, payload json.RawMessage, media []byte) (json.RawMessage, error)
}

// LocalRequest asks for a local session. Empty fields mean: the project of the caller's directory, the session's own or
// the default model, the session's own clock or the real one, no fixtures.
type LocalRequest struct {
	Project     string
	DeviceModel string
	Clock       string // backend.ClockVirtual or backend.ClockReal
	// FixturesDir is taken from the caller's directory when it is not absolute.
	FixturesDir string
	// Fresh asks for another session although one is open for the project and the directory.
	Fresh bool
}

// Display is what the wearer sees.
type Display struct {
	Model glasses.DeviceModel
	State glasses.State
	View  glasses.View
	// PNG is the panel to the pixel; nil for a model without one, and as Look gives it.
	PNG []byte
	// Text is what can be read, in reading order.
	Text []string
}

// Bounds of local sessions.
const (
	MaxLocal   = 100                 // open at once
	MaxApps    = 64                  // attached to one session
	MaxMedia   = 64 << 20            // bytes of media kept by one session; the oldest go first
	MaxLog     = 64 << 20            // bytes of one session's event log; the oldest rows go first
	MaxRows    = 100_000             // rows of one session's event log; the oldest go first
	MaxAdvance = 24 * 60 * 60 * 1000 // ms at once
	MaxUpload  = 1 << 20             // bytes of a picture or a WAV for the glasses
)

var localPattern = regexp.MustCompile(`^loc_[a-z2-7]{20}$`)

// IsLocal tells whether id is that of a local session.
func IsLocal(id string) bool { return strings.HasPrefix(id, "loc_") }
