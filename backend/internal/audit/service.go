package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/service-dev/service/backend/internal/periodic"
)

// Bounds of the audit log.
const (
	MaxListed   = 200 // entries of one listing
	Kept        = 400 * 24 * time.Hour
	KeptEntries = 20_000 // of an account
	// ReadWindow is how long repeated reads of the same thing through the same link are recorded as one entry.
	ReadWindow = 10 * time.Minute
	sweepEvery = time.Hour
)

// ErrNotFound is returned for an unknown entry, and for another account's so that the two cannot be told apart.
var ErrNotFound = errors.New("no such audit entry")

// Filter narrows a listing.
type Filter struct {
	Project string // the real id; empty: entries of all projects and of the account
	Before  string // the id of an entry: only older ones; empty: from the newest
	Limit   int    // clamped to 1..MaxListed; 0: MaxListed
}

// Store stores entries. The entry of a change is inserted together with the change.
type Store interface {
	// AuditEntries lists newest first, with ActorName filled.
	AuditEntries(ctx context.Context, accountID string, f Filter) ([]Entry, error)
	// AuditEntry returns ErrNotFound for an unknown entry.
	AuditEntry(ctx context.Context, accountID, id string) (Entry, error)
	// AddAuditRead inserts e unless the same actor did the same to the same project after since.
	AddAuditRead(ctx context.Context, e Entry, since time.Time) error
	// SweepAudit deletes entries from before old, and the oldest entries of accounts that have more than keep. It
	// returns how many it deleted.
	SweepAudit(ctx context.Context, old time.Time, keep int) (int64, error)
}

// Service lists entries and records reads.
type Service struct {
	Store Store
	Now   func() time.Time
	Log   *slog.Logger // nil discards
}

// List returns entries of the account, newest first.
func (s *Service) List(ctx context.Context, accountID string, f Filter) ([]Entry, error) {
	if f.Limit == 0 {
		f.Limit = MaxListed
	}
	f.Limit = min(max(f.Limit, 1), MaxListed)
	all, err := s.Store.AuditEntries(ctx, accountID, f)
	if err != nil {
		return nil, fmt.Errorf("list audit entries: %w", err)
	}
	return all, nil
}

// Get returns one entry, or ErrNotFound.
func (s *Service) Get(ctx context.Context, accountID, id string) (Entry, error) {
	return s.Store.AuditEntry(ctx, accountID, id)
}

// reads describes each kind of read to the account holder.
var reads = map[string]string{
	"assistant.read":     "read the assistant's config",
	"credentials.read":   "read which credentials are set",
	"analytics.read":     "read the analytics",
	"gateway_usage.read": "read what calls through the AI gateway cost",
}

// Read records that something was read, once in ReadWindow for each link, project and action.
func (s *Service) Read(ctx context.Context, accountID, project, action string, by Actor) error {
	now := s.Now().UTC().Truncate(time.Millisecond)
	summary, ok := reads[action]
	if !ok {
		summary = action
	}
	e := New(now, accountID, by, action, project, summary)
	if err := s.Store.AddAuditRead(ctx, e, now.Add(-ReadWindow)); err != nil {
		return fmt.Errorf("record read: %w", err)
	}
	return nil
}

// Serve runs Sweep at once and every hour until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Log, "sweep the audit log", s.Sweep)
}

// Sweep deletes entries that are older than Kept or beyond KeptEntries.
func (s *Service) Sweep(ctx context.Context) error {
	if _, err := s.Store.SweepAudit(ctx, s.Now().Add(-Kept), KeptEntries); err != nil {
		return fmt.Errorf("sweep audit entries: %w", err)
	}
	return nil
}

// Name describes an actor to the account holder; host and client are those of an agent's link.
func Name(kind, host, client string) string {
	switch kind {
	case KindAgent:
		switch {
		case host == "" && client == "":
			return "an agent whose link is gone"
		case host == "" || client == "":
			return host + client
		}
		return host + " · " + client
	case KindPerson:
		return "you"
	case KindOperator:
		return "operator"
	case KindBackend:
		return "the service"
	}
	return ""
}
