package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Bounds of the memory.
const (
	MaxListed   = 200 // entries of one listing
	Kept        = 400 * 24 * time.Hour
	KeptEntries = 20_000 // of an account
	// ReadWindow is how long further reads of the same thing through the same link belong to one entry.
	ReadWindow = 10 * time.Minute
	sweepEvery = time.Hour
)

// ErrNotFound tells of an entry that is not there, or is another account's; nobody can tell which.
var ErrNotFound = errors.New("no such audit entry")

// Filter narrows a listing.
type Filter struct {
	Project string // the real id; empty: all, and what concerns the account
	Before  string // the id of an entry: only older ones; empty: from the newest
	Limit   int    // clamped to 1..MaxListed; 0: MaxListed
}

// Store keeps entries. Those of a change are written by the store of what changes.
type Store interface {
	// AuditEntries lists newest first, with ActorName filled.
	AuditEntries(ctx context.Context, accountID string, f Filter) ([]Entry, error)
	// AuditEntry returns ErrNotFound.
	AuditEntry(ctx context.Context, accountID, id string) (Entry, error)
	// AddAuditRead writes e unless the same actor did the same action with the same project after since.
	AddAuditRead(ctx context.Context, e Entry, since time.Time) error
	// SweepAudit drops entries from before old, and the oldest of accounts that have more than keep; it counts them.
	SweepAudit(ctx context.Context, old time.Time, keep int) (int64, error)
}

// Service reads the memory and writes down what was read.
type Service struct {
	Store Store
	Now   func() time.Time
	Log   *slog.Logger // nil: silent
}

// List gives entries of the account, newest first.
func (s *Service) List(ctx context.Context, accountID string, f Filter) ([]Entry, error) {
	if f.Limit == 0 {
		f.Limit = MaxListed
	}
	f.Limit = min(max(f.Limit, 1), MaxListed)
	all, err := s.Store.AuditEntries(ctx, accountID, f)
	if err != nil {
		return nil, fmt.Errorf("listing audit entries: %w", err)
	}
	return all, nil
}

// Get reads one entry, or returns ErrNotFound.
func (s *Service) Get(ctx context.Context, accountID, id string) (Entry, error) {
	return s.Store.AuditEntry(ctx, accountID, id)
}

// reads says each kind of read to the account holder.
var reads = map[string]string{
	"assistant.read":   "read the assistant's config",
	"credentials.read": "read which credentials are set",
	"analytics.read":   "read the analytics",
}

// Read notes that something was read, once in ReadWindow for each link, project and action.
func (s *Service) Read(ctx context.Context, accountID, project, action string, by Actor) error {
	now := s.Now().UTC().Truncate(time.Millisecond)
	summary, ok := reads[action]
	if !ok {
		summary = action
	}
	if err := s.Store.AddAuditRead(ctx, New(now, accountID, by, action, project, summary), now.Add(-ReadWindow)); err != nil {
		return fmt.Errorf("noting a read: %w", err)
	}
	return nil
}

// Serve drops what is over, now and once an hour, until ctx is done.
func (s *Service) Serve(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil && s.Log != nil {
			s.Log.ErrorContext(ctx, "sweeping the audit log", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep does what Serve does, once.
func (s *Service) Sweep(ctx context.Context) error {
	if _, err := s.Store.SweepAudit(ctx, s.Now().Add(-Kept), KeptEntries); err != nil {
		return fmt.Errorf("sweeping audit entries: %w", err)
	}
	return nil
}

// Name says who did something to the account holder; host and client are those of an agent's link.
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
