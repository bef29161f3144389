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
	Store  *Store
	Hasher secret.Hasher
	// Quota is the number of a project's events that are counted exactly per day of arrival (UTC). Events beyond it are
	// sampled. The few batches written in one transaction may exceed it.
	Quota int
	Now   func() time.Time
	Log   *slog.Logger // nil discards logs
}

// Cutoff is the oldest time whose data is kept.
type Cutoff struct {
	Day  int64 // day for event IDs, installs and salts, since 1970-01-01
	Hour int64 // hour for hourly counters, since 1970-01-01
}

// Service counts events and reports the counts.
type Service struct {
	Options
	key     []byte // key of the hashes of event IDs
	batcher *batcher

	mu    sync.Mutex
	salts map[int64][]byte
}

// New returns a service with the options o.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Service{Options: o, key: []byte(o.Hasher.Hash("analytics", "event ids")), salts: map[int64][]byte{}}
	s.batcher = newBatcher(o.Store.CountAnalytics)
	return s
}

// Ingest counts the events of a batch. It counts each event once, even if it is sent several times. Invalid events
// are rejected individually. It may return ErrNoProject.
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

// salt returns the salt of a day. It reads each salt from the store only once.
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
		return nil, fmt.Errorf("read daily salt: %w", err)
	}
	s.salts[day] = salt
	return salt, nil
}

const (
	sweepEvery = 10 * time.Minute
	sweepRows  = 5000 // rows per transaction; ingestion waits for each
)

// Serve runs Sweep periodically until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Log, "sweep analytics", s.Sweep)
}

// Sweep deletes event IDs, install hashes and salts older than retainedDays, and hourly counters older than
// HourlyRetention. Each transaction deletes at most sweepRows rows.
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
