package telemetry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/proto/telemetry"
)

// upload1 records one event and sends it.
func (w *world) upload1(t *testing.T) {
	t.Helper()
	w.Record(as(t), telemetry.Linked, nil)
	if _, err := w.send(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPurge(t *testing.T) {
	w := told(t)
	w.Started()
	w.Record(as(t), telemetry.Linked, nil)
	p, err := w.Purge(t.Context())
	if err != nil || p != (Purged{Local: 2, Waiting: 2, Backend: PurgeErased, Deleted: 7}) {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, Dir, FileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	w.refuse = down()
	w.Record(as(t), telemetry.Linked, nil)
	if p, err = w.Purge(t.Context()); err != nil || p.Backend != PurgeFailed || p.Err == nil || p.Local != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	w.backend = config.EmbeddedURL
	if p, err = w.Purge(t.Context()); err != nil || p.Backend != PurgeNothing || len(w.purged) != 2 {
		t.Errorf("got %+v, error %v; want nothing, because nothing was ever sent", p, err)
	}
}

// A purge asks every backend that received events, even one that is no longer configured, until the backend has erased
// them.
func TestPurgeAsksEveryBackendThatWasSentEvents(t *testing.T) {
	const first, second, third = "https://first.example", "https://second.example", "https://third.example"
	w := told(t)
	for _, url := range []string{first, second} {
		w.backend = url
		w.upload1(t)
	}
	// If the answer is lost, the backend may still have the events.
	w.backend = third
	w.refuse = down()
	w.Record(as(t), telemetry.Linked, nil)
	_, _ = w.send(t.Context())
	w.refuse = nil

	w.backend = config.EmbeddedURL
	// Declining empties the spool. The backends that must erase events stay recorded, even across a restart.
	w.Decided(consent.Declined)
	w.Recorder = w.again()
	w.refuses = map[string]error{first: down()}
	p, err := w.Purge(t.Context())
	if err != nil || p.Backend != PurgeFailed || p.Deleted != 14 || len(w.purged) != 3 {
		t.Fatalf("got %+v, error %v, asked %v; want 14 erased and one failure", p, err, w.purged)
	}
	if why := p.Err.Error(); !strings.Contains(why, first) || strings.Contains(why, second) {
		t.Error(why)
	}
	w.refuses, w.purged = nil, nil
	if p, err = w.Purge(t.Context()); err != nil || p.Backend != PurgeErased || !slices.Equal(w.purged, []string{first}) {
		t.Errorf("got %+v, error %v, asked %v; want the remaining backend erased", p, err, w.purged)
	}
	if p, err = w.Purge(t.Context()); err != nil || p.Backend != PurgeNothing {
		t.Errorf("%+v, %v", p, err)
	}
}

// Once the list of backends that must erase events is full, no events are sent to any other backend, and the error
// says so.
func TestNoBackendHoldsEventsUnremembered(t *testing.T) {
	w := told(t)
	for i := range maxHolders {
		w.backend = ours + string(rune('a'+i))
		w.upload1(t)
	}
	w.backend = "https://another.example"
	w.Record(as(t), telemetry.Linked, nil)
	if _, err := w.send(t.Context()); err == nil || !strings.Contains(err.Error(), "purge") ||
		len(w.batches) != maxHolders {
		t.Errorf("error %v, %d batches; want an error and no batch", err, len(w.batches))
	}
	if p, err := w.Purge(t.Context()); err != nil || p.Backend != PurgeErased || len(w.purged) != maxHolders+1 {
		t.Errorf("%+v, %v", p, err)
	}
	w.upload1(t)
}

// Symbolic links to other directories, and files with other names, are kept.
func TestForeignFilesAreNotErased(t *testing.T) {
	for _, link := range []string{Dir, filepath.Join(Dir, spoolDir)} {
		w := told(t)
		elsewhere := t.TempDir()
		theirs := []string{filepath.Join(elsewhere, named(ours, 1)), filepath.Join(elsewhere, FileName)}
		for _, path := range theirs {
			if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_ = os.Mkdir(filepath.Dir(filepath.Join(w.dir, link)), 0o700)
		if err := os.Symlink(elsewhere, filepath.Join(w.dir, link)); err != nil {
			t.Skip("SKIPPED: ", err)
		}
		if _, err := w.Purge(t.Context()); err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("%s: %v", link, err)
		}
		for _, path := range theirs {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
	}
	w := told(t)
	w.Record(as(t), telemetry.Linked, nil)
	for _, name := range []string{"letters.jsonl", "00000000-0000-4000-8000-000000000000." + markOf(ours) + segmentEnd} {
		if err := os.WriteFile(filepath.Join(w.spool.dir, name), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := w.Purge(t.Context()); err != nil || p.Waiting != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if left, _ := os.ReadDir(w.spool.dir); len(left) != 2 {
		t.Errorf("%v", left)
	}
}
