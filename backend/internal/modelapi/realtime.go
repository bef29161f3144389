package modelapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
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

// converse serves a realtime session. It connects to the provider first, so that a refusal has a status.
func (a *API) converse(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
	if a.converseScript(w, r, who) {
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		a.fail(w, r, gateway.Refuse(problem.CodeWrongAPI, "realtime sessions are WebSockets: connect to this address with one"))
		return
	}
	c, err := a.Gateway.Converse(r.Context(), who, r.URL.Query().Get("model"))
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
	if err != nil {
		c.End() // Accept has sent the response
		return
	}
	c.Serve(app)
}
