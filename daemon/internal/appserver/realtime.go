package appserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// Subprotocols of OpenAI's Realtime API. Pages cannot set headers, so they send the token as a subprotocol.
const (
	realtimeProtocol = "realtime"
	tokenProtocol    = "openai-insecure-api-key."
)

// protocolToken returns the token among a request's subprotocols, or "" if there is none.
func protocolToken(r *http.Request) string {
	for _, p := range websocket.Protocols(r) {
		if token, ok := strings.CutPrefix(p, tokenProtocol); ok && len(token) <= maxBearer {
			return token
		}
	}
	return ""
}

// conversation is the connection of one realtime conversation.
type conversation struct {
	peer   host.Peer
	server *Server
	talk   *session.Conversation
	isOver atomic.Bool
	unhook func() bool // undoes the cancellation by the server's context
}

// converse upgrades the request to a WebSocket that carries the events of a realtime conversation. The query parameter
// model must name the script. The parameter rate is the sample rate in Hz: 24000 (the default) or 16000.
func (s *Server) converse(rw http.ResponseWriter, r *http.Request, token string) {
	rate, err := realtimeQuery(r)
	user := ""
	if err == nil {
		user, err = conversingUser(r)
	}
	if err != nil {
		fail(rw, err)
		return
	}
	for _, p := range websocket.Protocols(r) {
		if p == realtimeProtocol {
			rw.Header().Set("Sec-WebSocket-Protocol", realtimeProtocol)
		}
	}
	ws, err := websocket.Accept(rw, r, websocket.AnyOrigin) // requireLocal has checked the origin
	if err != nil {
		return // Accept has sent the response
	}
	c := &conversation{server: s}
	s.group.Init(&c.peer, ws, c, 0)
	c.peer.LimitText(assistantscript.MaxEvent)
	if c.talk, err = s.sessions.Converse(token, user, rate, &c.peer); err != nil {
		c.peer.Refuse(closeRefused, err.Error())
		c.peer.Drop()
		return
	}
	s.wg.Add(1) // until Gone
	c.unhook = context.AfterFunc(s.life, func() { c.peer.End(glasses.CloseRestart, host.Restarts) })
	c.peer.Start()
	time.AfterFunc(s.o.PingEvery, c.ping)
	go c.peer.Await() // net/http frees the memory of the request
}

// closeRefused is the close code for a conversation that cannot begin.
const closeRefused = 4400

func realtimeQuery(r *http.Request) (rate int, err error) {
	q := r.URL.Query()
	if model := q.Get("model"); model != "" && model != assistantscript.Assistant && model != assistantscript.Model {
		return 0, assistantscript.ErrNoModel
	}
	switch given := q.Get("rate"); given {
	case "", "24000":
		return 24000, nil
	case "16000":
		return 16000, nil
	default:
		return 0, &assistantscript.Failure{Status: http.StatusBadRequest, Type: "invalid_request_error",
			Code: problem.CodeInvalidValue, Param: "rate",
			Message: fmt.Sprintf("rate is %.20q: it must be 16000 or 24000", given)}
	}
}

// Handle passes an event to the script (host.Handler).
func (c *conversation) Handle(m host.Message) { c.talk.Receive(m.Data) }

// Ending limits the time that the app has to read its queued events (host.Handler).
func (c *conversation) Ending() {
	c.isOver.Store(true)
	time.AfterFunc(endTimeout, c.peer.Drop)
}

// Gone ends the conversation (host.Handler).
func (c *conversation) Gone() {
	defer c.server.wg.Done()
	c.isOver.Store(true)
	c.unhook()
	c.peer.Finish()
	c.talk.Leave("closed")
}

func (c *conversation) ping() {
	c.peer.PingIfDue(time.Now(), c.server.o.PingEvery, c.server.o.PingEvery)
	if !c.isOver.Load() {
		time.AfterFunc(c.server.o.PingEvery, c.ping)
	}
}
