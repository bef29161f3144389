package telemetry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/telemetry"
)

// otherProcess holds the spool's lock until the returned function is called.
func otherProcess(t *testing.T, w *world) (release func()) {
	t.Helper()
	held, let, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		if err := statefile.NewLock(filepath.Join(w.dir, Dir,
			lockName)).Do(func() error { close(held); <-let; return nil }); err != nil {
			t.Error(err)
			close(held)
		}
	}()
	<-held
	return func() { close(let); <-gone }
}

// Consent may be declined after an upload has checked it, while the upload waits for its batch. The upload must not be
// sent then, whether this daemon or another program stored the decision.
func TestNoBetweenGateAndUploadIsObeyed(t *testing.T) {
	for _, ours := range []bool{true, false} {
		w := told(t)
		w.Record(as(t), telemetry.Linked, nil)
		release := otherProcess(t, w)
		var looks atomic.Int32
		asked := make(chan struct{})
		w.looked = func() {
			if looks.Add(1) == 1 {
				close(asked)
			}
		}
		sent, decided := make(chan error, 1), make(chan struct{})
		go func() { _, err := w.send(t.Context()); sent <- err }()
		<-asked
		if err := w.consent.Set(consent.Declined); err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(decided)
			if ours {
				w.Decided(consent.Declined)
			}
		}()
		release()
		// On a slow machine the lock may be released too late.
		if err := <-sent; err != nil && !errors.Is(err, statefile.ErrLocked) {
			t.Error(err)
		}
		<-decided
		if _, err := w.send(t.Context()); err != nil || len(w.batches) != 0 || w.Status(shell()).Waiting != 0 {
			t.Errorf("declined by this daemon %v: %d batches sent, error %v; want none", ours, len(w.batches), err)
		}
	}
}

// Declining takes effect even if the spool is locked at that moment. The next attempt empties the spool and sends
// nothing.
func TestNoCountsWhileTheSpoolIsLocked(t *testing.T) {
	w := told(t)
	w.Record(as(t), telemetry.Linked, nil)
	release := otherProcess(t, w)
	if err := w.consent.Set(consent.Declined); err != nil {
		t.Fatal(err)
	}
	w.Decided(consent.Declined)
	if s := w.Status(shell()); s.Waiting != 1 || !strings.Contains(s.LastError, "another process holds the lock") ||
		!strings.Contains(s.LastError, lockName) {
		t.Errorf("%+v", s)
	}
	release()
	if err := w.flush(t.Context()); err != nil || len(w.batches) != 0 || w.Status(shell()).Waiting != 0 ||
		w.Status(shell()).LastError != "" {
		t.Errorf("%v, %+v", err, w.Status(shell()))
	}
}

// A purge that interrupts an upload does not count as a failure: no error is reported and no back-off begins.
func TestInterruptionIsNoFailure(t *testing.T) {
	w := told(t)
	w.entered = make(chan struct{})
	w.Record(as(t), telemetry.Linked, nil)
	planned := make(chan struct{})
	go func() { w.plan(w.flush(t.Context())); close(planned) }()
	<-w.entered
	if _, err := w.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-planned
	if s := w.Status(shell()); s.LastError != "" || w.failing() {
		t.Errorf("%+v", s)
	}
}

// If the stored decision cannot be read, events are neither uploaded nor deleted from the spool.
func TestUnreadableConsentIsNoDecision(t *testing.T) {
	w := told(t)
	w.Record(as(t), telemetry.Linked, nil)
	if err := os.WriteFile(w.consent.Path(), []byte("perhaps"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.send(t.Context()); err != nil || len(w.batches) != 0 {
		t.Errorf("error %v, %d batches; want none", err, len(w.batches))
	}
	if s := w.Status(shell()); s.Allowed || s.DecidedBy != ByUnreadableConsent || s.Waiting != 1 {
		t.Errorf("%+v", s)
	}
	if err := w.consent.Set(consent.Accepted); err != nil {
		t.Fatal(err)
	}
	if _, err := w.send(t.Context()); err != nil || len(w.events()) != 1 {
		t.Errorf("%v, %v", err, w.events())
	}
}

// Events are sent only to the backend for which they were recorded.
func TestEventsGoToTheirOwnBackend(t *testing.T) {
	w := told(t)
	w.Record(as(t), telemetry.Linked, nil)
	w.backend = "https://next.example"
	w.Record(as(t), telemetry.ToolCalled, map[string]any{"tool": "whoAmI"})
	if err := w.flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if e := w.events(); len(e) != 1 || e[0].Name != telemetry.ToolCalled || w.targets[0].BaseURL != w.backend ||
		w.batches[0].Dropped != 0 {
		t.Errorf("sent %v to %v, want one event to the daemon's backend", e, w.targets)
	}
	if s := w.Status(caller.Caller{}); s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// An unreadable segment loses its own events but does not block others, and status reports it.
func TestUnreadableSegmentsStopNothing(t *testing.T) {
	w := told(t)
	w.Record(as(t), telemetry.Linked, nil)
	if err := os.Truncate(put(t, w.spool, ours, 1, ""), spoolCap+1); err != nil {
		t.Fatal(err)
	}
	none := put(t, w.spool, ours, 2, string(line(t)))
	// Root can still read the segment.
	_ = os.Chmod(none, 0)
	for n, make := range map[int]func(path string) error{
		3: func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		4: func(path string) error { return os.Symlink("/dev/null", path) },
	} {
		if err := make(filepath.Join(w.spool.dir, named(ours, n))); err != nil {
			t.Log(err)
		}
	}
	// A segment that cannot be sealed is kept and skipped as well.
	put(t, w.spool, ours, 5, string(line(t)))
	if err := os.MkdirAll(filepath.Join(w.spool.dir, strings.TrimSuffix(named(ours, 5), segmentEnd)+sentMark+segmentEnd),
		0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events := w.events(); len(events) == 0 || events[len(events)-1].Name != telemetry.Linked {
		t.Errorf("uploaded %v", events)
	}
	if s := w.Status(shell()); s.Waiting != 0 || s.LastError == "" || w.batches[0].Dropped == 0 {
		t.Errorf("status %+v, %d dropped; want an error and lost events", s, w.batches[0].Dropped)
	}
	w.upload1(t)
	if err := w.flush(t.Context()); err != nil || w.Status(shell()).LastError != "" { // the problem is solved
		t.Errorf("%v, %+v", err, w.Status(shell()))
	}
}
