package db_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

// The database keeps the first server's key, even if several servers start at the same time.
func TestKeepKey_FirstKeyWins(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		s := dbtest.OpenAt(t, database(t))
		t.Cleanup(func() { s.Close() })
		if err := s.CheckKey(t.Context(), "any"); err != nil {
			t.Errorf("a new database rejected a key: %v", err)
		}
		var wg sync.WaitGroup
		errs := make(chan error, 10)
		for i := range cap(errs) {
			wg.Go(func() { errs <- s.KeepKey(t.Context(), []string{"one", "two"}[i%2]) })
		}
		wg.Wait()
		close(errs)
		kept := 0
		for err := range errs {
			if err == nil {
				kept++
			} else if !errors.Is(err, db.ErrOtherKey) {
				t.Error(err)
			}
		}
		if kept != 5 {
			t.Errorf("%d of five servers with the same key started, want all", kept)
		}
		events := func(want int64) {
			t.Helper()
			if n, err := telemetry.NewStore(s).TelemetryRows(t.Context()); err != nil || n != want {
				t.Errorf("%d events (error %v), want %d", n, err, want)
			}
		}
		use := telemetry.Batch{Install: 1, ReceivedAt: time.Now(), Records: []wire.Record{{At: time.Now().UnixMilli(),
			Name: wire.Linked, Fields: []byte("{}")}}}
		if _, err := telemetry.NewStore(s).AddTelemetry(t.Context(), use); err != nil {
			t.Fatal(err)
		}
		events(1)
		if changed, err := s.ReplaceKey(t.Context(), "three"); err != nil || !changed {
			t.Errorf("got %v (error %v), want a changed key", changed, err)
		}
		events(0) // their installs could no longer request their deletion
		if _, err := telemetry.NewStore(s).AddTelemetry(t.Context(), use); err != nil {
			t.Fatal(err)
		}
		if changed, err := s.ReplaceKey(t.Context(), "three"); err != nil || changed {
			t.Errorf("the same key again: got %v (error %v), want no change", changed, err)
		}
		events(1)
		if err := s.CheckKey(t.Context(), "one"); !errors.Is(err, db.ErrOtherKey) {
			t.Errorf("the former key: got %v, want ErrOtherKey", err)
		}
		if err := s.KeepKey(t.Context(), "three"); err != nil {
			t.Error(err)
		}
	})
}
