package storetest

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

// RunTelemetry holds the engine against what installs tell about their use.
func RunTelemetry(t *testing.T, open func(t *testing.T) telemetry.Store) {
	for name, test := range map[string]func(*usage, *testing.T){
		"a batch counts once":           (*usage).countsOnce,
		"a batch in many hands at once": (*usage).manyHands,
		"a purge is of one install":     (*usage).purge,
		"what is old goes":              (*usage).oldGoes,
		"ends of time":                  (*usage).endsOfTime,
	} {
		t.Run(name, func(t *testing.T) {
			u := &usage{clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, store: open(t)}
			u.Service = telemetry.New(telemetry.Options{Store: u.store, Hasher: hash, Now: u.clock.now})
			test(u, t)
		})
	}
}

type usage struct {
	*telemetry.Service
	clock *clock
	store telemetry.Store
	next  uint64
}

// events makes n records that happened so long ago; their ids rise.
func (u *usage) events(n int, ago time.Duration) []wire.Record {
	records := make([]wire.Record, n)
	for i := range records {
		u.next++
		r := wire.Record{At: u.clock.now().Add(-ago).UnixMilli(), Name: wire.ToolCalled, Fields: []byte(`{"tool":"whoAmI","durationMs":3}`)}
		r.ID[6], r.ID[8] = 0x70, 0x80
		binary.BigEndian.PutUint32(r.ID[12:], uint32(u.next))
		records[i] = r
	}
	return records
}

func (u *usage) ingest(t *testing.T, install string, records []wire.Record, want telemetry.Receipt) {
	t.Helper()
	if got, err := u.Ingest(t.Context(), install, records); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func (u *usage) purged(t *testing.T, install string, want int64) {
	t.Helper()
	if n, err := u.Purge(t.Context(), install); err != nil || n != want {
		t.Errorf("%d of %s erased, %v, want %d", n, install, err, want)
	}
}

func (u *usage) countsOnce(t *testing.T) {
	batch := u.events(wire.MaxBatch, time.Hour)
	u.ingest(t, "a", batch, telemetry.Receipt{Accepted: 200})
	u.ingest(t, "a", batch, telemetry.Receipt{Duplicates: 200})
	mixed := append(u.events(3, 0), batch[5], batch[7])
	u.ingest(t, "a", append(mixed, mixed[0]), telemetry.Receipt{Accepted: 3, Duplicates: 3})
	u.clock.pass(50 * time.Hour)
	u.ingest(t, "a", batch, telemetry.Receipt{Duplicates: 200})
	u.ingest(t, "a", nil, telemetry.Receipt{})
	u.ingest(t, "b", batch[:1], telemetry.Receipt{Accepted: 1}) // ids are an install's own
	u.purged(t, "a", 203)
}

// The same batch may be on its way several times: a client that gave up and one that tries again.
func (u *usage) manyHands(t *testing.T) {
	const hands, rounds = 8, 20
	for round := range rounds {
		batch := u.events(40, time.Minute)
		var group sync.WaitGroup
		var mu sync.Mutex
		var sum telemetry.Receipt
		for hand := range hands {
			part := batch[hand:] // they overlap, and none is the whole but the first
			group.Go(func() {
				got, err := u.Ingest(t.Context(), "a", part)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				sum.Accepted += got.Accepted
				sum.Duplicates += got.Duplicates
			})
		}
		group.Wait()
		if sum.Accepted != 40 || sum.Duplicates != hands*40-hands*(hands-1)/2-40 {
			t.Fatalf("round %d: %+v", round, sum)
		}
	}
	u.purged(t, "a", 40*rounds)
}

func (u *usage) purge(t *testing.T) {
	for _, install := range []string{"a", "b"} {
		for _, days := range []int{0, 1, 45, 89} {
			u.ingest(t, install, u.events(2, time.Duration(days)*24*time.Hour), telemetry.Receipt{Accepted: 2})
		}
	}
	u.purged(t, "a", 8)
	u.purged(t, "a", 0)
	u.purged(t, "nobody", 0)
	u.purged(t, "b", 8)
}

func (u *usage) oldGoes(t *testing.T) {
	old, young := u.events(150, 89*24*time.Hour), u.events(7, time.Hour)
	u.ingest(t, "a", old, telemetry.Receipt{Accepted: 150})
	u.ingest(t, "a", young, telemetry.Receipt{Accepted: 7})
	sweep := func() {
		t.Helper()
		if err := u.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	u.ingest(t, "a", old[:1], telemetry.Receipt{Duplicates: 1})
	u.clock.pass(36 * time.Hour)
	// A part at a time, so that nobody waits long.
	day := telemetry.Day(&old[0]) + 1
	for i, want := range []bool{true, false} {
		if more, err := u.store.SweepTelemetry(t.Context(), day, 100); err != nil || more != want {
			t.Errorf("sweep %d: more %v, %v", i, more, err)
		}
	}
	sweep()
	u.purged(t, "a", 7)
	u.ingest(t, "a", old, telemetry.Receipt{Rejected: 150})
}

func (u *usage) endsOfTime(t *testing.T) {
	const day = 24 * time.Hour
	for ago, ok := range map[time.Duration]bool{
		telemetry.Kept: true, telemetry.Kept + time.Millisecond: false, -day: true, -day - time.Millisecond: false, 60 * 365 * day: false, -60 * 365 * day: false,
	} {
		want := telemetry.Receipt{Rejected: 1}
		if ok {
			want = telemetry.Receipt{Accepted: 1}
		}
		t.Run(fmt.Sprint(ago), func(t *testing.T) { u.ingest(t, "a", u.events(1, ago), want) })
	}
	u.purged(t, "a", 2)
}
