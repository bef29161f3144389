package modelapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/host/websocket"
)

// The subprotocols of OpenAI's Realtime API: pages, which cannot set headers, send the key as one of them.
const (
	realtimeProtocol = "realtime"
	tokenProtocol    = "openai-insecure-api-key."
	// reasonHeader repeats the code of a refusal, because clients of WebSockets do not show the body.
	reasonHeader = "X-Service-Reason"
)

// protocolToken returns the key among a WebSocket's subprotocols, or "". Other routes ignore subprotocols.
func protocolToken(r *http.Request) string {
	if r.URL.Path != "/v1"+wire.Realtime.Path() {
		return ""
	}
	for _, p := range websocket.Protocols(r) {
		if token, ok := strings.CutPrefix(p, tokenProtocol); ok {
			return token
		}
	}
	return ""
}

// converse serves a realtime session. It connects to the provider first, so that a refusal has a status. A request that
// asks for no WebSocket learns whether one would be served.
func (a *API) converse(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
	if a.converseScript(w, r, who) {
		return
	}
	rate, err := sampleRate(r)
	model, isProbe := r.URL.Query().Get("model"), !strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	var c *gateway.Conversation
	switch {
	case err != nil:
	case isProbe:
		err = a.Gateway.CanConverse(r.Context(), who, model)
	default:
		c, err = a.Gateway.Converse(r.Context(), who, model, rate)
	}
	if err != nil {
		var refusal *gateway.Refusal
		if errors.As(err, &refusal) {
			w.Header().Set(reasonHeader, refusal.Code)
		}
		a.fail(w, r, err)
		return
	}
	if slices.Contains(websocket.Protocols(r), realtimeProtocol) {
		w.Header().Set("Sec-WebSocket-Protocol", realtimeProtocol)
	}
	app, err := websocket.Accept(w, r, websocket.AnyOrigin) // the key alone authorises the call
	switch {
	case c == nil: // Accept has answered 426
	case err != nil:
		c.End() // Accept has sent the response
	default:
		c.Serve(app)
	}
}
