package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/service-dev/service/proto/telemetry"
)

// Bounds of what is held, since anybody may send.
const (
	DefaultMaxRows = 5_000_000
	// MaxOfDay is how many events of one install and day are taken, by each backend process.
	MaxOfDay = 20_000
	// maxCounted bounds the memory of daily.
	maxCounted = 10_000
)

// ErrFull tells that Options.MaxRows are held. The next sweep makes room.
var ErrFull = errors.New("no more events can be kept now")

// total estimates how many events are held: what the last count found and what changed since then.
type total struct {
	counted, changed atomic.Int64
	warned           atomic.Int64 // Unix ms
}

func (t *total) change(n int64) { t.changed.Add(n) }

func (t *total) rows() int64 { return t.counted.Load() + t.changed.Load() }

// count counts anew. What changes meanwhile is counted twice at worst.
func (t *total) count(ctx context.Context, store Store) error {
	before := t.changed.Load()
	n, err := store.TelemetryRows(ctx)
	if err == nil {
		t.counted.Store(n - before)
	}
	return err
}

// room returns ErrFull when there is none, and says so in the log once an hour.
func (s *Service) room(ctx context.Context, now time.Time) error {
	if s.total.rows() < s.MaxRows {
		return nil
	}
	last, ms := s.total.warned.Load(), now.UnixMilli()
	if ms-last >= time.Hour.Milliseconds() && s.total.warned.CompareAndSwap(last, ms) {
		s.Log.WarnContext(ctx, "as many events are held as telemetry_max_events allows; more are refused until the next sweep", "events", s.total.rows())
	}
	return ErrFull
}

// daily counts the events of installs and days in memory, beginning with what the store has.
type daily struct {
	mu   sync.Mutex
	held map[installDay]int
}

type installDay struct {
	of  Install
	day int64
}

// take gives the records for which their days have room, and counts them. Another may have everything forgotten while the
// store is asked, so days are counted only once all of them are known at one moment.
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

// try counts the records, or gives a day that is unknown here and counts none.
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

// within needs mu, and every day to be known.
func (d *daily) within(of Install, records []wire.Record) []wire.Record {
	for i := range records {
		if d.add(of, &records[i]) {
			continue
		}
		some := append([]wire.Record(nil), records[:i]...)
		for j := i + 1; j < len(records); j++ {
			if d.add(of, &records[j]) {
				some = append(some, records[j])
			}
		}
		return some
	}
	return records
}

func (d *daily) add(of Install, r *wire.Record) bool {
	key := installDay{of, Day(r)}
	if d.held[key] >= MaxOfDay {
		return false
	}
	d.held[key]++
	return true
}

// learn keeps what the store has of a day, unless somebody was faster.
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

// settle takes back what was counted and is not held: only kept of the records are new. Duplicates of several days stay
// counted until the next sweep, since nobody knows whose they were.
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

// forget lets the store be asked again about an install.
func (d *daily) forget(of Install) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.held {
		if key.of == of {
			delete(d.held, key)
		}
	}
}

// reset lets the store be asked again about everybody.
func (d *daily) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = nil
}
