package appserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
)

// talk opens a conversation. Without header, the token is sent as a subprotocol.
func talk(t *testing.T, g glasses.Gateway, query string, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	o := &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"realtime"}}
	if header == nil {
		o.Subprotocols = append(o.Subprotocols, tokenProtocol+g.Token)
	}
	c, res, err := websocket.Dial(t.Context(), strings.Replace(g.URL, "http", "ws", 1)+"/realtime"+query, o)
	if err == nil {
		t.Cleanup(func() { c.CloseNow() })
		c.SetReadLimit(1 << 20)
	}
	return c, res, err
}

// receive returns the next event of a type.
func receive(t *testing.T, c *websocket.Conn, kind string) map[string]any {
	t.Helper()
	for {
		_, data, err := c.Read(t.Context())
		if err != nil {
			t.Fatalf("waiting for %s: %v", kind, err)
		}
		var e map[string]any
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		if e["type"] == kind {
			return e
		}
	}
}

func tell(t *testing.T, c *websocket.Conn, events ...string) {
	t.Helper()
	for _, e := range events {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(e)); err != nil {
			t.Fatal(err)
		}
	}
}

const milkTurn = `{"type":"conversation.item.create","item":{"type":"message","role":"user",` +
	`"content":[{"type":"input_text","text":"buy milk"}]}}`

func TestRealtime_HoldsConversation(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	g := gateway(t, m, s)
	c, res, err := talk(t, g, "?model=assistant&rate=16000", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := res.Header.Get("Sec-WebSocket-Protocol"); p != "realtime" {
		t.Errorf("subprotocol %q, want realtime", p)
	}
	receive(t, c, "session.created")
	tell(t, c, milkTurn, `{"type":"response.create"}`)
	if said := receive(t, c, "response.output_audio_transcript.done")["transcript"]; said != "It is on the list." {
		t.Errorf("said %q", said)
	}
	receive(t, c, "response.done")
	tell(t, c, `{"type":"conversation.item.create","item":{"type":"message","role":"user",`+
		`"content":[{"type":"input_text","text":"slow"}]}}`, `{"type":"response.create"}`)
	receive(t, c, "response.created")
	tell(t, c, `{"type":"response.cancel"}`)
	if status := receive(t, c, "response.done")["response"].(map[string]any)["status"]; status != "cancelled" {
		t.Errorf("status %v, want cancelled", status)
	}
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("after a binary message: %v, want status %d", err, websocket.StatusMessageTooBig)
	}
}

func TestRealtime_RefusesWhatItCannotServe(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	g := gateway(t, m, s)
	bearer := http.Header{"Authorization": {"Bearer " + g.Token}}
	for _, test := range []struct {
		name, query string
		header      http.Header
		status      int
	}{
		{"no token", "", http.Header{}, 401},
		{"wrong token", "", http.Header{"Authorization": {"Bearer sgt_wrong"}}, 401},
		{"another model", "?model=gpt-realtime", bearer, 404},
		{"another rate", "?rate=8000", bearer, 400},
	} {
		if _, res, err := talk(t, g, test.query, test.header); err == nil || res == nil || res.StatusCode != test.status {
			t.Errorf("%s: %v, want status %d", test.name, err, test.status)
		}
	}
	for range 2 {
		c, _, err := talk(t, g, "", bearer)
		if err != nil {
			t.Fatal(err)
		}
		receive(t, c, "session.created")
	}
	third, _, err := talk(t, g, "", bearer)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := third.Read(t.Context()); websocket.CloseStatus(err) != closeRefused {
		t.Errorf("third conversation: %v, want status %d", err, closeRefused)
	}
}

func TestRealtime_EndsWithItsSession(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	c, _, err := talk(t, gateway(t, m, s), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, c, "session.created")
	if _, err := m.Close(t.Context(), backend.Target{}, s.SessionID); err != nil {
		t.Fatal(err)
	}
	for {
		_, _, err := c.Read(t.Context())
		if err == nil {
			continue
		}
		if websocket.CloseStatus(err) != glasses.CloseSessionOver {
			t.Errorf("%v, want status %d", err, glasses.CloseSessionOver)
		}
		break
	}
}
