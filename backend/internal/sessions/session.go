package sessions

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/glasses"
)

// Lifetime is how long a session lives after its last activity.
const Lifetime = 24 * time.Hour

// DefaultPlatform is what a request that names none gets.
const DefaultPlatform = "web"

// States of a session.
const (
	StateOpen   = "open"
	StateClosed = "closed"
)

// Errors that callers branch on.
var (
	// ErrNotFound: no such session, or another account's; nobody can tell which.
	ErrNotFound = errors.New("no such session")
	// ErrClosed: the session is closed or expired.
	ErrClosed = errors.New("session is closed")
	// ErrNoGlasses: no simulator page of the session is open.
	ErrNoGlasses = errors.New("no simulator page is open")
	// ErrNoAnswer: the simulator page did not answer in time.
	ErrNoAnswer = errors.New("the simulator page did not answer in time")
	// ErrTooManyWaiters: too many wait for rows already.
	ErrTooManyWaiters = errors.New("too many wait for events already")
	// ErrUnavailable: the store is away; rows that were refused now may be taken later.
	ErrUnavailable = errors.New("the store is not available")
	// ErrBadSecret: the secret opens no such session.
	ErrBadSecret = errors.New("secret does not belong to this session")
)

// InvalidError is a request that can never work; Message is for people.
type InvalidError struct{ Message string }

// Error gives the message.
func (e *InvalidError) Error() string { return e.Message }

// Owner is on whose behalf a session is minted: the account and the link (token) that asked.
type Owner struct{ AccountID, LinkID string }

// Session is one browser-simulator session. Times are UTC, millisecond precision.
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
	// FirstSeq is the oldest row of the event log that is kept, LastSeq the newest; without rows FirstSeq is LastSeq+1.
	FirstSeq, LastSeq int64
}

// Open tells whether the session can be attached to at this moment.
func (s Session) Open(now time.Time) bool { return s.ClosedAt.IsZero() && now.Before(s.ExpiresAt) }

// State is open or closed; an expired session counts as closed.
func (s Session) State(now time.Time) string {
	if s.Open(now) {
		return StateOpen
	}
	return StateClosed
}

// Request asks for a session.
type Request struct {
	Project     string
	Platform    string // empty: DefaultPlatform
	DeviceModel string // empty: keep the session's own, or the default for a new one
	Fresh       bool
}

// check fills the defaults, or returns an *InvalidError.
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
		return &InvalidError{"platform is not one of ios, android, web, desktop"}
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

// Live is who is attached to a session right now.
type Live struct {
	Apps  []glasses.AppInfo
	Pages int
}

// Row is one event on its way into the log of a session. OK is for results: whether the command succeeded.
type Row struct {
	SessionID string
	Event     glasses.Event
	OK        bool
	// Duplicate is set by the store: the row was there already and Event.Seq is its number.
	Duplicate bool
}
