package telemetry

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/secret"
	wire "github.com/service-dev/service/proto/telemetry"
)

// counted is a store that reports a number of events per day and stores none.
type counted struct {
	Store
	ofDay func(day int64) int
}

func (c counted) TelemetryOfDay(_ context.Context, _ Install, day int64, _ int) (int, error) {
	return c.ofDay(day), nil
}
func (c counted) AddTelemetry(_ context.Context, b Batch) (int, error)      { return len(b.Records), nil }
func (c counted) TelemetryRows(context.Context) (int64, error)              { return 0, nil }
func (c counted) SweepTelemetry(context.Context, int64, int) (int64, error) { return 0, nil }

func ofDays(now time.Time, days int) []wire.Record {
	records := make([]wire.Record, days)
	for i := range records {
		records[i] = wire.Record{At: now.Add(-time.Duration(i) * 24 * time.Hour).UnixMilli(), Name: wire.ToolCalled}
		records[i].ID[15] = byte(i)
	}
	return records
}

// A sweep during the query discards all counts, so the first day is counted again.
func TestSweep_WhileDayIsRead(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	today, swept := DayOf(now.UnixMilli()), false
	var s *Service
	s = New(Options{Hasher: secret.NewHasher(make([]byte, 32)), Now: func() time.Time { return now },
		Store: counted{ofDay: func(day int64) int {
			if day == today {
				return MaxOfDay
			}
			if !swept {
				swept = true
				if err := s.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
			}
			return 0
		}}})
	if got, err := s.Ingest(t.Context(), "a", ofDays(now, 2)); err != nil || got != (Receipt{Accepted: 1, Rejected: 1}) ||
		!swept {
		t.Errorf("got %+v, %v, swept %v; want one accepted and one rejected", got, err, swept)
	}
}

// Events arrive while a sweep discards all counts.
func TestIngest_DuringSweep(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := New(Options{Hasher: secret.NewHasher(make([]byte, 32)), Now: func() time.Time { return now },
		Store: counted{ofDay: func(int64) int { return 0 }}})
	var group sync.WaitGroup
	for _, install := range []string{"a", "b", "c"} {
		group.Go(func() {
			for range 300 {
				if got, err := s.Ingest(t.Context(), install, ofDays(now, 3)); err != nil || got.Accepted != 3 {
					t.Errorf("got %+v, %v; want 3 accepted", got, err)
				}
			}
		})
	}
	for range 2000 {
		if err := s.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
}
