package analytics

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/secret"
)

// Options configure the service.
type Options struct {
	Store  Store
	Hasher secret.Hasher
	// Quota is how many events of a project are counted exactly per day of arrival (UTC). Beyond it only a sample is
	// counted. The few batches that are written together may exceed it.
	Quota int
	Now   func() time.Time
	Log   *slog.Logger // nil discards
}

// Store stores the counters. Every method is atomic, and counts are exact with any number of concurrent replicas.
type Store interface {
	// AnalyticsSalt returns the salt of a day (days since 1970, UTC). If the day has none, it stores and returns
	// fresh.
	AnalyticsSalt(ctx context.Context, day int64, fresh []byte) ([]byte, error)
	// CountAnalytics counts batches with Aggregate in one transaction, and returns the outcome of each.
	CountAnalytics(ctx context.Context, batches []Batch) ([]Outcome, error)
	// AnalyticsCounters returns the counters of one span between from (inclusive) and to (exclusive): KindTotal per
	// period, and the other kinds summed over the range, with At 0.
	AnalyticsCounters(ctx context.Context, account, project string, span Span, from, to int64) ([]Counter, error)
	// SweepAnalytics deletes at most limit rows older than the cutoff and reports whether there are more.
	SweepAnalytics(ctx context.Context, before Cutoff, limit int) (more bool, err error)
}

// Cutoff is the start of the retained time.
type Cutoff struct {
	Day  int64 // of event ids, installs and salts: days since 1970
	Hour int64 // of counters by hour: hours since 1970
}

// Service counts batches and reports.
type Service struct {
	Options
	key     []byte // of the hashes of event ids
	batcher *batcher

	mu    sync.Mutex
	salts map[int64][]byte
}

// New returns a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Service{Options: o, key: []byte(o.Hasher.Hash("analytics", "event ids")), salts: map[int64][]byte{}}
	s.batcher = newBatcher(o.Store.CountAnalytics)
	return s
}

// Ingest counts a batch of an app. Each event counts once, however often it is sent; invalid events are rejected
// individually. The error may be ErrNoProject.
func (s *Service) Ingest(ctx context.Context, account, project string, events []Event) (Accepted, error) {
	now := s.Now().UTC()
	out := Accepted{SampleRate: 1}
	anonymous, err := s.anonymise(ctx, account, events, now, &out)
	if err != nil {
		return Accepted{}, err
	}
	if len(anonymous) == 0 {
		return out, nil
	}
	b := Batch{Account: account, Project: project, Day: dayOf(now), Quota: int64(s.Quota), Events: anonymous}
	done, err := s.batcher.count(ctx, b)
	if err != nil {
		return Accepted{}, fmt.Errorf("count events: %w", err)
	}
	out.Accepted, out.Duplicates, out.Sampled, out.SampleRate = done.Accepted, done.Duplicates, done.Sampled,
		done.SampleRate
	return out, nil
}

// salt returns the salt of a day, which it reads from the store only once.
func (s *Service) salt(ctx context.Context, day, today int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.salts[day]; ok {
		return known, nil
	}
	for old := range s.salts {
		if old < today-retainedDays {
			delete(s.salts, old)
		}
	}
	fresh := make([]byte, 16)
	rand.Read(fresh)
	salt, err := s.Store.AnalyticsSalt(ctx, day, fresh)
	if err != nil {
		return nil, fmt.Errorf("read the salt of a day: %w", err)
	}
	s.salts[day] = salt
	return salt, nil
}

const (
	sweepEvery = 10 * time.Minute
	sweepRows  = 5000 // per transaction, for which ingestion waits
)

// Serve runs Sweep periodically until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Log, "sweep analytics", s.Sweep)
}

// Sweep deletes event ids, install hashes and salts some days after their day, and hourly counters after
// HourlyRetention, in bounded transactions.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.Now().UTC()
	old := Cutoff{Day: dayOf(now) - retainedDays, Hour: hourOf(now) - int64(HourlyRetention/time.Hour)}
	for ctx.Err() == nil {
		more, err := s.Store.SweepAnalytics(ctx, old, sweepRows)
		if err != nil {
			return fmt.Errorf("sweep analytics: %w", err)
		}
		if !more {
			return nil
		}
	}
	return ctx.Err()
}
