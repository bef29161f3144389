package modelapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// converseScript serves a realtime session with the script of the app's session, and reports whether the session has a
// script that answers.
func (a *API) converseScript(w http.ResponseWriter, r *http.Request, who gateway.Caller) bool {
	if who.Session == "" {
		return false
	}
	rate, err := sampleRate(r)
	var c *gateway.ScriptConversation
	if err == nil {
		c, err = a.Gateway.ConverseScript(r.Context(), who, r.URL.Query().Get("model"), rate)
	}
	if err != nil {
		var refusal *gateway.Refusal
		if errors.As(err, &refusal) {
			w.Header().Set(reasonHeader, refusal.Code)
		}
		a.fail(w, r, err)
		return true
	}
	if c == nil {
		return false
	}
	if slices.Contains(websocket.Protocols(r), realtimeProtocol) {
		w.Header().Set("Sec-WebSocket-Protocol", realtimeProtocol)
	}
	app, err := websocket.Accept(w, r, websocket.AnyOrigin) // the token alone authorises the call
	if err != nil {
		c.End() // Accept has sent the response: 426 for a request that asks for no WebSocket
		return true
	}
	c.Serve(app)
	return true
}

// sampleRate returns the rate in the query, in Hz.
func sampleRate(r *http.Request) (int, error) {
	switch given := r.URL.Query().Get("rate"); given {
	case "", "24000":
		return 24000, nil
	case "16000":
		return 16000, nil
	default:
		return 0, gateway.Refuse(problem.CodeInvalidValue,
			fmt.Sprintf("rate is %.20q: it must be 16000 or 24000", given)).At("rate")
	}
}
