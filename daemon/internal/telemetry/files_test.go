package telemetry

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/service-dev/service/proto/telemetry"
)

// A torn line costs itself and not the event after it.
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
		t.Errorf("the log has %d events and %d torn lines, %v", len(events), lost, err)
	}
	if _, err := w.send(t.Context()); err != nil || len(w.events()) != 4 {
		t.Errorf("%d events were sent, %v", len(w.events()), err)
	}
}

// Processes that turn the same log at once lose no generation.
func TestTwoProcessesTurnTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), Dir)
	one := newJournal(newArea(dir))
	if err := one.add(line(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(one.path, maxLog+1); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		j := newJournal(newArea(dir))
		all.Go(func() {
			if err := j.add(line(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	old, err := os.Stat(one.path + oldSuffix)
	if err != nil || old.Size() != maxLog+1 {
		t.Errorf("the older generation: %v, %v", old, err)
	}
}
