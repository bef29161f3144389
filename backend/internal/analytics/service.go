package analytics

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/secret"
)

// Options are what the service needs.
type Options struct {
	Store  Store
	Hasher secret.Hasher
	// Quota is how many events of a project are counted one by one in a day (UTC, of arrival). What is waiting to be
	// written together, at most a few batches, may overrun it.
	Quota int
	Now   func() time.Time
	Log   *slog.Logger // of sweeps that did not work; nil: nowhere
}

// Store keeps the sums. Every method is atomic, and counts are exact however many replicas call at once.
type Store interface {
	// AnalyticsSalt gives the salt of a day (days since 1970, UTC); fresh becomes it when the day has none.
	AnalyticsSalt(ctx context.Context, day int64, fresh []byte) ([]byte, error)
	// CountAnalytics counts batches in one transaction and tells of each what became of it, by the rules of Tally.
	CountAnalytics(ctx context.Context, batches []Batch) ([]Outcome, error)
	// AnalyticsSums gives the sums of one span from from until before to, name by name for Series kinds and added up
	// over the whole range, at At 0, for the others.
	AnalyticsSums(ctx context.Context, account, project string, span Span, from, to int64) ([]Sum, error)
	// SweepAnalytics deletes at most limit rows that hold no sum any more and tells whether there are more.
	SweepAnalytics(ctx context.Context, old Horizon, limit int) (more bool, err error)
}

// Horizon says from when on things are kept; what is older goes.
type Horizon struct {
	Day  int64 // of event ids, installs and salts: days since 1970
	Hour int64 // of sums by hour: hours since 1970
}

// Service counts batches and reports.
type Service struct {
	Options
	key   []byte // of the hashes of event ids
	group *group

	mu    sync.Mutex
	salts map[int64][]byte
}

// New makes the service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Options: o, key: []byte(o.Hasher.Hash("analytics", "event ids")), salts: map[int64][]byte{}}
	s.group = newGroup(o.Store.CountAnalytics)
	return s
}

// Ingest counts a batch of an app. Each event counts once however often and wherever it is sent; bad events are
// rejected one by one. The error may be ErrNoProject.
func (s *Service) Ingest(ctx context.Context, account, project string, events []Event) (Accepted, error) {
	now := s.Now().UTC()
	out := Accepted{SampleRate: 1}
	b := Batch{Account: account, Project: project, Day: dayOf(now), Quota: int64(s.Quota)}
	marks, err := s.marks(ctx, account, events, now, &out)
	if err != nil {
		return Accepted{}, err
	}
	if len(marks) == 0 {
		return out, nil
	}
	b.Marks = marks
	done, err := s.group.count(ctx, b)
	if err != nil {
		return Accepted{}, fmt.Errorf("counting events: %w", err)
	}
	out.Accepted, out.Duplicates, out.Sampled, out.SampleRate = done.Accepted, done.Duplicates, done.Sampled, done.SampleRate
	return out, nil
}

// salt gives the salt of a day, asking the store once.
func (s *Service) salt(ctx context.Context, day, today int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.salts[day]; ok {
		return known, nil
	}
	for old := range s.salts {
		if old < today-keptDays {
			delete(s.salts, old)
		}
	}
	fresh := make([]byte, 16)
	rand.Read(fresh)
	salt, err := s.Store.AnalyticsSalt(ctx, day, fresh)
	if err != nil {
		return nil, fmt.Errorf("reading the salt of a day: %w", err)
	}
	s.salts[day] = salt
	return salt, nil
}

const (
	sweepEvery = 10 * time.Minute
	sweepRows  = 5000 // in one transaction: ingest waits no longer than this takes
)

// Serve deletes what is no longer needed, until ctx ends: event ids, hashes of installs and salts some days after their
// day, sums by hour after KeptHours.
func (s *Service) Serve(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "sweeping analytics; the next sweep makes up for it", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep deletes everything that is too old now, in bounded transactions.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.Now().UTC()
	old := Horizon{Day: dayOf(now) - keptDays, Hour: hourOf(now) - int64(KeptHours/time.Hour)}
	for ctx.Err() == nil {
		more, err := s.Store.SweepAnalytics(ctx, old, sweepRows)
		if err != nil {
			return fmt.Errorf("sweeping analytics: %w", err)
		}
		if !more {
			return nil
		}
	}
	return ctx.Err()
}
