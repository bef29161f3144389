package relay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
)

// A sender that reconnects repeatedly is no faster than one that stays connected: the burst belongs to the session,
// not to the connection.
func TestRateLimit_OutlivesConnections(t *testing.T) {
	const rate, burst, rounds = 50, 20, 5
	n := startNode(t, newMemory(), relay.Options{FrameRate: rate, FrameBurst: burst})
	begun := time.Now()
	for round := range rounds {
		app, _ := n.app(t, "")
		for i := range burst {
			app.send("com.example.noise", fmt.Sprint(round, "-", i), `{}`)
		}
		for i := range burst {
			app.wantID("ack", fmt.Sprint(round, "-", i), nil)
		}
		_ = app.ws.Close(websocket.StatusNormalClosure, "")
		for n.Connections() > 0 {
			runtime.Gosched()
		}
	}
	if took, least := time.Since(begun), time.Second*burst*(rounds-1)/rate; took < least {
		t.Errorf("%d frames over %d connections took %v, want at least %v", burst*rounds, rounds, took, least)
	}
}
