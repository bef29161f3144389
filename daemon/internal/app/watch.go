package app

import (
	"context"
	"time"
)

// watchInterval is how often the daemon checks whether its directory still exists and whether it is idle.
const watchInterval = time.Second

// watch stops the daemon when its directory or a socket was deleted, or when it is idle.
func (d *daemon) watch(ctx context.Context, h *instance) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	idle := idleTimer{since: d.now(), limit: d.config.Current().IdleTimeout}
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
		if d.keepsRunning {
			continue
		}
		idle.limit = d.config.Current().IdleTimeout
		if idle.over(d.now(), d.control.Calls(), d.busy(), func() bool { return d.adaptersBusy(ctx) }) {
			d.end(errIdle)
			return
		}
	}
}

// busy reports whether an agent is connected, a person's call is in progress, a code is being polled, an app is
// attached, or an unsaved link is waiting for disk space and would be lost.
func (d *daemon) busy() bool {
	if _, unsaved := d.accounts.Unsaved(); unsaved {
		return true
	}
	return d.gate.Clients() > 0 || d.control.Active() > 0 || d.link.Polling() > 0 || d.sessions.Attached() > 0
}

// adaptersBusy reports whether pages, apps or codes of the embedded backend need the daemon.
func (d *daemon) adaptersBusy(ctx context.Context) bool {
	connections, codes := d.host.Activity(ctx)
	return connections+codes > 0
}
