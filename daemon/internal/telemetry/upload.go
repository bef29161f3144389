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
	cancel   context.CancelFunc // of the try that is under way
	last     string             // what became of the last try; empty when it was taken
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

// flush sends batches until nothing waits or one is not taken.
func (r *Recorder) flush(ctx context.Context) error {
	for {
		more, err := r.send(ctx)
		if err != nil || !more || ctx.Err() != nil {
			return err
		}
	}
}

// send makes one try with the oldest batch; more tells that it was taken and that others may wait. The person's
// switches are looked at here again: what was spooled may have to stay, or to go.
func (r *Recorder) send(ctx context.Context) (more bool, err error) {
	r.upload.sending.Lock()
	defer r.upload.sending.Unlock()
	if allowed, by := r.Gate(caller.Caller{}); !allowed {
		if by == ByConsent {
			_, err := r.spool.clear()
			return false, err
		}
		return false, nil
	}
	load, err := r.spool.next()
	if err != nil || len(load.names) == 0 {
		return false, err
	}
	if len(load.Events) == 0 { // nothing of it could be read
		return true, r.spool.drop(load, func(*tallied) {})
	}
	receipt, err := r.attempt(ctx, load)
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

// attempt hands a batch over. It can be cut short by Decided and Purge.
func (r *Recorder) attempt(ctx context.Context, l load) (backend.TelemetryReceipt, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadWait)
	defer cancel()
	r.upload.set(cancel)
	defer r.upload.set(nil)
	target, err := r.target()
	if err != nil {
		return backend.TelemetryReceipt{}, err
	}
	body, err := json.Marshal(l.Batch)
	if err != nil {
		return backend.TelemetryReceipt{}, err
	}
	if len(body) > telemetry.MaxBody { // lines of ours never are; nobody would take it
		return backend.TelemetryReceipt{}, &backend.Problem{HTTPStatus: http.StatusRequestEntityTooLarge, Message: "the batch is too large"}
	}
	return r.o.Uploader.UploadTelemetry(ctx, target, body)
}

func (u *upload) set(cancel context.CancelFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancel = cancel
}

// target is the daemon's own backend, as the anonymous install.
func (r *Recorder) target() (backend.Target, error) {
	own, err := r.o.Backend(caller.Caller{})
	return backend.Target{BaseURL: own.URL, InstallID: r.o.InstallID}, err
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

// Decided is told after the person's decision was stored. A no ends the upload that is under way and empties the spool.
func (r *Recorder) Decided(state consent.State) error {
	if state != consent.Declined {
		return nil
	}
	return r.alone(func() error {
		_, err := r.spool.clear()
		return err
	})
}

// alone cuts a try short and acts before the next.
func (r *Recorder) alone(act func() error) error {
	r.upload.mu.Lock()
	if r.upload.cancel != nil {
		r.upload.cancel()
	}
	r.upload.mu.Unlock()
	r.upload.sending.Lock()
	defer r.upload.sending.Unlock()
	return act()
}
