package relay_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// Input from a page or an app of one session, text or binary, never affects another session.
func FuzzHostilePeers(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"type":"display.show","id":"a1","at":1,"payload":{"tree":{"type":"text"}}}`,
		`{"v":1,"type":"result","id":"a1","at":1,"payload":{"ok":true}}`,
		`{"v":1,"type":"device","id":"d","at":1,"payload":{"deviceModel":{"id":"even_g1"}}}`,
		`{"v":1,"type":"link","id":"l","at":1,"payload":{"state":5}}`,
		`{"v":1,"type":"result","id":"ctl-1","at":1,"payload":{}}`, `{"v":1,"type":"sim.state","id":"x","at":1}`, `{`,
		"\x00\x02{}", "\xff\xff", "",
		`{"v":1,"type":"motion","id":"m","at":1,"payload":{}}`, "\x00\x35" +
			`{"v":1,"type":"media","id":"g","at":1,"payload":{"a":1}}` + "body", "\x00\x4b" +
			`{"v":1,"type":"playback.chunk","id":"a","at":1,"payload":{"playback":"a1"}}` + "body",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, asText bool) {
		m := crowd{newMemory()}
		n := serve(t, m, m, m.memory, relay.Options{})
		kind := websocket.MessageBinary
		if asText {
			kind = websocket.MessageText
		}
		good := [2]*peer{n.join(t, "ses_good", true), n.join(t, "ses_good", false)}
		for _, isPage := range []bool{true, false} {
			bad := n.join(t, "ses_bad", isPage)
			for range 2 {
				_ = bad.ws.Write(t.Context(), kind, data)
			}
			_ = bad.ws.Write(t.Context(), websocket.MessageText,
				[]byte(`{"v":1,"type":"com.example.end","id":"fuzz-end","at":1,"payload":{}}`))
			ends(t, bad)
		}
		page, app := good[0], good[1]
		app.send("display.show", "a1", hello)
		page.wantID("display.show", "a1", nil)
		page.send("result", "a1", `{"ok":true}`)
		app.wantID("result", "a1", nil)
	})
}

// join attaches a peer of a session.
func (n *node) join(t *testing.T, id string, isPage bool) *peer {
	t.Helper()
	if isPage {
		p := n.dial(t, "/s/"+id+"/live", map[string][]string{"Origin": {n.url}})
		p.want("welcome", nil)
		return p
	}
	p := n.dial(t, "/api/sessions/"+id+"/app", nil)
	p.send("hello", "h1", `{"secret":"right","app":{"name":"Test app"}}`)
	p.want("welcome", nil)
	return p
}

// ends reads until the hub has handled all input of a hostile peer, or has closed the connection.
func ends(t *testing.T, p *peer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		kind, data, err := p.ws.Read(ctx)
		if ctx.Err() != nil {
			t.Fatal("the hub did not respond to a hostile peer")
		}
		var f glasses.Frame
		if err != nil || kind == websocket.MessageText && json.Unmarshal(data, &f) == nil && f.ID == "fuzz-end" {
			return
		}
	}
}
