package app

import (
	"context"
	"time"
)

// watchInterval is how often the daemon checks whether its directory still exists and whether it is idle.
const watchInterval = time.Second

// removedAfter is how long the program's file must be missing before the daemon stops. Some package managers remove the
// old version before they install the new one.
const removedAfter = 5 * time.Second

// watch stops the daemon when it is idle, when its directory or a socket was deleted, or when its program was deleted
// and this version is no longer needed. After another version was installed, agents that are connected but inactive do
// not keep the daemon running, because service-mcp reconnects to the new version.
func (d *daemon) watch(ctx context.Context, h *instance) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	idle := idleTimer{since: d.now(), limit: d.config.Current().IdleTimeout}
	present := d.now() // when the program's file was last seen
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d.notify.Alive(time.Now()) // always the system clock, which the service manager uses
		if h.isLost() {
			d.end(errDeleted)
			return
		}
		d.level.Set(d.config.Current().LogLevel)
		if !d.program.isDeleted() {
			present = d.now()
		} else if d.now().Sub(present) >= removedAfter {
			if reason := d.endsDeleted(ctx); reason != nil {
				d.end(reason)
				return
			}
		}
		if d.keepsRunning {
			continue
		}
		idle.limit = d.config.Current().IdleTimeout
		replaced := d.program.isReplaced()
		_, total := d.gate.Calls()
		calls := d.control.Calls() + total
		if idle.over(d.now(), calls, d.busy(replaced), func() bool { return d.adaptersBusy(ctx) }) {
			reason := errIdle
			if replaced {
				reason = errUpgrade
			}
			d.end(reason)
			return
		}
	}
}

// endsDeleted returns the reason to stop after the daemon's program was deleted, or nil if the daemon is still needed.
// After a removal it waits for running calls. After an upgrade it waits for the same activity as watch, but not for the
// idle timeout, because this version's adapters can no longer start.
func (d *daemon) endsDeleted(ctx context.Context) error {
	switch {
	case d.program.isGone():
		if !d.working() {
			return errRemoved
		}
	case !d.busy(true) && !d.adaptersBusy(ctx):
		return errUpgrade
	}
	return nil
}

// working reports whether a call is in progress or an unsaved link would be lost.
func (d *daemon) working() bool {
	if _, unsaved := d.accounts.Unsaved(); unsaved {
		return true
	}
	running, _ := d.gate.Calls()
	return running > 0 || d.control.Active() > 0
}

// busy reports whether the daemon is working, a code is being polled, an app is attached, or an agent is connected. If
// replaced is set, it ignores agents.
func (d *daemon) busy(replaced bool) bool {
	return d.working() || d.link.Polling() > 0 || d.sessions.Attached() > 0 || !replaced && d.gate.Clients() > 0
}

// adaptersBusy reports whether the embedded backend needs the daemon for a page, an app or a code.
func (d *daemon) adaptersBusy(ctx context.Context) bool {
	connections, codes := d.host.Activity(ctx)
	return connections+codes > 0
}
