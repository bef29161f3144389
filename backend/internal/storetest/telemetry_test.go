package storetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

var telemetryTests = map[string]func(*usage, *testing.T){
	"a batch counts once":           (*usage).countsOnce,
	"a batch in many hands at once": (*usage).manyHands,
	"a purge is of one install":     (*usage).purge,
	"what is old goes":              (*usage).oldGoes,
	"ends of time":                  (*usage).endsOfTime,
	"what came early goes too":      (*usage).cameEarly,
	"large erasures go in parts":    (*usage).inParts,
	"a day of an install is full":   (*usage).dayIsFull,
	"everything is full":            (*usage).everythingIsFull,
	"a summary":                     (*usage).summary,
}

func TestTelemetry(t *testing.T) {
	eachEngine(t, telemetryTests, func(t *testing.T, db *database, test func(*usage, *testing.T)) {
		u := &usage{clock: newClock(), store: db}
		u.Service = telemetry.New(telemetry.Options{Store: db.telemetryStore, Hasher: hash, Now: u.clock.now})
		test(u, t)
	})
}

type usage struct {
	*telemetry.Service
	clock *clock
	store *database
	next  uint64
}

// events creates n records of the given age, with ascending IDs.
func (u *usage) events(n int, ago time.Duration) []wire.Record {
	records := make([]wire.Record, n)
	for i := range records {
		u.next++
		r := wire.Record{At: u.clock.now().Add(-ago).UnixMilli(), Name: wire.ToolCalled,
			Fields: []byte(`{"tool":"whoAmI","durationMs":3}`)}
		r.ID[6], r.ID[8] = 0x70, 0x80
		binary.BigEndian.PutUint32(r.ID[12:], uint32(u.next))
		records[i] = r
	}
	return records
}

func (u *usage) ingest(t *testing.T, install string, records []wire.Record, want telemetry.Receipt) {
	t.Helper()
	if got, err := u.Ingest(t.Context(), install, records); err != nil || got != want {
		t.Errorf("got %+v (error %v), want %+v", got, err, want)
	}
}

