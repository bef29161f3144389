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
	"github.com/service-dev/service/proto/telemetry"
)

// When uploads happen.
const (
	flushEvery = time.Minute
	// drainWait bounds the one try at the daemon's end.
	drainWait  = 2 * time.Second
	uploadWait = 30 * time.Second
	minBackoff = time.Second
	maxBackoff = 15 * time.Minute
	// maxPatience bounds what a backend's Retry-After is honoured for.
	maxPatience = 24 * time.Hour
)

// upload is the state of the uploader.
type upload struct {
	// sending is held for one try, so that a decision or an erasure is either before it or after it.
	sending sync.Mutex

	mu       sync.Mutex
	cancel   context.CancelCauseFunc // of the try that is under way
	last     string                  // what became of the last try; empty when it was taken
	odd      string                  // what of the spool could not be read or emptied last; empty when that is over
	fresh    bool                    // odd was told of since the flush began
	next     time.Time
	failures int
}

// Serve uploads what waits: every minute, when a batch is complete, and once more when ctx ends.
func (r *Recorder) Serve(ctx context.Context) error {
	timer := time.NewTimer(r.plan(nil))
	defer timer.Stop()
	for {
		full := r.full
		if r.failing() { // the back-off decides when
			full = nil
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
			defer cancel()
			_, _ = r.send(last) // what was not taken stays in the spool
			return nil
		case <-timer.C:
		case <-full:
		}
		timer.Reset(r.plan(r.flush(ctx)))
	}
}

// flush sends batches until nothing waits or one is not taken. What was odd about the spool before and is not any more
// is forgotten with its end, not earlier: a person is to see it.
func (r *Recorder) flush(ctx context.Context) error {
	r.upload.mu.Lock()
	r.upload.fresh = false
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

// errInterrupted ends a try for a decision or an erasure: nothing went wrong, and nothing is waited for.
var errInterrupted = errors.New("interrupted by a decision of the person")

// send makes one try with the oldest batch; more tells that it was taken and that others may wait. The try can be
// interrupted from its beginning on, so that nothing leaves which a decision that was stored meanwhile forbids.
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

// try looks at the person's switches again: what was spooled may have to stay, or to go.
func (r *Recorder) try(ctx context.Context) (more bool, err error) {
	allowed, by, own := r.gate(caller.Caller{})
	if !allowed {
		if by == ByConsent {
			_, err := r.spool.clear()
			return false, err
		}
		return false, nil
	}
	load, err := r.spool.next(own.URL)
	if load.unread != nil {
		r.strange("reading the telemetry spool", load.unread)
	}
	if err != nil || len(load.names) == 0 {
		return false, err
	}
	if len(load.Events) == 0 { // nothing of it could be read
		return true, r.spool.drop(load, func(*tallied) {})
	}
	receipt, err := r.attempt(ctx, own, load)
	switch {
	case err == nil:
		n := receipt.Accepted + receipt.Duplicates
		return true, r.spool.drop(load, func(c *tallied) {
			c.Dropped, c.UploadedAt, c.Uploaded = max(0, c.Dropped-load.Dropped), r.o.Now().UnixMilli(), n
		})
	case hopeless(err):
		r.o.Log.Warn("the backend does not take a batch of telemetry; it is dropped", "events", len(load.Events), "err", err)
		return true, r.spool.drop(load, func(c *tallied) { c.Dropped += int64(len(load.Events)) })
	}
	return false, err
}

// attempt hands a batch over to the backend that it was loaded for, as the anonymous install. It asks the gate once
// more: reading took its time.
func (r *Recorder) attempt(ctx context.Context, own config.Backend, l load) (backend.TelemetryReceipt, error) {
	body, err := json.Marshal(l.Batch)
	if err != nil {
		return backend.TelemetryReceipt{}, err
	}
	if len(body) > telemetry.MaxBody { // lines of ours never are; nobody would take it
		return backend.TelemetryReceipt{}, &backend.Problem{HTTPStatus: http.StatusRequestEntityTooLarge, Message: "the batch is too large"}
	}
	if err := r.spool.hold(own.URL); err != nil {
		return backend.TelemetryReceipt{}, err
	}
	if allowed, _, now := r.gate(caller.Caller{}); !allowed || now.URL != own.URL {
		return backend.TelemetryReceipt{}, errInterrupted
	}
	ctx, cancel := context.WithTimeout(ctx, uploadWait)
	defer cancel()
	if ctx.Err() != nil {
		return backend.TelemetryReceipt{}, ctx.Err()
	}
	return r.o.Uploader.UploadTelemetry(ctx, backend.Target{BaseURL: own.URL, InstallID: r.o.InstallID}, body)
}

func (u *upload) set(cancel context.CancelCauseFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancel = cancel
}

// settle forgets what was odd about the spool; what is fresh only where all of it is emptied.
func (u *upload) settle(emptied bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if emptied || !u.fresh {
		u.odd = ""
	}
}

// strange keeps for the status, and logs once, what of the spool is not as it should be.
func (r *Recorder) strange(doing string, err error) {
	text := doing + ": " + err.Error()
	r.upload.mu.Lock()
	again := r.upload.odd == text
	r.upload.odd, r.upload.fresh = text, true
	r.upload.mu.Unlock()
	if !again {
		r.o.Log.Warn(doing, "err", err)
	}
}

// hopeless tells a refusal that another try would meet again.
func hopeless(err error) bool {
	var p *backend.Problem
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

// plan notes how a try ended and tells how long to wait for the next.
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

// backoff doubles from a second to a quarter of an hour; the upper half of each step is drawn, so that the installs of
// a backend that was down do not come back at once. A backend that says how long to wait is waited for at least as long.
func backoff(failures int, jitter float64, err error) time.Duration {
	d := maxBackoff
	if failures <= 10 {
		d = min(minBackoff<<failures, maxBackoff)
	}
	d = d/2 + time.Duration(jitter*float64(d/2))
	var p *backend.Problem
	if errors.As(err, &p) {
		d = max(d, min(p.RetryAfter, maxPatience))
	}
	return d
}

// Decided is told after the person's decision was stored. A no ends the upload that is under way and empties the spool;
// where that cannot be done now, the next try does it, which sends nothing either.
func (r *Recorder) Decided(state consent.State) {
	if state != consent.Declined {
		return
	}
	err := r.alone(func() error {
		_, err := r.spool.clear()
		return err
	})
	if err != nil {
		r.strange("emptying the telemetry spool", err)
		return
	}
	r.upload.settle(true)
}

// alone cuts a try short and acts before the next.
func (r *Recorder) alone(act func() error) error {
	r.upload.mu.Lock()
	if r.upload.cancel != nil {
		r.upload.cancel(errInterrupted)
	}
	r.upload.mu.Unlock()
	r.upload.sending.Lock()
	defer r.upload.sending.Unlock()
	return act()
}
