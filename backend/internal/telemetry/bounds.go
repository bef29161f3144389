package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	wire "github.com/service-dev/service/proto/telemetry"
)

// Limits on stored data, because anyone may send events.
const (
	DefaultMaxRows = 5_000_000
	// MaxOfDay limits the events per install and day. Concurrent uploads may exceed it by a batch each.
	MaxOfDay = 20_000
)

// ErrFull is returned if Options.MaxRows events are already stored. The next sweep deletes the oldest.
var ErrFull = errors.New("no more events can be stored now")

// total estimates the number of stored events from the last count and the changes since.
type total struct {
	counted, changed atomic.Int64
	warned           atomic.Int64 // Unix ms
}

func (t *total) change(n int64) { t.changed.Add(n) }

func (t *total) rows() int64 { return t.counted.Load() + t.changed.Load() }

// count recounts the stored events. At worst, changes made during the query are counted twice.
func (t *total) count(ctx context.Context, store *Store) error {
	before := t.changed.Load()
	n, err := store.TelemetryRows(ctx)
	if err == nil {
		t.counted.Store(n - before)
	}
	return err
}

// room returns ErrFull if the store is full, and logs this at most once an hour.
func (s *Service) room(ctx context.Context, now time.Time) error {
	if s.total.rows() < s.MaxRows {
		return nil
	}
	last, ms := s.total.warned.Load(), now.UnixMilli()
	if ms-last >= time.Hour.Milliseconds() && s.total.warned.CompareAndSwap(last, ms) {
		s.Log.WarnContext(ctx,
			"stored events reached telemetry_max_events; new events are refused until the next sweep", "events",
			s.total.rows())
	}
	return ErrFull
}

// withinDays drops the records that would exceed MaxOfDay on a day of the install.
func (s *Service) withinDays(ctx context.Context, of Install, records []wire.Record) ([]wire.Record, error) {
	stored := map[int64]int{} // number of stored events by day
	for i := range records {
		day := Day(&records[i])
		if _, known := stored[day]; known {
			continue
		}
		n, err := s.Store.TelemetryOfDay(ctx, of, day, MaxOfDay)
		if err != nil {
			return nil, err
		}
		stored[day] = n
	}
	return only(records, func(r *wire.Record) bool {
		stored[Day(r)]++
		return stored[Day(r)] <= MaxOfDay
	}), nil
}
