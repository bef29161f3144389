package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/service-dev/service/backend/internal/periodic"
)

// Limits of the audit log.
const (
	MaxListed = 200 // entries per listing
	Kept      = 400 * 24 * time.Hour
	// KeptOfPerson is the number of entries kept per account for its holder. KeptOfOther is the number kept for each
	// link, for the operator and for the backend. Each actor has its own share, so that an agent cannot displace the
	// entries of others. Within its own share, it cannot displace the entries that an undo needs.
	KeptOfPerson = 10_000
	KeptOfOther  = 5_000
	// ReadWindow is how long repeated reads of the same kind through one link are recorded as a single entry.
	ReadWindow = 10 * time.Minute
	sweepEvery = time.Hour
)

// ErrNotFound is returned for an unknown entry and for an entry of another account, so that callers cannot tell them
// apart.
var ErrNotFound = errors.New("no such audit entry")

// Filter selects the entries of a listing.
type Filter struct {
	Project string // a project's ID, not an alias; if empty, all entries of the account
	// Nouns selects actions by the word before the dot, such as assistant. If it is empty, all actions match.
	Nouns []string
	// Actor and LinkID select who acted: a kind such as KindAgent, and one agent's link. If both are empty, every
	// actor matches.
	Actor, LinkID string
	// From and To limit the time; To is exclusive. The zero time is no limit.
	From, To time.Time
	// ChangesOnly excludes entries of reads.
	ChangesOnly bool
	Before      string // lists only entries older than the one with this ID; if empty, starts with the newest
	Limit       int    // clamped to 1..MaxListed; 0 means MaxListed
}

// Service lists audit entries and records reads.
type Service struct {
	Store *Store
	Now   func() time.Time
	Log   *slog.Logger // nil discards logs
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

// Get returns one entry of the account, or ErrNotFound.
func (s *Service) Get(ctx context.Context, accountID, id string) (Entry, error) {
	return s.Store.AuditEntry(ctx, accountID, id)
}

// reads maps actions of reads to their descriptions for the account holder.
var reads = map[string]string{
	"assistant.read":     "read the assistant's config",
	"credentials.read":   "read which credentials are set",
	"analytics.read":     "read the analytics",
	"gateway_usage.read": "read what calls through the AI gateway cost",
}

// Read records that an agent read data, at most once per ReadWindow for each link, project and action.
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

// Serve runs Sweep immediately and then every hour until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Log, "sweep the audit log", s.Sweep)
}

// Sweep deletes entries older than Kept, and the oldest entries of each actor beyond its share.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.Now()
	_, err := s.Store.SweepAudit(ctx, now.Add(-Kept), now.Add(-24*sweepEvery), KeptOfPerson, KeptOfOther)
	if err != nil {
		return fmt.Errorf("sweep audit entries: %w", err)
	}
	return nil
}

// AgentName returns the name of an agent's install as shown to the account holder, or "" if host and client are empty.
func AgentName(host, client string) string {
	if host == "" || client == "" {
		return host + client
	}
	return host + " · " + client
}

// Name returns the name of an actor as shown to the account holder. host and client describe the install of an agent's
// link.
func Name(kind, host, client string) string {
	switch kind {
	case KindAgent:
		return cmp.Or(AgentName(host, client), "an agent whose link was deleted")
	case KindPerson:
		return "you"
	case KindOperator:
		return "operator"
	case KindBackend:
		return "the service"
	}
	return ""
}
