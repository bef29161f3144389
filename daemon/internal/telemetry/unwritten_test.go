package telemetry

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/proto/telemetry"
)

// If events cannot be written, the daemon's log gets one line per minute with the number of lost events.
func TestUnwrittenEventsAreOneWarning(t *testing.T) {
	w := told(t)
	if err := os.RemoveAll(filepath.Join(w.dir, Dir)); err != nil {
		t.Fatal(err)
	}
	// A file is at the directory's path, so that neither the log nor the spool can be created.
	if err := os.WriteFile(filepath.Join(w.dir, Dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	at := time.Now()
	o := w.o
	o.Log, o.Now = slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return at }
	r := New(o)
	for range 50 {
		r.Record(as(t), telemetry.Linked, nil)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("50 events caused %d lines, want 1:\n%s", n, log.String())
	}
	log.Reset()
	at = at.Add(warnEvery)
	r.Record(as(t), telemetry.Linked, nil)
	if !strings.Contains(log.String(), "leftOut=49") {
		t.Errorf("a minute later the log has %s, want leftOut=49", log.String())
	}
}
