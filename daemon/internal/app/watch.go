package app

import (
	"context"
	"time"
)

// look is how often the daemon looks whether its directory is still there and whether it is idle.
const look = time.Second

// watch ends the daemon when its directory was deleted (design D5), or when nobody needs it (D8).
func (p *parts) watch(ctx context.Context, h *hold) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	idle := idleness{since: p.now(), limit: p.idleTimeout()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.lost() {
			p.end(errDeleted)
			return
		}
		if p.managed {
			continue
		}
		idle.limit = p.idleTimeout()
		if idle.over(p.now(), p.control.Calls(), p.busy(), func() bool { return p.adaptersBusy(ctx) }) {
			p.end(errIdle)
			return
		}
	}
}

// idleness tells when a daemon has had nothing to do for limit; 0 means never.
type idleness struct {
	since time.Time
	asked time.Time
	calls int64
	limit time.Duration
}

// over takes what is known for free, and adapters, which costs a call and is asked a few times per limit only.
func (i *idleness) over(now time.Time, calls int64, busy bool, adapters func() bool) bool {
	if busy || calls != i.calls {
		i.since, i.calls = now, calls
		return false
	}
	if i.limit <= 0 || now.Sub(i.since) < i.limit/4 {
		return false
	}
	quiet := now.Sub(i.since) >= i.limit
	if !quiet && now.Sub(i.asked) < i.limit/4 {
		return false
	}
	i.asked = now
	if adapters() {
		i.since = now
		return false
	}
	return quiet
}

// busy tells whether an agent is connected, a person's call is under way, or a code is being polled.
func (p *parts) busy() bool {
	return p.gate.Clients() > 0 || p.control.Active() > 0 || p.link.Polling() > 0
}

// adaptersBusy tells whether pages, apps or codes of the embedded backend need the daemon.
func (p *parts) adaptersBusy(ctx context.Context) bool {
	connections, codes := p.backends.Activity(ctx)
	return connections+codes > 0
}
