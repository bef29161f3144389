package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/credential"
)

// Mint contains the data that the store needs to create or resume a session in one step.
type Mint struct {
	// New is the row to insert if there is nothing to resume. Its DeviceModel is never empty.
	New Session
	// SwitchTo is the new device model of a resumed session; empty keeps the current model.
	SwitchTo string
	Fresh    bool
	// PerMinute is the number of sessions that the account may create per minute; 0 means no limit.
	PerMinute int
	Now       time.Time
}

// Attached is the part of the relay that Service needs. It is an interface because package relay imports this one.
type Attached interface {
	// Attached returns the attached apps and pages.
	Attached(sessionID string) Live
	// WithApps returns the IDs of an account's sessions that have an app attached, in any order.
	WithApps(accountID string) []string
	// Closed ends every connection of a session.
	Closed(sessionID string)
	// Switched notifies both sides of a change of the device model.
	Switched(ctx context.Context, sessionID, model string)
	// Watch returns a channel that receives a value after each commit of rows of an account's session. The caller must
	// call stop. Watch returns ErrTooManyWaiters if too many callers wait already.
	Watch(accountID, sessionID string) (woken <-chan struct{}, stop func(), err error)
	// Control sends a request to the page that simulates the glasses, and returns the payload of its result. It returns
	// ErrNoGlasses or ErrNoAnswer on failure.
	Control(ctx context.Context, sessionID, typ string, payload json.RawMessage, media []byte) (json.RawMessage, error)
}

// Service creates, reads and closes sessions.
type Service struct {
	Store  *Store
	Hasher secret.Hasher
	Live   Attached
	Now    func() time.Time
	// PerMinute is the number of sessions that an account may create per minute; 0 means DefaultPerMinute.
	PerMinute int
	Logger    *slog.Logger // nil discards logs
}

// Mint creates or resumes a session. It returns an *InvalidError, or a *PacedError if no session can be resumed.
func (s *Service) Mint(ctx context.Context, o Owner, r Request) (Session, bool, error) {
	if err := r.check(); err != nil {
		return Session{}, false, err
	}
	now := s.now()
	fresh := Session{
		ID: newID(), Owner: o, Project: r.Project, Platform: r.Platform, DeviceModel: r.DeviceModel,
		CreatedAt: now, LastActive: now, ExpiresAt: now.Add(Lifetime),
	}
	if fresh.DeviceModel == "" {
		fresh.DeviceModel = glasses.DefaultDeviceModel
	}
	got, created, was, err := s.Store.MintSession(ctx, Mint{New: fresh, SwitchTo: r.DeviceModel, Fresh: r.Fresh,
		PerMinute: cmp.Or(s.PerMinute, DefaultPerMinute), Now: now})
	if err != nil {
		return Session{}, false, fmt.Errorf("mint session: %w", err)
	}
	if !created && was != got.DeviceModel {
		s.Live.Switched(ctx, got.ID, got.DeviceModel)
	}
	return got, created, nil
}

