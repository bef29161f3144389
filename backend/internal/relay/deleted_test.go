package relay_test

import (
	"testing"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
)

// A session that was deleted with its project is not created again. The single writer must not keep retrying its last
// row, because that would block every other session.
func TestWriter_SkipsRowOfDeletedSession(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{})
	page, _ := n.page(t, "")
	page.wantRow("glasses.attached")
	m.mu.Lock()
	m.refuse = sessions.ErrNotFound
	m.mu.Unlock()
	page.send("input", "p1", `{"kind":"tap","x":1,"y":1}`)
	page.wantClose(websocket.StatusInternalError, "")
}
