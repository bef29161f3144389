package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/telemetry"
)

// Timing of uploads.
const (
	flushEvery = time.Minute
	// drainWait is the time limit of the last upload while the daemon stops.
	drainWait  = 2 * time.Second
	uploadWait = 30 * time.Second
	minBackoff = time.Second
	maxBackoff = 15 * time.Minute
	// maxRetryAfter is the longest Retry-After that the uploader honours.
	maxRetryAfter = 24 * time.Hour
)

// upload is the state of the uploader.
type upload struct {
	// sending is held during an upload, so that a decision or a purge takes effect before or after the upload, but
	// never during it.
	sending sync.Mutex

	mu     sync.Mutex
	cancel context.CancelCauseFunc // cancels the attempt in progress
	last   string                  // the error of the last attempt; empty if the batch was accepted
	// spoolProblem is the last problem with reading or deleting the spool; empty once it is solved.
	spoolProblem string
	isNew        bool // the problem was reported since the flush began
	next         time.Time
	failures     int
}

// Serve uploads spooled events every minute, when a batch is complete, and once more when ctx ends.
func (r *Recorder) Serve(ctx context.Context) error {
	timer := time.NewTimer(r.plan(nil))
	defer timer.Stop()
	for {
		full := r.full
		if r.failing() { // the backoff determines when to try again
			full = nil
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
			defer cancel()
			_, _ = r.send(last) // a batch that is not accepted stays in the spool
			return nil
		case <-timer.C:
		case <-full:
		}
		timer.Reset(r.plan(r.flush(ctx)))
	}
}

