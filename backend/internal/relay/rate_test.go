package relay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
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

// Frames that are refused or ignored count too: they take as long to read as others.
func TestRateLimit_CountsRefusedFrames(t *testing.T) {
	const rate, burst, frames = 50, 20, 60
	for name, send := range map[string]func(app *peer){
		"binary":  func(app *peer) { app.blob([]byte("noise")) },
		"motion":  func(app *peer) { app.send(glasses.TypeMotion, "m1", `{}`) },
		"barrier": func(app *peer) { app.send(glasses.TypeBarrier, "b1", `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, newMemory(), relay.Options{FrameRate: rate, FrameBurst: burst})
			begun := time.Now()
			app, _ := n.app(t, "")
			for range frames {
				send(app)
			}
			app.send("com.example.last", "last", `{}`)
			app.wantID("ack", "last", nil)
			if took, least := time.Since(begun), time.Second*(frames-burst)/rate; took < least {
				t.Errorf("%d frames took %v, want at least %v", frames, took, least)
			}
		})
	}
}
