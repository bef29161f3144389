package telemetry

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/secret"
	wire "github.com/service-dev/service/proto/telemetry"
)

func ofDays(now time.Time, days int) []wire.Record {
	records := make([]wire.Record, days)
	for i := range records {
		records[i] = wire.Record{At: now.Add(-time.Duration(i) * 24 * time.Hour).UnixMilli(), Name: wire.ToolCalled}
		records[i].ID[15] = byte(i)
	}
	return records
}

func newService(store *Store, now time.Time) *Service {
	return New(Options{Store: store, Hasher: secret.NewHasher(make([]byte, 32)), Now: func() time.Time { return now }})
}

// fill stores n events of install a on the day of now.
func fill(t *testing.T, s *Service, now time.Time, n int) {
	t.Helper()
	dbtest.Exec(t, s.Store.DB, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		INSERT INTO telemetry_events (day, install_hash, id, at, received_at, name, fields)
		SELECT $2, $3, -i, $4, $4, 'x', '{}' FROM n`,
		n, DayOf(now.UnixMilli()), int64(s.install("a")), Hour(now.UnixMilli()))
}

// Erasing works in parts, so that other writes do not wait long.
func TestInParts_Erase(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newService(NewStore(dbtest.Open(t)), now)
	fill(t, s, now, 2*partRows+500)
	var parts []int64
	day := DayOf(now.UnixMilli())
	n, err := s.inParts(t.Context(), -1, func(limit int) (int64, error) {
		n, err := s.Store.PurgeTelemetry(t.Context(), s.install("a"), day-1, day+1, limit)
		parts = append(parts, n)
		return n, err
	})
	if err != nil || n != 2*partRows+500 || !slices.Equal(parts, []int64{partRows, partRows, 500}) {
		t.Errorf("erased %d events in parts %v (error %v), want parts of up to %d", n, parts, err, partRows)
	}
}

// Events arrive while sweeps count and delete.
func TestIngest_DuringSweep(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newService(NewStore(dbtest.Open(t)), now)
	var group sync.WaitGroup
	for _, install := range []string{"a", "b", "c"} {
		group.Go(func() {
			for round := range 300 {
				records := ofDays(now, 3)
				for i := range records {
					records[i].ID[14], records[i].ID[13] = byte(round), byte(round>>8)
				}
				if got, err := s.Ingest(t.Context(), install, records); err != nil || got.Accepted != 3 {
					t.Errorf("got %+v, %v; want 3 accepted", got, err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	for {
		if err := s.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}