// flush sends batches until no batches are left or one fails. It clears solved problems of the spool only at its end,
// so that the user can see them.
func (r *Recorder) flush(ctx context.Context) error {
	r.upload.mu.Lock()
	r.upload.isNew = false
	r.upload.mu.Unlock()
	for {
		more, err := r.send(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if !more {
			r.upload.settle(false)
			return nil
		}
	}
}

// errInterrupted ends an upload because of a decision or a purge. It is not a failure and causes no backoff.
var errInterrupted = errors.New("interrupted by a decision of the user")

// send makes one attempt with the oldest batch. more reports whether the batch was uploaded and further batches may
// follow. The attempt can be interrupted from its start, so that no events are sent after a decision that forbids it.
func (r *Recorder) send(ctx context.Context) (more bool, err error) {
	r.upload.sending.Lock()
	defer r.upload.sending.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.upload.set(cancel)
	defer r.upload.set(nil)
	more, err = r.try(ctx)
	if errors.Is(err, errInterrupted) || errors.Is(context.Cause(ctx), errInterrupted) {
		return false, nil
	}
	return more, err
}

// try makes the attempt. It checks the user's switches again, because spooled events may have to be kept or deleted in
// the meantime.
func (r *Recorder) try(ctx context.Context) (more bool, err error) {
	allowed, by, own := r.gate(caller.Caller{})
	if !allowed {
		if by == ByConsent {
			_, err := r.spool.clear()
			return false, err
		}
		return false, nil
	}
	batch, err := r.spool.next(own.URL)
	if batch.unread != nil {
		r.reportSpoolProblem("failed to read the telemetry spool", batch.unread)
	}
	if err != nil || len(batch.names) == 0 {
		return false, err
	}
	if len(batch.Events) == 0 { // no event could be read
		return true, r.spool.drop(batch, func(*counters) {})
	}
	receipt, err := r.attempt(ctx, own, batch)
	switch {
	case err == nil:
		n := int(receipt.Accepted + receipt.Duplicates)
		return true, r.spool.drop(batch, func(c *counters) {
			c.Dropped, c.UploadedAt, c.Uploaded = max(0, c.Dropped-batch.Dropped), r.o.Now().UnixMilli(), n
		})
	case isRejected(err):
		r.o.Log.Warn("backend rejected a batch of telemetry; it is dropped", "events", len(batch.Events), "err", err)
		return true, r.spool.drop(batch, func(c *counters) { c.Dropped += int64(len(batch.Events)) })
	}
	return false, err
}

// attempt uploads a batch as the anonymous install, to the backend for which the batch was loaded. It checks the gate
// again, because reading the batch took time.
func (r *Recorder) attempt(ctx context.Context, own config.Backend, l batch) (backendapi.TelemetryReceipt, error) {
	body, err := json.Marshal(l.Batch)
	if err != nil {
		return backendapi.TelemetryReceipt{}, err
	}
	if len(body) > telemetry.MaxBody { // impossible with lines written here
		return backendapi.TelemetryReceipt{}, &problem.Error{HTTPStatus: http.StatusRequestEntityTooLarge,
			Message: "the batch is too large"}
	}
	if err := r.spool.hold(own.URL); err != nil {
		return backendapi.TelemetryReceipt{}, err
	}
	if allowed, _, now := r.gate(caller.Caller{}); !allowed || now.URL != own.URL {
		return backendapi.TelemetryReceipt{}, errInterrupted
	}
	ctx, cancel := context.WithTimeout(ctx, uploadWait)
	defer cancel()
	if ctx.Err() != nil {
		return backendapi.TelemetryReceipt{}, ctx.Err()
	}
	return r.o.Uploader.UploadTelemetry(ctx, backend.Target{BaseURL: own.URL, InstallID: r.o.InstallID}, body)
}

func (u *upload) set(cancel context.CancelCauseFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancel = cancel
}

// settle clears the problem with the spool. A problem reported during this flush is cleared only after the spool is
// empty.
func (u *upload) settle(emptied bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if emptied || !u.isNew {
		u.spoolProblem = ""
	}
}

// reportSpoolProblem stores a problem with the spool for the status, and logs it once.
func (r *Recorder) reportSpoolProblem(doing string, err error) {
	text := doing + ": " + err.Error()
	r.upload.mu.Lock()
	again := r.upload.spoolProblem == text
	r.upload.spoolProblem, r.upload.isNew = text, true
	r.upload.mu.Unlock()
	if !again {
		r.o.Log.Warn(doing, "err", err)
	}
}

// isRejected reports whether another attempt would also be rejected.
func isRejected(err error) bool {
	var p *problem.Error
	if !errors.As(err, &p) {
		return false
	}
	s := p.HTTPStatus
	return s >= 400 && s < 500 && s != http.StatusRequestTimeout && s != http.StatusTooManyRequests
}

func (r *Recorder) failing() bool {
	r.upload.mu.Lock()
	defer r.upload.mu.Unlock()
	return r.upload.failures > 0
}

// plan records the outcome of an attempt and returns how long to wait before the next one.
func (r *Recorder) plan(err error) time.Duration {
	u := &r.upload
	u.mu.Lock()
	defer u.mu.Unlock()
	wait := flushEvery
	if err == nil {
		u.failures, u.last = 0, ""
	} else {
		u.failures, u.last = u.failures+1, err.Error()
		wait = backoff(u.failures, r.o.Jitter(), err)
	}
	u.next = r.o.Now().Add(wait)
	return wait
}

// backoff returns how long to wait after failures. The wait doubles from one second up to a quarter of an hour. The
// upper half of each step is random, so that installs do not all retry at the same moment after an outage. backoff
// honours Retry-After.
func backoff(failures int, jitter float64, err error) time.Duration {
	d := maxBackoff
	if failures <= 10 {
		d = min(minBackoff<<failures, maxBackoff)
	}
	d = d/2 + time.Duration(jitter*float64(d/2))
	var p *problem.Error
	if errors.As(err, &p) {
		d = max(d, min(p.RetryAfter, maxRetryAfter))
	}
	return d
}

// Decided applies the user's decision. Call it after the decision was stored. A refusal cancels the upload in progress
// and empties the spool. If emptying fails, the next attempt empties the spool and sends no events.
func (r *Recorder) Decided(state consent.State) {
	if state != consent.Declined {
		return
	}
	err := r.withLock(func() error {
		_, err := r.spool.clear()
		return err
	})
	if err != nil {
		r.reportSpoolProblem("failed to empty the telemetry spool", err)
		return
	}
	r.upload.settle(true)
}

// withLock cancels the upload in progress and runs act before the next one.
func (r *Recorder) withLock(act func() error) error {
	r.upload.mu.Lock()
	if r.upload.cancel != nil {
		r.upload.cancel(errInterrupted)
	}
	r.upload.mu.Unlock()
	r.upload.sending.Lock()
	defer r.upload.sending.Unlock()
	return act()
}
