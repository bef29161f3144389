package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
)

// Pauses between attempts to attach glasses whose adapter does not start.
const (
	attachPause    = 100 * time.Millisecond
	maxAttachPause = 5 * time.Second
	attachWait     = 20 * time.Second
)

// wear keeps a pair of glasses attached: it takes up a new one when the adapter dies, as they were.
func (r *room) wear(ctx context.Context) {
	pause := attachPause
	for ctx.Err() == nil {
		g, err := r.attach(ctx)
		if err != nil {
			r.mu.Lock()
			r.refused = err
			close(r.tried)
			r.tried = make(chan struct{})
			r.mu.Unlock()
			r.l.log.Warn("attaching glasses", "session", r.id, "err", err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, maxAttachPause)
			continue
		}
		pause = attachPause
		err = r.listen(ctx, g)
		_ = g.Close()
		r.detached(ctx, err)
	}
}

func (r *room) attach(ctx context.Context) (backend.Glasses, error) {
	r.mu.Lock()
	open := backend.TransportOpen{
		SessionID: r.id, DeviceModel: r.meta.Snapshot.DeviceModel, Virtual: r.virtual(), NowMs: r.clock(), FixturesDir: r.fixtures(),
	}
	if r.meta.Attached > 0 {
		snapshot := r.meta.Snapshot
		open.Snapshot = &snapshot
	}
	r.mu.Unlock()
	wait, cancel := context.WithTimeout(ctx, attachWait)
	defer cancel()
	g, err := r.l.transports.Attach(wait, localSim, open)
	switch { // both are ours, and no caller's: nobody cancelled a call
	case errors.Is(err, context.DeadlineExceeded):
		err = notConnected("the simulated glasses did not start in time")
	case err != nil && ctx.Err() != nil:
		err = notConnected("the session begins anew")
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.glasses, r.refused = g, nil
	r.meta.Attached++
	close(r.ready)
	r.publish(r.frame(glasses.TypeLink, r.askID("link"), glasses.LinkState{State: r.link()}))
	r.note(glasses.RowGlassesAttached, struct{}{})
	return g, nil
}

// link is what apps are told of the glasses' link. mu is held.
func (r *room) link() string {
	if r.glasses == nil {
		return glasses.LinkDisconnected
	}
	return r.meta.Snapshot.State.Link
}

// listen takes the glasses' frames until their stream ends.
func (r *room) listen(ctx context.Context, g backend.Glasses) error {
	for {
		data, binary, err := g.Receive(ctx)
		if err != nil {
			return err
		}
		r.heard(data, binary)
	}
}

// detached notes that the glasses are gone and answers who waits for them.
func (r *room) detached(ctx context.Context, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.glasses, r.ready = nil, make(chan struct{})
	for id, answer := range r.controls {
		close(answer)
		delete(r.controls, id)
	}
	r.countAll()
	if ctx.Err() == nil {
		r.l.log.Warn("glasses are gone", "session", r.id, "err", why)
	}
	r.failPending(glasses.CodeNotConnected, "the glasses are gone")
	r.publish(r.frame(glasses.TypeLink, r.askID("link"), glasses.LinkState{State: r.link()}))
	r.note(glasses.RowGlassesDetached, struct{}{})
}

// askID names a frame of the service. mu is held.
func (r *room) askID(what string) string {
	r.asked++
	return fmt.Sprintf("%s-%d", what, r.asked)
}

// worn waits until glasses are attached; a problem of their adapter ends the waiting.
func (r *room) worn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attachWait)
	defer cancel()
	for {
		r.mu.Lock()
		ready, tried, refused := r.ready, r.tried, r.refused
		r.mu.Unlock()
		if refused != nil {
			return refused
		}
		select {
		case <-ready:
			return nil
		case <-tried:
		case <-r.l.life.Done():
			return notConnected("the daemon is stopping")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return notConnected("the simulated glasses did not start in time")
			}
			return context.Cause(ctx)
		}
	}
}

func notConnected(message string) error {
	return &backend.Problem{
		Code: backend.CodeNotConnected, Message: message, Retryable: true,
		FixHint: "repeat the call in a moment; if it stays so, `servicectl doctor` and `servicectl daemon logs` say why",
	}
}
