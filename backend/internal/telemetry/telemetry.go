// Package telemetry keeps what installs tell about their use (spec 6): events of the one list in proto/telemetry, each
// once however often it is sent, under a keyed hash of the install id, for Kept. It knows neither accounts nor HTTP, and
// nothing in it leads from an event to a person.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/secret"
	wire "github.com/service-dev/service/proto/telemetry"
)

const (
	// Kept is how old an event may become. Older ones are not taken either.
	Kept = 90 * 24 * time.Hour
	// ahead is how far the clock of an install may be fast.
	ahead = 24 * time.Hour
)

// Install is the beginning of the keyed hash of an install id: enough to tell a hundred million installs apart, and short
// in every key.
type Install int64

// Batch is what the store is handed: records of one install, no id twice.
type Batch struct {
	Install    Install
	ReceivedAt time.Time
	Records    []wire.Record
}

// Day is the day of a record, in days since 1970 (UTC). It is part of its key: a record that is sent again on another day
// is of the same day as before, and old days go as a whole.
func Day(r *wire.Record) int64 { return floorDay(r.At) }

func floorDay(ms int64) int64 {
	const day = int64(24 * time.Hour / time.Millisecond)
	d := ms / day
	if ms%day < 0 {
		d--
	}
	return d
}

// Store keeps records. Every method is atomic.
type Store interface {
	// AddTelemetry keeps the records that are not there yet and counts them.
	AddTelemetry(ctx context.Context, b Batch) (fresh int, err error)
	// PurgeTelemetry deletes what is held of an install from day from to day to, both included, and counts it.
	PurgeTelemetry(ctx context.Context, of Install, from, to int64) (int64, error)
	// SweepTelemetry deletes at most limit records of days before day and tells whether there are more.
	SweepTelemetry(ctx context.Context, day int64, limit int) (more bool, err error)
}

// Options are what the service needs.
type Options struct {
	Store  Store
	Hasher secret.Hasher
	Now    func() time.Time // nil: the clock
	Log    *slog.Logger     // of sweeps that did not work; nil: nowhere
}

// Service takes, erases and forgets events.
type Service struct{ Options }

// New makes the service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{o}
}

// Receipt tells what became of a batch.
type Receipt struct {
	Accepted   int
	Duplicates int // came before, or stand twice in the batch
	Rejected   int // of no time that is kept
}

// Ingest keeps records of an install.
func (s *Service) Ingest(ctx context.Context, installID string, records []wire.Record) (Receipt, error) {
	now := s.Now().UTC()
	timely := s.timely(records, now)
	out := Receipt{Rejected: len(records) - len(timely)}
	fresh := once(timely)
	out.Duplicates = len(timely) - len(fresh)
	if len(fresh) == 0 {
		return out, nil
	}
	n, err := s.Store.AddTelemetry(ctx, Batch{Install: s.install(installID), ReceivedAt: now, Records: fresh})
	if err != nil {
		return Receipt{}, fmt.Errorf("keeping events: %w", err)
	}
	out.Accepted = n
	out.Duplicates += len(fresh) - n
	return out, nil
}

// timely gives the records that are neither too old nor of the future. It keeps what it is given as it is.
func (s *Service) timely(records []wire.Record, now time.Time) []wire.Record {
	from, to := now.Add(-Kept).UnixMilli(), now.Add(ahead).UnixMilli()
	in := func(r *wire.Record) bool { return r.At >= from && r.At <= to }
	for i := range records {
		if in(&records[i]) {
			continue
		}
		some := append([]wire.Record(nil), records[:i]...)
		for j := i + 1; j < len(records); j++ {
			if in(&records[j]) {
				some = append(some, records[j])
			}
		}
		return some
	}
	return records
}

// once drops records whose id stood before. Ids rise with time, so that mostly a look at the neighbour will do.
func once(records []wire.Record) []wire.Record {
	rising := true
	for i := 1; i < len(records) && rising; i++ {
		rising = string(records[i-1].ID[:]) < string(records[i].ID[:])
	}
	if rising {
		return records
	}
	seen := make(map[[16]byte]bool, len(records))
	some := make([]wire.Record, 0, len(records))
	for i := range records {
		if !seen[records[i].ID] {
			seen[records[i].ID] = true
			some = append(some, records[i])
		}
	}
	return some
}

// Purge erases everything that is held of an install and counts the events.
func (s *Service) Purge(ctx context.Context, installID string) (int64, error) {
	now := s.Now().UTC()
	// A day more at both ends: the clock moves while events are kept, and sweeps come late.
	n, err := s.Store.PurgeTelemetry(ctx, s.install(installID), floorDay(now.Add(-Kept).UnixMilli())-1, floorDay(now.Add(ahead).UnixMilli())+1)
	if err != nil {
		return 0, fmt.Errorf("erasing events: %w", err)
	}
	return n, nil
}

func (s *Service) install(id string) Install {
	const digits = 16
	n, err := strconv.ParseUint(s.Hasher.Hash("telemetry_install", id)[:digits], 16, 64)
	if err != nil {
		panic("the keyed hash is no hexadecimal: " + err.Error())
	}
	return Install(n) //nolint:gosec // all 64 bits, whichever their sign
}

const (
	sweepEvery = time.Hour
	sweepRows  = 5000 // in one transaction: uploads wait no longer than this takes
)

// Serve deletes events that are older than Kept, until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "sweeping telemetry; the next sweep makes up for it", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep does what Serve does, once, in bounded transactions. Whole days go: the last event of one is then Kept old.
func (s *Service) Sweep(ctx context.Context) error {
	day := floorDay(s.Now().UTC().Add(-Kept).UnixMilli())
	for ctx.Err() == nil {
		more, err := s.Store.SweepTelemetry(ctx, day, sweepRows)
		if err != nil {
			return fmt.Errorf("sweeping telemetry: %w", err)
		}
		if !more {
			return nil
		}
	}
	return ctx.Err()
}
