package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// pinger asks a peer whether it lives, one ping at a time, in a goroutine that exists only while a pong is due.
type pinger struct {
	wg     sync.WaitGroup
	busy   atomic.Bool
	failed atomic.Bool
}

func (p *pinger) start(ctx context.Context, ws *websocket.Conn, wait time.Duration) {
	if !p.busy.CompareAndSwap(false, true) {
		return
	}
	p.wg.Go(func() {
		defer p.busy.Store(false)
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if ws.Ping(ctx) != nil {
			p.failed.Store(true)
			_ = ws.CloseNow() // the reader and the writer see it at once
		}
	})
}
