package relay_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
)

// oftenChecked checks sessions often, and waits long for answers to pings, because a loaded machine answers late.
var oftenChecked = relay.Options{
	PingEvery: 20 * time.Millisecond, BeatEvery: 20 * time.Millisecond, PongWait: time.Minute,
}

// Another process, such as the operator's revoke command or another backend, can only change the database. The hub
// must notice that.
func TestHub_EndsPeersOfSessionClosedElsewhere(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, oftenChecked)
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	var wg sync.WaitGroup
	for _, p := range []*peer{page, app} { // concurrently, because a peer that does not read answers no ping
		wg.Go(func() {
			if err := p.ending(); websocket.CloseStatus(err) != 4410 {
				t.Errorf("closed with %v, want code 4410", err)
			}
		})
	}
	m.close()
	wg.Wait()
}

func TestHub_KeepsPeersOfUnreadableSession(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, oftenChecked)
	page, _ := n.page(t, "")
	m.mu.Lock()
	m.away = errors.New("store away")
	m.mu.Unlock()
	for range 3 {
		page.want("beat", nil)
	}
}

func TestHub_EndsSignedOutPage(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, oftenChecked)
	page, _ := n.page(t, "")
	page.want("beat", nil)
	m.signedOut.Store(true)
	page.wantClose(4401, "sign in")
	app, _ := n.app(t, "") // the session continues
	app.send("com.example.thing", "c1", `{}`)
	app.wantID("ack", "c1", nil)
}

// If a link is revoked in this process, its sessions end immediately, without waiting for the next round of checks.
func TestEnded_EndsPeersOfLink(t *testing.T) {
	m := newMemory()
	n := startNode(t, m, relay.Options{PingEvery: time.Hour, BeatEvery: 20 * time.Millisecond})
	page, _ := n.page(t, "")
	app, _ := n.app(t, "")
	m.close()
	for range 3 { // several rounds of maintenance, none of which is due to check
		page.want("beat", nil)
	}
	n.Ended("ada", "link-1")
	n.Ended("ada", "")
	page.wantClose(4410, "over")
	app.wantClose(4410, "over")
}

// A peer that answers no ping is gone, regardless of what is sent to it.
func TestPing_DropsSilentPeers(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{
		PingEvery: 200 * time.Millisecond, BeatEvery: 50 * time.Millisecond, // a heartbeat in each round
	})
	n.page(t, "") // neither reads, so neither answers
	n.app(t, "")
	for end := time.Now().Add(patience); n.Connections() > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d peers are still attached", n.Connections())
		}
		runtime.Gosched()
	}
}
