package app

import (
	"context"
	"time"
)

// look is how often the daemon looks whether its directory is still there and whether it is idle.
const look = time.Second

// watch ends the daemon when its directory or a socket was deleted, or when nobody needs it.
func (p *parts) watch(ctx context.Context, h *hold) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	idle := idleness{since: p.now(), limit: p.config.Current().IdleTimeout}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.notify.Alive(time.Now()) // the service manager's clock, whatever ours says
		if h.lost() {
			p.end(errDeleted)
			return
		}
		p.level.Set(p.config.Current().LogLevel)
		if p.lasts {
			continue
		}
		idle.limit = p.config.Current().IdleTimeout
		if idle.over(p.now(), p.control.Calls(), p.busy(), func() bool { return p.adaptersBusy(ctx) }) {
			p.end(errIdle)
			return
		}
	}
}

// busy tells whether an agent is connected, a person's call is under way, a code is being polled, an app is attached, or
// a link waits for room on the disk and would be lost.
func (p *parts) busy() bool {
	if _, unsaved := p.accounts.Unsaved(); unsaved {
		return true
	}
	return p.gate.Clients() > 0 || p.control.Active() > 0 || p.link.Polling() > 0 || p.sessions.Attached() > 0
}

// adaptersBusy tells whether pages, apps or codes of the embedded backend need the daemon.
func (p *parts) adaptersBusy(ctx context.Context) bool {
	connections, codes := p.backends.Activity(ctx)
	return connections+codes > 0
}
