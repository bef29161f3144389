// Package telemetry stores usage events of installs, as declared in proto/telemetry, for Kept under a keyed hash of the
// install ID. It stores an event only once, even if it is sent repeatedly. The package contains no account or HTTP
// code. It rounds times to the hour and drops the time part of an event's ID, because the exact time of linking would
// connect an install with its link. If only one link was created within an hour, the hour still connects them.
package telemetry

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/secret"
	wire "github.com/service-dev/service/proto/telemetry"
)

const (
	// Kept is the maximum age of an event, counted from its time or its arrival, whichever is earlier.
	Kept = 90 * 24 * time.Hour
	// ahead is how far an install's clock may be ahead.
	ahead = 24 * time.Hour
)

// Install is the first 64 bits of the keyed hash of an install ID. This is enough to distinguish a hundred million
// installs, and keeps every key short.
type Install int64

// Batch is a set of records from one install, without duplicate IDs.
type Batch struct {
	Install    Install
	ReceivedAt time.Time
	Records    []wire.Record
}

// Key distinguishes the events of an install and day. It is the random half of the event ID; the other half contains
// the millisecond.
func Key(r *wire.Record) int64 {
	return int64(binary.BigEndian.Uint64(r.ID[8:])) //nolint:gosec // all 64 bits, regardless of the sign
}

// Hour returns the start of the hour that contains ms. Both are in Unix ms.
func Hour(ms int64) int64 {
	const hour = int64(time.Hour / time.Millisecond)
	return ms - (ms%hour+hour)%hour
}

// Day returns the day of a record, in days since 1970 (UTC). It is part of the key, so a record keeps its day if it
// is sent again later. Old days are deleted completely.
func Day(r *wire.Record) int64 { return DayOf(r.At) }

const secondsOfDay = 24 * 60 * 60

// DayOf returns the day that contains a time in Unix ms.
func DayOf(ms int64) int64 {
	const day = secondsOfDay * 1000
	d := ms / day
	if ms%day < 0 {
		d--
	}
	return d
}

// Options are the arguments of New.
type Options struct {
	Store  *Store
	Hasher secret.Hasher
	Now    func() time.Time // nil means the system clock
	Log    *slog.Logger     // logs failed sweeps and a full store; nil discards logs
	// MaxRows limits the total number of events; 0 means DefaultMaxRows. Between sweeps the limit applies to an estimate.
	MaxRows int64
}

// Service stores, erases and expires events.
type Service struct {
	Options
	total total
}

// New returns a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxRows = cmp.Or(o.MaxRows, DefaultMaxRows)
	return &Service{Options: o}
}

// Receipt counts the records of a batch by outcome.
type Receipt struct {
	Accepted   int
	Duplicates int // sent before, or twice in the batch
	Rejected   int // outside the accepted times, or beyond MaxOfDay
}

// Ingest stores records from an install, or returns ErrFull.
func (s *Service) Ingest(ctx context.Context, installID string, records []wire.Record) (Receipt, error) {
	now := s.Now().UTC()
	timely := s.timely(records, now)
	out := Receipt{Rejected: len(records) - len(timely)}
	fresh := once(timely)
	out.Duplicates = len(timely) - len(fresh)
	if len(fresh) == 0 {
		return out, nil
	}
	if err := s.room(ctx, now); err != nil {
		return Receipt{}, err
	}
	of := s.install(installID)
	within, err := s.withinDays(ctx, of, fresh)
	if err != nil {
		return Receipt{}, fmt.Errorf("count events: %w", err)
	}
	out.Rejected += len(fresh) - len(within)
	if len(within) == 0 {
		return out, nil
	}
	n, err := s.Store.AddTelemetry(ctx, Batch{Install: of, ReceivedAt: now.Truncate(time.Hour), Records: within})
	if err != nil {
		return Receipt{}, fmt.Errorf("save events: %w", err)
	}
	s.total.change(n)
	out.Accepted = int(n)
	out.Duplicates += len(within) - int(n)
	return out, nil
}

// oldest returns the oldest time to keep, in Unix ms. Earlier events must be deleted now, so that none exceeds Kept
// before the next sweep.
func oldest(now time.Time) int64 { return now.Add(sweepEvery - Kept).UnixMilli() }

