package relay_test

import (
	"context"
	"testing"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
)

// slowSession is a log from which a session is read only once the test allows it.
type slowSession struct {
	*memory
	asked chan struct{} // receives a value for each read
	gate  chan struct{} // a read returns when it receives a value
}

func (l *slowSession) Session(ctx context.Context, id string) (sessions.Session, error) {
	l.asked <- struct{}{}
	<-l.gate
	return l.memory.Session(ctx, id)
}

// If the hub closes while a peer attaches, it disconnects that peer too, and Serve returns.
func TestServe_EndsPeerThatIsAttaching(t *testing.T) {
	m := newMemory()
	l := &slowSession{memory: m, asked: make(chan struct{}, 2), gate: make(chan struct{}, 2)}
	n := serve(t, m, l, m, relay.Options{})
	l.gate <- struct{}{}
	page, _ := n.page(t, "")
	<-l.asked
	app := n.raw(t)
	app.send("hello", "h1", `{"secret":"right","app":{"name":"Late"}}`)
	<-l.asked
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.end()
	}()
	page.wantClose(websocket.StatusServiceRestart, "restarting") // pages are ended last
	l.gate <- struct{}{}
	app.wantClose(websocket.StatusServiceRestart, "restarting")
	<-ended
}