// Get returns a session of the account, or ErrNotFound.
func (s *Service) Get(ctx context.Context, accountID, id string) (Session, error) {
	got, err := s.Store.Session(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if got.Owner.AccountID != accountID {
		return Session{}, ErrNotFound
	}
	return got, nil
}

// List returns the account's open sessions, newest first.
func (s *Service) List(ctx context.Context, accountID string) ([]Session, error) {
	return s.Store.OpenSessions(ctx, accountID, s.now())
}

// Close ends a session, revokes its secrets and closes its connections. Closing a closed session succeeds.
func (s *Service) Close(ctx context.Context, accountID, id string) (Session, error) {
	if _, err := s.Get(ctx, accountID, id); err != nil {
		return Session{}, err
	}
	got, closed, err := s.Store.CloseSession(ctx, id, s.now())
	if err != nil {
		return Session{}, fmt.Errorf("close session: %w", err)
	}
	if closed {
		s.Live.Closed(id)
	}
	return got, nil
}

// MintSecret creates an app secret for an open session, or returns ErrNotFound or ErrClosed.
func (s *Service) MintSecret(ctx context.Context, accountID, id string) (string, error) {
	got, err := s.Get(ctx, accountID, id)
	if err != nil {
		return "", err
	}
	if !got.Open(s.now()) {
		return "", ErrClosed
	}
	sst := secret.New(credential.Session)
	if err := s.Store.AddSessionSecret(ctx, id, s.hash(sst), s.now()); err != nil {
		return "", fmt.Errorf("save session secret: %w", err)
	}
	return sst, nil
}

// Limits of one page of events.
const (
	DefaultEvents = 100
	MaxEvents     = 500
	MaxWait       = 25 * time.Second
)

// Page is a page of the event log. Next is the cursor for the next call. Truncated reports that rows after the cursor
// of this call were deleted because of the quota or their age.
type Page struct {
	Events    []glasses.Event
	Next      int64
	More      bool
	Truncated bool
}

// Events reads the log after since. limit is clamped to 1..MaxEvents; 0 means DefaultEvents. If there is no row, it
// waits for one, at most for wait and never longer than MaxWait. It may return an empty page earlier, and does so
// immediately if the session is not open. It may return ErrTooManyWaiters.
func (s *Service) Events(
	ctx context.Context, accountID, id string, since int64, limit int, wait time.Duration,
) (Page, error) {
	got, err := s.Get(ctx, accountID, id)
	if err != nil {
		return Page{}, err
	}
	if wait <= 0 || !got.Open(s.now()) {
		return s.page(ctx, id, since, limit)
	}
	woken, stop, err := s.Live.Watch(accountID, id) // start watching before the first read, so that no row is missed
	if err != nil {
		return Page{}, err
	}
	defer stop()
	p, err := s.page(ctx, id, since, limit)
	if err != nil || len(p.Events) > 0 {
		return p, err
	}
	late := time.NewTimer(min(wait, MaxWait))
	defer late.Stop()
	select {
	case <-woken:
	case <-late.C:
		return p, nil
	case <-ctx.Done():
		return Page{}, context.Cause(ctx)
	}
	return s.page(ctx, id, since, limit)
}

func (s *Service) page(ctx context.Context, id string, since int64, limit int) (Page, error) {
	if limit == 0 {
		limit = DefaultEvents
	}
	limit = min(max(limit, 1), MaxEvents)
	since = max(since, 0)
	events, err := s.Store.SessionEvents(ctx, id, since, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("read events: %w", err)
	}
	p := Page{Events: events, Next: since, More: len(events) > limit}
	if p.More {
		p.Events = events[:limit]
	}
	if n := len(p.Events); n > 0 {
		p.Next, p.Truncated = p.Events[n-1].Seq, p.Events[0].Seq > since+1
		return p, nil
	}
	got, err := s.Store.Session(ctx, id) // read last, because rows after the cursor may have just been deleted
	if err != nil {
		return Page{}, err
	}
	if since < got.FirstSeq-1 {
		p.Next, p.Truncated = got.FirstSeq-1, true
	}
	return p, nil
}

// sweepEvery is the interval between deletions of old logs.
const sweepEvery = time.Hour

// Serve runs Sweep immediately and then every hour until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Logger, "sweep event logs", s.Sweep)
}

// Sweep deletes the logs of finished sessions, and rows over the quota.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	return s.Store.SweepLogs(ctx, now.Add(-IdleKept), now.Add(-24*sweepEvery), DefaultQuota)
}

// Control sends a request to the simulated glasses of an open session and returns the payload of their result, which
// may be an error from the glasses. It returns ErrNotFound, ErrClosed, ErrNoGlasses or ErrNoAnswer on failure.
func (s *Service) Control(
	ctx context.Context, accountID, id, typ string, payload json.RawMessage, media []byte,
) (json.RawMessage, error) {
	got, err := s.Get(ctx, accountID, id)
	if err != nil {
		return nil, err
	}
	if !got.Open(s.now()) {
		return nil, ErrClosed
	}
	return s.Live.Control(ctx, id, typ, payload, media)
}

// Open returns the open session for an app that attaches with one of the session's secrets. It returns ErrBadSecret, or
// ErrClosed if the secret is correct but the session is not open.
func (s *Service) Open(ctx context.Context, id, sst string) (Session, error) {
	if !secret.Valid(credential.Session, sst) {
		return Session{}, ErrBadSecret
	}
	ok, err := s.Store.HasSessionSecret(ctx, id, s.hash(sst))
	if err != nil {
		return Session{}, fmt.Errorf("check session secret: %w", err)
	}
	if !ok {
		return Session{}, ErrBadSecret
	}
	got, err := s.Store.Session(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if !got.Open(s.now()) {
		return Session{}, ErrClosed
	}
	return got, nil
}

// Touch extends an open session.
func (s *Service) Touch(ctx context.Context, id string) error {
	now := s.now()
	return s.Store.TouchSession(ctx, id, now, now.Add(Lifetime))
}

// SetModel stores the device model of an open session.
func (s *Service) SetModel(ctx context.Context, id, model string) error {
	return s.Store.SetSessionModel(ctx, id, model, s.now())
}

func (s *Service) hash(sst string) string { return s.Hasher.Hash("session secret", sst) }

// now returns the time in the store's precision, so that results equal later reads.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// newID returns 20 base32 characters, which are unique but not secret.
func newID() string {
	var b [13]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "ses_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:20]
}

// Attached returns the apps and pages attached to a session.
func (s *Service) Attached(id string) Live { return s.Live.Attached(id) }