// timely returns the records that are not in the future and that no sweep would delete. It does not change records.
func (s *Service) timely(records []wire.Record, now time.Time) []wire.Record {
	from, to := oldest(now), now.Add(ahead).UnixMilli()
	return only(records, func(r *wire.Record) bool { return Hour(r.At) >= from && r.At <= to })
}

// only returns the records that f accepts. It copies them only if f rejects one.
func only(records []wire.Record, f func(*wire.Record) bool) []wire.Record {
	for i := range records {
		if f(&records[i]) {
			continue
		}
		some := append([]wire.Record(nil), records[:i]...)
		for j := i + 1; j < len(records); j++ {
			if f(&records[j]) {
				some = append(some, records[j])
			}
		}
		return some
	}
	return records
}

// once removes records whose ID occurred earlier in the batch. IDs increase with time, so comparing neighbours usually
// suffices.
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

// Purge erases all events of an install and returns their number. It works in parts, so a later call continues an
// interrupted one.
func (s *Service) Purge(ctx context.Context, installID string) (int64, error) {
	now, of := s.Now().UTC(), s.install(installID)
	// Add a day at both ends, because the clock advances while events are stored and sweeps may be late.
	from, to := DayOf(now.Add(-Kept).UnixMilli())-1, DayOf(now.Add(ahead).UnixMilli())+1
	deleted, err := s.inParts(ctx, -1, func(limit int) (int64, error) {
		return s.Store.PurgeTelemetry(ctx, of, from, to,
			limit)
	})
	if err != nil {
		return 0, fmt.Errorf("erase events: %w", err)
	}
	return deleted, nil
}

// inParts deletes one part after another until none is left or the total limit is reached; a negative total means no
// limit.
func (s *Service) inParts(
	ctx context.Context, most int64, part func(limit int) (int64, error),
) (deleted int64, err error) {
	for deleted != most {
		if err := ctx.Err(); err != nil {
			return deleted, err
		}
		limit := int64(partRows)
		if most >= 0 {
			limit = min(limit, most-deleted)
		}
		n, err := part(int(limit))
		deleted += n
		s.total.change(-n)
		if err != nil || n < limit {
			return deleted, err
		}
	}
	return deleted, nil
}

func (s *Service) install(id string) Install {
	const digits = 16
	n, err := strconv.ParseUint(s.Hasher.Hash("telemetry_install", id)[:digits], 16, 64)
	if err != nil {
		panic("keyed hash is not hexadecimal: " + err.Error())
	}
	return Install(n) //nolint:gosec // all 64 bits, regardless of the sign
}

const (
	sweepEvery = time.Hour
	partRows   = 2000 // deleted in one transaction, which limits how long other writes wait
)

// Summarise counts the events of the last days, including today, by day, name, tool, outcome and version, newest day
// first.
func (s *Service) Summarise(ctx context.Context, days int) ([]Summary, error) {
	return s.Store.SummariseTelemetry(ctx, s.Now().UTC().AddDate(0, 0, 1-days))
}

// Serve runs Sweep periodically until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Log, "sweep telemetry", s.Sweep)
}

// Sweep deletes events before they exceed Kept, and the oldest beyond MaxRows, in bounded transactions.
func (s *Service) Sweep(ctx context.Context) error {
	before := oldest(s.Now().UTC())
	if _, err := s.inParts(ctx, -1, func(limit int) (int64, error) {
		return s.Store.SweepTelemetry(ctx, before,
			limit)
	}); err != nil {
		return fmt.Errorf("sweep telemetry: %w", err)
	}
	if err := s.total.count(ctx, s.Store); err != nil {
		return fmt.Errorf("count telemetry: %w", err)
	}
	rows := s.total.rows()
	if rows < s.MaxRows {
		return nil
	}
	surplus := rows - s.MaxRows/10*9
	if _, err := s.inParts(ctx, surplus, func(limit int) (int64, error) {
		return s.Store.SweepTelemetry(ctx, math.MaxInt64,
			limit)
	}); err != nil {
		return fmt.Errorf("free space for telemetry: %w", err)
	}
	return nil
}
