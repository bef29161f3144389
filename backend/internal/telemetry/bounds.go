package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/service-dev/service/proto/telemetry"
)

// Limits on stored data, because anyone may send events.
const (
	DefaultMaxRows = 5_000_000
	// MaxOfDay limits the events per install and day, in each backend process.
	MaxOfDay = 20_000
	// maxCounted limits the memory used by daily.
	maxCounted = 10_000
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

// count recounts the stored events. Changes made during the query are counted twice at worst.
func (t *total) count(ctx context.Context, store Store) error {
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

// daily counts events per install and day in memory, starting from the count in the store.
type daily struct {
	mu   sync.Mutex
	held map[installDay]int
}

type installDay struct {
	of  Install
	day int64
}

// take counts the records and returns the ones within MaxOfDay. It counts them only when the counters of all their days
// are in memory, because an erasure may reset counters while take reads the store.
func (d *daily) take(ctx context.Context, store Store, of Install, records []wire.Record) ([]wire.Record, error) {
	for {
		within, ask, unknown := d.try(of, records)
		if !unknown {
			return within, nil
		}
		n, err := store.TelemetryOfDay(ctx, of, ask.day, MaxOfDay)
		if err != nil {
			return nil, err
		}
		d.learn(ask, n)
	}
}

// try counts the records. If the counter of a day is not in memory, it counts none and returns that day.
func (d *daily) try(of Install, records []wire.Record) (within []wire.Record, ask installDay, unknown bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range records {
		key := installDay{of, Day(&records[i])}
		if i > 0 && key == ask {
			continue
		}
		ask = key
		if _, known := d.held[key]; !known {
			return nil, key, true
		}
	}
	return d.within(of, records), ask, false
}

// within counts the records and returns the ones within MaxOfDay. The caller must hold mu, and every day's counter must
// be in memory.
func (d *daily) within(of Install, records []wire.Record) []wire.Record {
	return only(records, func(r *wire.Record) bool { return d.add(of, r) })
}

func (d *daily) add(of Install, r *wire.Record) bool {
	key := installDay{of, Day(r)}
	if d.held[key] >= MaxOfDay {
		return false
	}
	d.held[key]++
	return true
}

// learn stores the count of a day, unless another caller has already stored it.
func (d *daily) learn(key installDay, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil || len(d.held) >= maxCounted {
		d.held = map[installDay]int{}
	}
	if _, known := d.held[key]; !known {
		d.held[key] = n
	}
}

// settle corrects the counts if only kept of the records were new. Duplicates across several days stay counted until
// the next sweep, because their days are unknown.
func (d *daily) settle(of Install, records []wire.Record, kept int) {
	for i := range records {
		if kept > 0 && Day(&records[i]) != Day(&records[0]) {
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := kept; i < len(records); i++ {
		if key := (installDay{of, Day(&records[i])}); d.held[key] > 0 {
			d.held[key]--
		}
	}
}

// forget discards the counters of an install, so that they are read from the store again.
func (d *daily) forget(of Install) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.held {
		if key.of == of {
			delete(d.held, key)
		}
	}
}

// reset discards all counters, so that they are read from the store again.
func (d *daily) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = nil
}
