package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// awayLog is a log whose store is unavailable for a given number of write attempts.
type awayLog struct {
	*memory
	left  atomic.Int64
	tried chan struct{} // receives a value for each write attempt
}

func (l *awayLog) AppendEvents(ctx context.Context, rows []sessions.Row, q sessions.Quota) error {
	select {
	case l.tried <- struct{}{}:
	default:
	}
	if l.left.Add(-1) >= 0 {
		return fmt.Errorf("%w: %w", sessions.ErrUnavailable, errors.New("connection refused"))
	}
	return l.memory.AppendEvents(ctx, rows, q)
}

// No row is lost if the store is unavailable for long. This matters most for the service's own rows, which no peer
// sends again.
func TestWriter_KeepsRowsWhileStoreIsUnavailable(t *testing.T) {
	m := newMemory()
	l := &awayLog{memory: m, tried: make(chan struct{}, 1)}
	n := serve(t, m, l, m, relay.Options{RetryPause: time.Millisecond})
	page, _ := n.page(t, "")
	page.want("role", nil)
	l.left.Store(20)
	n.Switched(t.Context(), testID, "even_g1")
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	page.wantID("ack", "p1", nil)
	rows, _ := m.SessionEvents(t.Context(), testID, 0, 100)
	own := 0
	for _, e := range rows {
		if e.Type == glasses.TypeDevice && e.Sender == glasses.SenderService {
			own++
		}
	}
	if own != 1 {
		t.Errorf("got %d rows of the service about the other glasses, want 1: %+v", own, rows)
	}
}

// A peer that attaches while the store is unavailable is refused immediately, and accepted later.
func TestHub_RefusesPeersWhileStoreIsUnavailable(t *testing.T) {
	m := newMemory()
	l := &awayLog{memory: m, tried: make(chan struct{}, 1)}
	n := serve(t, m, l, m, relay.Options{RetryPause: time.Millisecond})
	page, _ := n.page(t, "")
	page.want("role", nil)
	l.left.Store(1 << 40)
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	for range 10 {
		<-l.tried
	}
	late := n.raw(t)
	late.send("hello", "h1", `{"secret":"right","app":{"name":"Late"}}`)
	late.wantClose(websocket.StatusInternalError, "try again")
	l.left.Store(0)
	page.wantID("ack", "p1", nil)
	n.app(t, "")
}

// Close returns even if the store is unavailable.
func TestServe_ReturnsWithoutStore(t *testing.T) {
	m := newMemory()
	l := &awayLog{memory: m, tried: make(chan struct{}, 1)}
	n := serve(t, m, l, m, relay.Options{RetryPause: time.Millisecond})
	page, _ := n.page(t, "")
	page.want("role", nil)
	l.left.Store(1 << 40)
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	<-l.tried
	begun := time.Now()
	n.stop()
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("Close took %v, want at most 20 s", took)
	}
}
