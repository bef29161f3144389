package modelapi

import (
	"errors"
	"fmt"
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
	token, _ := protocolWith(r, tokenProtocol)
	return token
}

// protocolWith returns what follows a prefix in one of a WebSocket's subprotocols.
func protocolWith(r *http.Request, prefix string) (rest string, ok bool) {
	if r.URL.Path != "/v1"+wire.Realtime.Path() {
		return "", false
	}
	for _, p := range websocket.Protocols(r) {
		if rest, ok = strings.CutPrefix(p, prefix); ok {
			return rest, true
		}
	}
	return "", false
}

// refuseUpgrade repeats the code of a refusal in a header.
func (a *API) refuseUpgrade(w http.ResponseWriter, err error) {
	var refusal *gateway.Refusal
	if errors.As(err, &refusal) {
		w.Header().Set(reasonHeader, refusal.Code)
	}
}

// conversation is a realtime session with a provider's model or with a script.
type conversation interface {
	Serve(app *websocket.Conn)
	End()
}

// converse serves a realtime session. It opens the session before it accepts the WebSocket, so that a refusal has a
// status.
func (a *API) converse(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
	c, err := a.openConversation(r, who)
	if err != nil {
		a.refuseUpgrade(w, err)
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

// openConversation opens a realtime session with the script of the app's session or with the model in the query. For a
// request without Upgrade it only checks whether the model could be used, and returns nil.
func (a *API) openConversation(r *http.Request, who gateway.Caller) (conversation, error) {
	model := r.URL.Query().Get("model")
	rate, err := sampleRate(r)
	if err != nil {
		return nil, err
	}
	if who.Session != "" {
		script, err := a.Gateway.ConverseScript(r.Context(), who, model, rate)
		switch {
		case err != nil:
			return nil, err
		case script != nil:
			return script, nil
		}
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, a.Gateway.CanConverse(r.Context(), who, model)
	}
	c, err := a.Gateway.Converse(r.Context(), who, model, rate)
	if err != nil {
		return nil, err
	}
	return c, nil
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
