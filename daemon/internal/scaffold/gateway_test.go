package scaffold

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
)

// gateway is an AI gateway whose answers the test writes.
type gateway struct {
	t     *testing.T
	url   string
	calls chan *gatewayCall
	over  chan struct{} // closed when the test ends
}

// gatewayCall is an app's request that is waiting for its answer.
type gatewayCall struct {
	t     *testing.T
	token string
	body  chatRequest
	raw   string
	w     http.ResponseWriter
	gone  <-chan struct{} // closed when the app has disconnected
	ended chan bool       // true: cut the connection
}

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role, Content string
		ToolCallID    string `json:"tool_call_id"`
	} `json:"messages"`
	Tools json.RawMessage `json:"tools"`
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{t: t, calls: make(chan *gatewayCall), over: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(func() {
		close(g.over)
		server.CloseClientConnections()
		server.Close()
	})
	g.url = server.URL + "/v1"
	return g
}

func (g *gateway) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/realtime" { // there is no realtime model
		http.NotFound(w, r)
		return
	}
	data, err := io.ReadAll(r.Body)
	call := &gatewayCall{t: g.t, token: r.Header.Get("Authorization"), raw: string(data), w: w, gone: r.Context().Done(),
		ended: make(chan bool)}
	if err != nil || json.Unmarshal(data, &call.body) != nil || r.URL.Path != "/v1/chat/completions" ||
		r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		g.t.Errorf("%s %s %v: %q", r.Method, r.URL, r.Header, data)
	}
	select {
	case g.calls <- call:
	case <-call.gone:
		return
	}
	select {
	case broken := <-call.ended:
		if broken {
			panic(http.ErrAbortHandler)
		}
	case <-g.over: // not call.gone, because the test may still write after the app disconnects
	}
}

// next returns the next request.
func (g *gateway) next() *gatewayCall {
	g.t.Helper()
	select {
	case call := <-g.calls:
		return call
	case <-time.After(20 * time.Second):
		g.t.Fatal("the app did not call the gateway within 20 s")
		return nil
	}
}

// send sends part of the answer.
func (c *gatewayCall) send(part string) {
	c.t.Helper()
	if _, err := io.WriteString(c.w, part); err != nil {
		c.t.Error(err)
	}
	if err := http.NewResponseController(c.w).Flush(); err != nil {
		c.t.Error(err)
	}
}

// delta sends a chunk with a delta.
func (c *gatewayCall) delta(delta string) {
	c.t.Helper()
	c.send(`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta +
		`,"finish_reason":null}]}` + "\n\n")
}

func (c *gatewayCall) text(text string) {
	c.t.Helper()
	c.delta(fmt.Sprintf(`{"content":%q}`, text))
}

// tool sends a tool call in two parts.
func (c *gatewayCall) tool(index int, name, arguments string) {
	c.t.Helper()
	c.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"call_%d","type":"function",`+
		`"function":{"name":%q,"arguments":""}}]}`, index, index+1, name))
	for _, part := range []string{arguments[:len(arguments)/2], arguments[len(arguments)/2:]} {
		c.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, index, part))
	}
}

// end sends the last chunk of a stream.
func (c *gatewayCall) end() {
	c.t.Helper()
	c.send("data: [DONE]\n\n")
	c.ended <- false
}

// refuse answers with an error response.
func (c *gatewayCall) refuse(status int, code, message, retryAfter string) {
	c.t.Helper()
	if retryAfter != "" {
		c.w.Header().Set("Retry-After", retryAfter)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	c.send(fmt.Sprintf(`{"error":{"message":%q,"type":"api_error","param":null,"code":%q}}`, message, code))
	c.ended <- false
}

const gatewayToken = "sgt_secret_of_the_session"

// startAssistant attaches a probe to a session with an AI gateway.
func startAssistant(t *testing.T, start func(env ...string) *app) (*app, *peer, *gateway) {
	t.Helper()
	g := newGateway(t)
	app, p := startProbeWith(t, start, &glasses.Gateway{URL: g.url, Token: gatewayToken})
	return app, p, g
}