func (u *usage) purged(t *testing.T, install string, want int64) {
	t.Helper()
	if n, err := u.Purge(t.Context(), install); err != nil || n != want {
		t.Errorf("erased %d events of %s (error %v), want %d", n, install, err, want)
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
	u.ingest(t, "b", batch[:1], telemetry.Receipt{Accepted: 1}) // IDs are unique only within an install
	u.purged(t, "a", 203)
}

// The same batch may be in flight several times, because a client retries after a timeout.
func (u *usage) manyHands(t *testing.T) {
	const hands, rounds = 8, 20
	for round := range rounds {
		batch := u.events(40, time.Minute)
		var group sync.WaitGroup
		var mu sync.Mutex
		var sum telemetry.Receipt
		for hand := range hands {
			part := batch[hand:] // the parts overlap, and only the first is the complete batch
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
			t.Fatalf("round %d: got %+v, want 40 accepted and the rest duplicates", round, sum)
		}
	}
	u.purged(t, "a", 40*rounds)
}

func (u *usage) summary(t *testing.T) {
	const day = 24 * time.Hour
	today := u.clock.now().UTC().Truncate(day)
	called := func(n int, ago time.Duration, fields string) []wire.Record {
		records := u.events(n, ago)
		for i := range records {
			records[i].Fields = []byte(fields)
		}
		return records
	}
	ok := `{"durationMs":3,"outcome":"ok","tool":"whoAmI","version":"1.4.0"}`
	linked := u.events(1, 0)
	linked[0].Name, linked[0].Fields = wire.Linked, []byte("{}")
	u.ingest(t, "a", append(called(2, 0, ok), linked...), telemetry.Receipt{Accepted: 3})
	u.ingest(t, "b", called(3, 0, ok), telemetry.Receipt{Accepted: 3})
	u.ingest(t, "a", called(1, day, `{"outcome":"denied","tool":"whoAmI"}`), telemetry.Receipt{Accepted: 1})
	u.ingest(t, "a", called(1, 5*day, ok), telemetry.Receipt{Accepted: 1})
	want := []telemetry.Summary{
		{Day: today, Name: wire.ToolCalled, Tool: "whoAmI", Outcome: "ok", Version: "1.4.0", Events: 5, Installs: 2},
		{Day: today, Name: wire.Linked, Events: 1, Installs: 1},
		{Day: today.Add(-day), Name: wire.ToolCalled, Tool: "whoAmI", Outcome: "denied", Events: 1, Installs: 1},
	}
	for days, rows := range map[int]int{1: 2, 2: 3, 5: 3} {
		if got := must(u.Summarise(t.Context(), days))(t); !slices.Equal(got, want[:rows]) {
			t.Errorf("summary of %d days: got %+v, want %+v", days, got, want[:rows])
		}
	}
	if got := must(u.Summarise(t.Context(), 6))(t); len(got) != 4 {
		t.Errorf("summary of 6 days: got %+v, want one more row", got)
	}
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

func (u *usage) sweep(t *testing.T) {
	t.Helper()
	fatal(t, u.Sweep(t.Context()))
}

// rows checks the number of stored events.
func (u *usage) rows(t *testing.T, want int64) {
	t.Helper()
	if n, err := u.store.TelemetryRows(t.Context()); err != nil || n != want {
		t.Errorf("%d rows are stored (error %v), want %d", n, err, want)
	}
}

func (u *usage) oldGoes(t *testing.T) {
	old, young := u.events(150, 89*24*time.Hour), u.events(7, time.Hour)
	u.ingest(t, "a", old, telemetry.Receipt{Accepted: 150})
	u.ingest(t, "a", young, telemetry.Receipt{Accepted: 7})
	u.sweep(t)
	u.ingest(t, "a", old[:1], telemetry.Receipt{Duplicates: 1})
	// The next sweep is in an hour. Until then no event may become older than 90 days.
	u.clock.pass(23*time.Hour - time.Minute)
	before := telemetry.Hour(old[0].At) + 1
	for i, want := range []int64{100, 50, 0} { // in parts, so that other writes do not wait long
		if n, err := u.store.SweepTelemetry(t.Context(), before, 100); err != nil || n != want {
			t.Errorf("sweep %d: deleted %d (error %v), want the next part", i, n, err)
		}
	}
	u.purged(t, "a", 7)
	u.sweep(t)
	u.ingest(t, "a", old, telemetry.Receipt{Rejected: 150})
	late := u.events(3, telemetry.Kept-2*time.Hour)
	u.ingest(t, "a", late, telemetry.Receipt{Accepted: 3})
	u.clock.pass(time.Hour)
	u.sweep(t)
	u.rows(t, 0)
}

// Events of an install whose clock is fast are not kept longer than other events.
func (u *usage) cameEarly(t *testing.T) {
	u.ingest(t, "a", u.events(3, -20*time.Hour), telemetry.Receipt{Accepted: 3})
	u.clock.pass(telemetry.Kept - time.Hour)
	u.sweep(t)
	u.rows(t, 0)
}

func (u *usage) inParts(t *testing.T) {
	const batches = 30
	for range batches {
		u.ingest(t, "a", u.events(wire.MaxBatch, time.Hour), telemetry.Receipt{Accepted: wire.MaxBatch})
	}
	u.ingest(t, "b", u.events(3, time.Hour), telemetry.Receipt{Accepted: 3})
	u.purged(t, "a", batches*wire.MaxBatch)
	u.rows(t, 3)
}

func (u *usage) dayIsFull(t *testing.T) {
	for range telemetry.MaxOfDay/wire.MaxBatch - 1 {
		u.ingest(t, "a", u.events(wire.MaxBatch, 48*time.Hour), telemetry.Receipt{Accepted: wire.MaxBatch})
	}
	again := u.events(150, 48*time.Hour)
	u.ingest(t, "a", again, telemetry.Receipt{Accepted: 150})
	// Duplicates need no space, but the quota check does not look for duplicates.
	u.ingest(t, "a", again, telemetry.Receipt{Accepted: 0, Duplicates: 50, Rejected: 100})
	u.ingest(t, "a", u.events(50, 48*time.Hour), telemetry.Receipt{Accepted: 50})
	u.Service = telemetry.New(telemetry.Options{Store: u.store.telemetryStore, Hasher: hash,
		Now: u.clock.now}) // another process
	u.ingest(t, "a", u.events(10, 48*time.Hour), telemetry.Receipt{Rejected: 10})
	u.ingest(t, "a", append(u.events(10, 48*time.Hour), u.events(10, time.Hour)...), telemetry.Receipt{Accepted: 10,
		Rejected: 10})
	u.ingest(t, "b", u.events(10, 48*time.Hour), telemetry.Receipt{Accepted: 10})
	u.sweep(t)
	u.ingest(t, "a", u.events(10, 48*time.Hour), telemetry.Receipt{Rejected: 10})
	u.purged(t, "a", telemetry.MaxOfDay+10)
	u.ingest(t, "a", u.events(10, 48*time.Hour), telemetry.Receipt{Accepted: 10})
}

func (u *usage) everythingIsFull(t *testing.T) {
	var log strings.Builder
	fresh := func() {
		u.Service = telemetry.New(telemetry.Options{Store: u.store.telemetryStore, Hasher: hash, Now: u.clock.now,
			MaxRows: 1000,
			Log:     slog.New(slog.NewTextHandler(&log, nil))})
	}
	refused := func() {
		t.Helper()
		if _, err := u.Ingest(t.Context(), "c", u.events(10, time.Hour)); !errors.Is(err, telemetry.ErrFull) {
			t.Errorf("got %v, want %v", err, telemetry.ErrFull)
		}
	}
	fresh()
	for i := range 5 {
		u.ingest(t, fmt.Sprint(i), u.events(200, time.Duration(10-i)*24*time.Hour), telemetry.Receipt{Accepted: 200})
	}
	for range 3 {
		refused()
	}
	if n := strings.Count(log.String(), "telemetry_max_events"); n != 1 {
		t.Errorf("got %d warnings, want 1: %s", n, log.String())
	}
	u.ingest(t, "a", u.events(1, 1000*24*time.Hour), telemetry.Receipt{Rejected: 1}) // too old, so it needs no space
	u.purged(t, "4", 200)
	u.ingest(t, "c", u.events(200, time.Hour), telemetry.Receipt{Accepted: 200})
	u.purged(t, "1", 200)
	u.sweep(t) // 800 events, and 950 with the next ones: enough space
	u.ingest(t, "d", u.events(150, time.Hour), telemetry.Receipt{Accepted: 150})
	u.sweep(t)
	u.rows(t, 950)
	u.ingest(t, "d", u.events(50, time.Hour), telemetry.Receipt{Accepted: 50})
	fresh() // a new process knows the number of events only after a sweep
	u.sweep(t)
	u.rows(t, 900)
	u.ingest(t, "c", u.events(100, time.Hour), telemetry.Receipt{Accepted: 100})
	refused()
	u.purged(t, "0", 100) // the oldest were deleted
	u.purged(t, "3", 200)
}

func (u *usage) endsOfTime(t *testing.T) {
	const day = 24 * time.Hour
	for ago, ok := range map[time.Duration]bool{
		telemetry.Kept - 2*time.Hour: true, telemetry.Kept - time.Hour: false, telemetry.Kept: false, -day: true,
		-day - time.Millisecond: false, 60 * 365 * day: false, -60 * 365 * day: false,
	} {
		want := telemetry.Receipt{Rejected: 1}
		if ok {
			want = telemetry.Receipt{Accepted: 1}
		}
		t.Run(fmt.Sprint(ago), func(t *testing.T) { u.ingest(t, "a", u.events(1, ago), want) })
	}
	u.purged(t, "a", 2)
}
