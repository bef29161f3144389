package sessions

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/glasses"
)

// Lifetime is how long a session stays open after its last activity.
const Lifetime = 24 * time.Hour

// DefaultPlatform is used if a request names no platform.
const DefaultPlatform = "web"

// States of a session.
const (
	StateOpen   = "open"
	StateClosed = "closed"
)

// Errors that callers check for.
var (
	// ErrNotFound is returned for an unknown session and for another account's session. Callers cannot tell the two
	// apart.
	ErrNotFound = errors.New("no such session")
	// ErrClosed is returned for a session that is closed or expired.
	ErrClosed = errors.New("session is closed")
	// ErrNoGlasses is returned if no simulator page of the session is open.
	ErrNoGlasses = errors.New("no simulator page is open")
	// ErrNoAnswer is returned if the simulator page did not respond in time.
	ErrNoAnswer = errors.New("the simulator page did not respond in time")
	// ErrTooManyWaiters is returned if too many calls are already waiting for rows.
	ErrTooManyWaiters = errors.New("too many calls are already waiting for events")
	// ErrUnavailable is returned if the store is unavailable. Rows that it refused may be accepted later.
	ErrUnavailable = db.ErrUnavailable
	// ErrBadSecret is returned for a secret that does not belong to the session.
	ErrBadSecret = errors.New("secret does not belong to this session")
)

// InvalidError reports a request that can never succeed. Message is shown to users.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

// Owner is the account and the link that a session is created for.
type Owner struct{ AccountID, LinkID string }

// Session is one browser-simulator session. Times are UTC with millisecond precision.
type Session struct {
	ID          string
	Owner       Owner
	Project     string
	Platform    string
	DeviceModel string
	CreatedAt   time.Time
	LastActive  time.Time
	ExpiresAt   time.Time
	ClosedAt    time.Time // zero while open
	// FirstSeq and LastSeq are the numbers of the oldest and newest stored row. If there are no rows, FirstSeq is
	// LastSeq+1.
	FirstSeq, LastSeq int64
}

// Open reports whether apps and pages can attach now.
func (s Session) Open(now time.Time) bool { return s.ClosedAt.IsZero() && now.Before(s.ExpiresAt) }

// State returns "open" or "closed"; an expired session is closed.
func (s Session) State(now time.Time) string {
	if s.Open(now) {
		return StateOpen
	}
	return StateClosed
}

// Request describes the session to create or resume.
type Request struct {
	Project     string
	Platform    string // empty means DefaultPlatform
	DeviceModel string // empty keeps a session's model; a new session gets the default
	Fresh       bool
}

// check sets the defaults, or returns an *InvalidError.
func (r *Request) check() error {
	if err := projects.CheckID(r.Project); err != nil {
		return &InvalidError{err.Error()}
	}
	if r.Platform == "" {
		r.Platform = DefaultPlatform
	}
	switch r.Platform {
	case "ios", "android", "web", "desktop":
	default:
		return &InvalidError{"platform must be one of ios, android, web, desktop"}
	}
	if r.DeviceModel == "" {
		return nil
	}
	if _, ok := glasses.Model(r.DeviceModel); !ok {
		return &InvalidError{fmt.Sprintf("deviceModel is not one of %s", knownModels())}
	}
	return nil
}

func knownModels() string {
	var ids []string
	for _, m := range glasses.Models() {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, ", ")
}

// Live lists the apps and pages attached to a session.
type Live struct {
	Apps  []glasses.AppInfo
	Pages int
}

// Row is an event to append to a session's log. For a result, OK reports whether the command succeeded.
type Row struct {
	SessionID string
	Event     glasses.Event
	OK        bool
	// State is the session's state after the row, if the row changed it. The store stores it with the row.
	State *State
	// Duplicate is set by the store if the row already existed. Event.Seq is then the number of that row.
	Duplicate bool
}
