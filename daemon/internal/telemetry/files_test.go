package telemetry

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/service-dev/service/proto/telemetry"
)

// An incomplete line loses its own event but not the next one.
func TestTornLineCostsOneEvent(t *testing.T) {
	w := told(t)
	for range 3 {
		w.Record(as(t), telemetry.Linked, nil)
		for _, path := range []string{w.log.path, filepath.Join(w.spool.dir, w.spool.current)} {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.WriteString(`{"id":"019`)
			_ = f.Close()
		}
	}
	w.Record(as(t), telemetry.Linked, nil)
	data, err := os.ReadFile(w.log.path)
	if events, lost := parse(data); err != nil || len(events) != 4 || lost != 3 {
		t.Errorf("the log has %d events and %d torn lines, error %v; want 4 and 3", len(events), lost, err)
	}
	if _, err := w.send(t.Context()); err != nil || len(w.events()) != 4 {
		t.Errorf("%d events were sent, error %v; want 4", len(w.events()), err)
	}
}

// Processes that rotate the same log concurrently lose no generation.
func TestTwoProcessesTurnTheLog(t *testing.T) {
	for range 40 {
		dir := filepath.Join(t.TempDir(), Dir)
		one := newJournal(newLockedDir(dir))
		if err := one.add(line(t)); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(one.path, maxLog+1); err != nil {
			t.Fatal(err)
		}
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			j, event := newJournal(newLockedDir(dir)), line(t)
			all.Go(func() {
				<-begin
				if err := j.add(event); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
		if old, err := os.Stat(one.path + oldSuffix); err != nil || old.Size() != maxLog+1 {
			t.Fatalf("the older generation is %v, error %v; want its full size", old, err)
		}
	}
}

func TestLogIsBoundedAndWhole(t *testing.T) {
	w := newWorld(t)
	w.Record(t.Context(), telemetry.Linked, nil)
	if err := os.Truncate(w.log.path, maxLog+1); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { w.Record(t.Context(), telemetry.Linked, nil) })
	}
	wg.Wait()
	if n := len(logged(t, w)); n != 50 {
		t.Errorf("%d events after the rotation, want 50", n)
	}
	if _, err := os.Stat(w.log.path + oldSuffix); err != nil {
		t.Error(err)
	}
}
