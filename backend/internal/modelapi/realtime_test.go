package modelapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/gateway"
)

// A page sends its key as a subprotocol and holds a conversation. Its answer is charged.
func TestRealtime_KeyAsSubprotocol(t *testing.T) {
	w := newWorld(t, 0, gateway.Limits{})
	conn, _, err := websocket.Dial(t.Context(), w.url+"/v1/realtime?model=voice", &websocket.DialOptions{
		Subprotocols: []string{"realtime", "openai-insecure-api-key.any"}, HTTPHeader: http.Header{"Origin": {"https://app.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if conn.Subprotocol() != "realtime" {
		t.Errorf("the server chose the subprotocol %q", conn.Subprotocol())
	}
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create"}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_, data, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), `"response.done"`) {
			break
		}
	}
	if row := <-w.purse.rows; row.Kind != "realtime" || row.Model != "voice" || row.TextOut != 3 {
		t.Errorf("counted %+v", row)
	}
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); w.api.Gateway.Running() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the conversation did not end")
		}
	}
}

// Clients of WebSockets do not show the body of a refusal, so that a header has its code.
func TestRealtime_Refused(t *testing.T) {
	w := newWorld(t, 0, gateway.Limits{})
	for model, want := range map[string]string{"good": "wrong_api", "unknown": "model_not_found"} {
		_, res, err := websocket.Dial(t.Context(), w.url+"/v1/realtime?model="+model, &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer any"}}})
		if err == nil || res == nil || res.Header.Get("X-Service-Reason") != want {
			t.Errorf("%s: got %v (%v), want %s", model, res, err, want)
		}
		<-w.purse.rows
	}
}

// A request without Upgrade gets 426 if a WebSocket would be served, and the same refusal as a WebSocket otherwise.
func TestRealtime_WithoutUpgrade(t *testing.T) {
	w := newWorld(t, 0, gateway.Limits{})
	for query, want := range map[string]int{"model=voice": 426, "model=voice&rate=16000": 426, "model=voice&rate=8000": 400,
		"model=good": 400, "model=unknown": 404} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/realtime?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer any")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", query, res.StatusCode, want)
		}
	}
}
