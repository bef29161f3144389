package telemetry

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/telemetry"
)

func down() error {
	return &problem.Error{Code: problem.CodeBackendUnreachable, Message: "the backend cannot be reached", Retryable: true}
}

// serve runs the uploader until the returned function is called.
func serve(t *testing.T, w *world) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	w.Started()
	go func() { done <- w.Serve(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// No events are sent before the notice was shown. After that, all spooled events are sent.
func TestEventsWaitForTheNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := serve(t, w)
		w.Record(as(t), telemetry.Linked, nil)
		time.Sleep(time.Hour)
		if len(w.batches) != 0 {
			t.Fatal("events were uploaded before the notice was shown")
		}
		_, done, _ := w.Take(shell())
		done(true)
		time.Sleep(flushEvery)
		synctest.Wait()
		if len(w.events()) != 2 || w.events()[0].Name != telemetry.InstallStarted {
			t.Fatalf("uploaded %v", w.events())
		}
		if s := w.Status(shell()); s.Waiting != 0 || s.Uploaded != 2 || s.UploadedAt.IsZero() || s.LastError != "" ||
			!s.Next.IsZero() {
			t.Errorf("%+v", s)
		}
		stop()
	})
}

// A complete batch is sent without waiting for the minute, and the rest is sent when the daemon stops.
func TestFullBatchAndDrainAreUploadedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := told(t)
		stop := serve(t, w)
		for range telemetry.MaxBatch {
			w.Record(as(t), telemetry.Linked, nil)
		}
		synctest.Wait()
		if len(w.batches) < 1 || len(w.batches[0].Events) != telemetry.MaxBatch {
			t.Fatalf("%d batches, want the first one full", len(w.batches))
		}
		w.Record(as(t), telemetry.Linked, nil)
		stop()
		if n := len(w.events()); n != telemetry.MaxBatch+2 { // including install.started
			t.Errorf("%d events were sent, want a full batch and two more", n)
		}
	})
}

// A backend that is down is retried less and less often. Spooled events survive a restart of the daemon and are sent
// once the backend is up again.
func TestBackendThatIsDownIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := told(t)
		w.refuse = down()
		stop := serve(t, w)
		w.Record(as(t), telemetry.Linked, nil)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if tries := len(w.batches); tries < 10 || tries > 40 {
			t.Errorf("%d attempts in two hours, want 10 to 40", tries)
		}
		if s := w.Status(shell()); s.Waiting != 2 || s.LastError == "" || s.Next.IsZero() {
			t.Errorf("%+v", s)
		}
		first := w.batches[0].Events[0].ID
		stop()
		w.refuse, w.batches = nil, nil
		w.Recorder = w.again()
		stop = serve(t, w)
		time.Sleep(flushEvery)
		synctest.Wait()
		if events := w.events(); len(events) != 2 || events[0].ID != first {
			t.Errorf("%v", events)
		}
		stop()
	})
}

// A batch that was accepted but cannot be deleted is not sent again and does not block newer ones. Status reports it
// until it is deleted.
func TestSentBatchThatCannotBeDeletedIsSentOnce(t *testing.T) {
	w := told(t)
	w.Record(as(t), telemetry.Linked, nil)
	stuck(w.spool, sentMark)
	w.plan(w.flush(t.Context()))
	w.Record(as(t), telemetry.ToolCalled, map[string]any{"tool": "whoAmI"})
	w.spool.unlink = os.Remove
	stuck(w.spool, w.spoolNames(t)[0])
	for range 2 {
		w.plan(w.flush(t.Context()))
		if s := w.Status(shell()); len(w.batches) != 2 || w.events()[len(w.events())-1].Name != telemetry.ToolCalled ||
			s.Dropped != 0 || !strings.Contains(s.LastError, "permission") {
			t.Fatalf("%d batches, status %+v; want the second batch sent", len(w.batches), s)
		}
	}
	w.spool.unlink = os.Remove
	w.plan(w.flush(t.Context()))
	if s := w.Status(shell()); len(w.batches) != 2 || s.Waiting != 0 || s.LastError != "" {
		t.Errorf("%d batches, status %+v; want the segment deleted", len(w.batches), s)
	}
}

func (w *world) spoolNames(t *testing.T) (names []string) {
	t.Helper()
	segments, _, err := w.spool.segments()
	if err != nil || len(segments) == 0 {
		t.Fatalf("%d segments, error %v; want at least one", len(segments), err)
	}
	for _, seg := range segments {
		names = append(names, seg.name)
	}
	return names
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		failures int
		jitter   float64
		err      error
		want     time.Duration
	}{
		{1, 0, down(), time.Second},
		{2, 0.5, down(), 3 * time.Second},
		{11, 0, down(), maxBackoff / 2},
		{1000, 0.999999999, down(), maxBackoff - 1},
		{1, 0, &problem.Error{RetryAfter: 90 * time.Second}, 90 * time.Second},
		{1, 0, &problem.Error{RetryAfter: 1 << 60}, maxRetryAfter},
	} {
		if got := backoff(c.failures, c.jitter, c.err); (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A batch that the backend rejects permanently is dropped, and the next one reports the number of lost events.
func TestRefusedBatchIsDroppedAndCounted(t *testing.T) {
	w := told(t)
	for status, dropped := range map[int]bool{400: true, 404: true, 413: true, 408: false, 429: false, 500: false,
		503: false, 0: false} {
		w.refuse = &problem.Error{HTTPStatus: status}
		w.Record(as(t), telemetry.Linked, nil)
		_, err := w.send(t.Context())
		if s := w.Status(shell()); (s.Waiting == 0) != dropped || (s.Dropped > 0) != dropped || (err == nil) != dropped {
			t.Errorf("%d: %+v, %v", status, s, err)
		}
		if _, err := w.spool.clear(); err != nil {
			t.Fatal(err)
		}
	}
	w.refuse = &problem.Error{HTTPStatus: 400}
	w.Record(as(t), telemetry.Linked, nil)
	_, _ = w.send(t.Context())
	w.refuse = nil
	w.Record(as(t), telemetry.Linked, nil)
	_, _ = w.send(t.Context())
	if last := w.batches[len(w.batches)-1]; last.Dropped != 1 || w.Status(shell()).Dropped != 0 {
		t.Errorf("dropped %d", last.Dropped)
	}
}

// Declining cancels an upload and empties the spool, and no further request is made.
func TestDecliningEndsItAtOnce(t *testing.T) {
	w := told(t)
	w.entered = make(chan struct{})
	w.Record(as(t), telemetry.Linked, nil)
	sent := make(chan error, 1)
	go func() { _, err := w.send(t.Context()); sent <- err }()
	<-w.entered
	if err := w.consent.Set(consent.Declined); err != nil {
		t.Fatal(err)
	}
	w.Decided(consent.Declined)
	// An interruption by the daemon itself is not a failure.
	if err := <-sent; err != nil {
		t.Error(err)
	}
	w.entered = nil
	_, _ = w.send(t.Context())
	if s := w.Status(shell()); s.Waiting != 0 || len(w.batches) != 0 {
		t.Errorf("status %+v, %d requests; want an empty spool and none", s, len(w.batches))
	}
	// A decision that another program wrote to the file counts as well.
	_ = w.consent.Set(consent.Unset)
	w.Record(as(t), telemetry.Linked, nil)
	_ = w.consent.Set(consent.Declined)
	_, _ = w.send(t.Context())
	if s := w.Status(shell()); s.Waiting != 0 || len(w.batches) != 0 {
		t.Errorf("status %+v, %d requests; want an empty spool and none", s, len(w.batches))
	}
}
