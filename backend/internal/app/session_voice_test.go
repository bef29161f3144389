package app

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/backendapi"
)

// talker is an app in a realtime session.
type talker struct {
	t    *testing.T
	conn *websocket.Conn
}

// talk opens a realtime session as a page does. It returns the response of the server if it refuses.
func (w *gatewayWorld) talk(query, token string) (*talker, *http.Response) {
	w.t.Helper()
	conn, res, err := websocket.Dial(w.t.Context(), w.url+"/v1/realtime"+query, &websocket.DialOptions{
		Subprotocols: []string{"realtime", "openai-insecure-api-key." + token}})
	if err != nil {
		if res == nil {
			w.t.Fatal(err)
		}
		return nil, res
	}
	if conn.Subprotocol() != "realtime" {
		w.t.Errorf("the server chose the subprotocol %q", conn.Subprotocol())
	}
	conn.SetReadLimit(8 << 20)
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	return &talker{w.t, conn}, res
}

func (a *talker) send(event string) {
	a.t.Helper()
	if err := a.conn.Write(a.t.Context(), websocket.MessageText, []byte(event)); err != nil {
		a.t.Fatal(err)
	}
}

// heard is what an app received up to an event.
type heard struct {
	item  string // of the last sound
	bytes int    // of sound
	last  map[string]any
}

// until reads events up to one of this type.
func (a *talker) until(last string) (h heard) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	for {
		_, data, err := a.conn.Read(ctx)
		if err != nil {
			a.t.Fatalf("waiting for %s: %v", last, err)
		}
		h.last = nil
		if err := json.Unmarshal(data, &h.last); err != nil {
			a.t.Fatal(err)
		}
		switch h.last["type"] {
		case "response.output_audio.delta":
			pcm, err := base64.StdEncoding.DecodeString(h.last["delta"].(string))
			if err != nil {
				a.t.Fatal(err)
			}
			h.item, h.bytes = h.last["item_id"].(string), h.bytes+len(pcm)
		case last:
			return h
		}
	}
}

// assistantRows waits until a session's event log has a row of this type, and returns the rows about the assistant up
// to it, as type and payload.
func (w *gatewayWorld) assistantRows(id, last string) (rows []string) {
	w.t.Helper()
	for since := int64(0); ; {
		var page backendapi.EventPage
		w.call("GET", fmt.Sprintf("%s/%s/events?since=%d&waitMs=20000", backendapi.PathSessions, id, since), "", &page)
		if len(page.Events) == 0 {
			w.t.Fatalf("the log has no %s after %q", last, rows)
		}
		since = page.Next
		for _, data := range page.Events {
			var e glasses.Event
			if err := json.Unmarshal(data, &e); err != nil {
				w.t.Fatal(err)
			}
			if !strings.HasPrefix(e.Type, "assistant.") {
				continue
			}
			rows = append(rows, e.Type+" "+string(e.Payload))
			if e.Type == last {
				return rows
			}
		}
	}
}

// voiceSession opens a session with a script and returns its id and its app's token.
func (w *gatewayWorld) voiceSession(script string) (id, token string) {
	w.t.Helper()
	var s backendapi.Session
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	path := backendapi.PathSessions + "/" + s.SessionID + backendapi.PathAssistantScript
	if script != "" {
		if status := w.call("POST", path, script, nil); status != http.StatusOK {
			w.t.Fatalf("set script: got status %d, want 200", status)
		}
	}
	_, welcome := attachSession(w.t, w.backendUnderTest, s, "")
	return s.SessionID, welcome.Gateway.Token
}

const (
	sayMilk = `{"type":"conversation.item.create","item":{"type":"message","role":"user",` +
		`"content":[{"type":"input_text","text":"We need milk"}]}}`
	offerTool = `{"type":"session.update","session":{"tools":[{"type":"function","name":"add_item"}]}}`
	askAnswer = `{"type":"response.create"}`
)

// A script speaks at the backend as in a local session, and its rows are in the session's event log. It costs nothing.
func TestSessionVoice_Script(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		id, token := w.voiceSession(milkScript)
		project := w.key
		w.key = token
		if res, body := w.ask("GET", "/v1/realtime?model=assistant", ""); res.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("without a WebSocket: got %d %s, want 426", res.StatusCode, body)
		}
		w.key = project
		a, _ := w.talk("?model=assistant&rate=16000", token)
		if got := a.until("session.created"); !strings.Contains(fmt.Sprint(got.last), "rate:16000") {
			t.Errorf("got session %v, want one at 16000 Hz", got.last)
		}
		a.send(offerTool)
		a.send(sayMilk)
		a.send(askAnswer)
		call := a.until("response.function_call_arguments.done").last
		a.until("response.done")
		a.send(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,`+
			`"output":"added"}}`, call["call_id"]))
		a.send(askAnswer)
		said := a.until("response.done")
		const text = "It is on the list."
		if want := len(text) * 60 * 16 * 2; said.bytes != want {
			t.Errorf("got %d bytes of sound, want %d", said.bytes, want)
		}
		a.send(fmt.Sprintf(`{"type":"conversation.item.truncate","item_id":%q,"content_index":0,"audio_end_ms":300}`,
			said.item))
		a.until("conversation.item.truncated")
		if row := w.last(); row.Model != "script" || row.Source != "script" || row.Kind != "realtime" || row.MicroUSD != 0 {
			t.Errorf("got call %+v, want one by the script at no charge", row)
		}
		if err := a.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
		want := []string{
			`assistant.started {"model":"script","sampleRate":16000}`,
			`assistant.heard {"text":"We need milk","audioMs":0}`,
			`assistant.tool_called {"name":"add_item","arguments":{"item":"milk"}}`,
			`assistant.said {"text":"It is on the list.","afterMs":0,"audioMs":1080}`,
			`assistant.interrupted {"playedMs":300,"audioMs":1080}`,
			`assistant.ended {"reason":"closed"}`,
		}
		if rows := w.assistantRows(id, glasses.RowAssistantEnded); !slices.Equal(rows, want) {
			t.Errorf("got rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A script's conversations have the limits and endings of others.
func TestSessionVoice_ScriptLimits(t *testing.T) {
	w := startGateway(t)
	id, token := w.voiceSession(milkScript)
	for query, code := range map[string]string{"?rate=8000": "invalid_value", "?model=unknown": "not_configured"} {
		if _, res := w.talk(query, token); res.Header.Get("X-Service-Reason") != code {
			t.Errorf("%s: got %v, want %s", query, res.Header, code)
		}
	}
	a, _ := w.talk("", token)
	b, _ := w.talk("?model=script", token)
	if _, res := w.talk("", token); res.Header.Get("X-Service-Reason") != "too_many_calls" {
		t.Errorf("a third conversation: got %d %v, want too_many_calls", res.StatusCode, res.Header)
	}
	if err := b.conn.Write(t.Context(), websocket.MessageBinary, []byte{1}); err != nil {
		t.Fatal(err)
	}
	if e := b.until("error").last; !strings.Contains(fmt.Sprint(e), "binary frames") {
		t.Errorf("a binary frame: got %v", e)
	}
	w.call("DELETE", backendapi.PathSessions+"/"+id, "", nil)
	for _, one := range []*talker{a, b} {
		for {
			_, _, err := one.conn.Read(t.Context())
			if err == nil {
				continue
			}
			if websocket.CloseStatus(err) != 4401 {
				t.Errorf("after the end of the session: got %v, want 4401", err)
			}
			break
		}
	}
}
