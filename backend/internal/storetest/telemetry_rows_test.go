package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
	"github.com/service-dev/service/test/enginetest"
)

// usageBatch returns a batch whose IDs start with the millisecond, like version 7 UUIDs, and end with these bytes.
func usageBatch(at time.Time, ends ...byte) telemetry.Batch {
	b := telemetry.Batch{Install: 7, ReceivedAt: at.Truncate(time.Hour)}
	for _, end := range ends {
		r := wire.Record{At: at.UnixMilli(), Name: wire.Linked, Fields: []byte("{}"), ID: [16]byte{6: 0x70, 8: 0x80, 15: end}}
		for i := range 6 {
			r.ID[i] = byte(at.UnixMilli() >> (40 - 8*i))
		}
		b.Records = append(b.Records, r)
	}
	return b
}

// No column contains the exact time of an event, because it could be matched with the time of a link.
func TestTelemetry_StoresHoursOnly(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		s := dbtest.OpenAt(t, where)
		t.Cleanup(func() { s.Close() })
		at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
		for i, ends := range [][]byte{{1, 2}, {2, 3}} {
			if n, err := telemetry.NewStore(s).AddTelemetry(t.Context(), usageBatch(at, ends...)); err != nil || n != int64(2-i) {
				t.Fatalf("got %d (error %v), want only the new rows", n, err)
			}
		}
		client := enginetest.Connect(t, where)
		defer client.Close()
		rows, err := client.Query("SELECT id, at, received_at FROM telemetry_events ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		hour := at.Truncate(time.Hour).UnixMilli()
		n := int64(0)
		for ; rows.Next(); n++ {
			var id, happened, came int64
			if err := rows.Scan(&id, &happened, &came); err != nil || uint64(id) != 0x80<<56+uint64(n)+1 || happened != hour ||
				came != hour {
				t.Errorf("got %x at %d, received at %d (error %v), want the next event with both times cut to the hour", id,
					happened, came, err)
			}
		}
		if err := rows.Err(); err != nil || n != 3 {
			t.Errorf("got %d rows (error %v), want 3", n, err)
		}
	})
}

// PostgreSQL aborts one of two transactions that wait for each other. An aborted batch is written again.
func TestTelemetry_SurvivesDeadlock(t *testing.T) {
	where := enginetest.Postgres(t).Database(t)
	s := dbtest.OpenAt(t, where)
	t.Cleanup(func() { s.Close() })
	client := enginetest.Connect(t, where)
	defer client.Close()
	other, err := client.Begin()
	if err != nil {
		t.Fatal(err)
	}
	b := usageBatch(time.Now(), 1, 2)
	const insert = `INSERT INTO telemetry_events (day, install_hash, id, at, received_at, name, fields)
		VALUES ($1, 7, $2, 0, 0, 'x', '{}')`
	add := func(r *wire.Record) error {
		_, err := other.Exec(insert, telemetry.Day(r), telemetry.Key(r))
		return err
	}
	if err := add(&b.Records[1]); err != nil {
		t.Fatal(err)
	}
	added := make(chan error, 1)
	go func() {
		n, err := telemetry.NewStore(s).AddTelemetry(context.WithoutCancel(t.Context()), b)
		if err == nil && n != 2 {
			err = fmt.Errorf("%d kept, want 2", n)
		}
		added <- err
	}()
	dbtest.AwaitLock(t, client)
	_ = add(&b.Records[0]) // PostgreSQL aborts one of the two, possibly this one
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err != nil {
		t.Error(err)
	}
}

// A batch that was not stored is not counted.
func TestTelemetry_CountsNoFailedBatch(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		s := dbtest.OpenAt(t, database(t))
		t.Cleanup(func() { s.Close() })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := telemetry.NewStore(s).AddTelemetry(ctx, usageBatch(time.Now(), 1)); err == nil || n != 0 {
			t.Errorf("got %d (error %v), want no rows and an error", n, err)
		}
	})
}
