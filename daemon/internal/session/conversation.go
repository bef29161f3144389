package session

import (
	"net/http"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// maxConversations is the maximum number of realtime conversations of a session.
const maxConversations = 2

// Conversation is a realtime conversation between an app and the script of its session.
type Conversation struct {
	session *localSession
	app     *App // the attachment whose token was used to begin the conversation
	peer    host.Receiver

	// The session's Mu guards the following fields.
	script  *assistantscript.Conversation
	user    string                 // secret of the user whom the conversation remembers, or ""
	memory  *profiles.Conversation // nil if the conversation does not remember
	timer   *time.Timer            // in real time; set once the script has waited for something
	changed bool                   // an event has been sent since noteSent
}

var errManyConversations = &assistantscript.Failure{Status: http.StatusTooManyRequests, Type: "rate_limit_error",
	Code: problem.CodeTooManyCalls, Message: "the session has two conversations: end one first", RetryAfter: 1}

// Converse begins a conversation at a sample rate of rate Hz. token identifies the session, and peer receives the
// events. user is the secret of the user to whose profile the conversation adds lines at its end; if it is empty, the
// conversation does not remember. It returns a *assistantscript.Failure on failure. The caller must call Leave when the
// peer has disconnected.
func (m *Manager) Converse(token, user string, rate int, peer host.Receiver) (*Conversation, error) {
	app, ok := m.local.tokens.find(token, m.opts.Now())
	if !ok {
		return nil, ErrGatewayToken
	}
	s := app.session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.isOver || s.script == nil:
		return nil, ErrGatewayToken
	case len(s.conversations) >= maxConversations:
		return nil, errManyConversations
	}
	memory, err := s.beginMemory(user)
	if err != nil {
		return nil, err
	}
	c := &Conversation{session: s, app: app, peer: peer, user: user, memory: memory}
	profile := ""
	if c.memory != nil {
		profile = c.memory.Profile
	}
	s.conversations = append(s.conversations, c)
	c.script = assistantscript.NewConversation(assistantscript.ConversationOptions{Script: s.script, Rate: rate,
		Memory: profile, Log: s.logService,
		Send: func(event []byte) {
			c.changed = true
			peer.SendText(event)
		}}, s.state.nowMs())
	c.noteSent()
	return c, nil
}

// Receive handles an event of the app.
func (c *Conversation) Receive(event []byte) {
	s := c.session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !slices.Contains(s.conversations, c) {
		return
	}
	c.script.Receive(s.state.nowMs(), event)
	c.noteSent()
}

// Leave ends the conversation. The event log contains the reason. Only the first call has an effect.
func (c *Conversation) Leave(reason string) {
	s := c.session
	s.Mu.Lock()
	s.endConversation(c, reason)
	remembers := c.memory != nil
	s.Mu.Unlock()
	if remembers {
		_ = s.owner.saveProfiles() // the caller can do nothing about it
	}
}

// endConversation ends a conversation. The caller holds Mu.
func (s *localSession) endConversation(c *Conversation, reason string) {
	if !slices.Contains(s.conversations, c) {
		return
	}
	s.conversations = slices.DeleteFunc(s.conversations, func(other *Conversation) bool { return other == c })
	if c.timer != nil {
		c.timer.Stop()
	}
	c.memory.End(c.script.Remembered()...)
	s.logService(glasses.RowAssistantEnded, glasses.AssistantEnded{Reason: reason})
}

// endConversations ends every conversation when the session stops. The caller holds Mu.
func (s *localSession) endConversations(code int, reason string) {
	for _, c := range slices.Clone(s.conversations) {
		s.endConversation(c, "stopped")
		c.peer.End(websocket.Status(code), reason)
	}
}

// advanceConversations sends the events that are due. The caller holds Mu.
func (s *localSession) advanceConversations(nowMs int64) {
	for _, c := range s.conversations {
		c.script.Advance(nowMs)
		c.noteSent()
	}
}

// isOf reports whether the conversation belongs to the app, which may have lost its connection during the conversation
// and attached again.
func (c *Conversation) isOf(a *App) bool { return c.app == a || c.app.isGone() && c.app.Info == a.Info }

// noteSent records that the app may react to a sent event, and sets the timer. The caller holds Mu.
func (c *Conversation) noteSent() {
	s := c.session
	if c.changed {
		c.changed = false
		for _, a := range s.Apps.All() {
			if c.isOf(a) {
				a.sent.Add(1) // an app may react to an event, as to a frame
				a.noteActivity()
			}
		}
	}
	at, ok := c.script.Due()
	if !ok || s.isVirtual() {
		return
	}
	wait := time.Duration(at-s.state.nowMs()) * time.Millisecond
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.advance)
	} else {
		c.timer.Reset(wait)
	}
}

// advance sends the events that are due.
func (c *Conversation) advance() {
	s := c.session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if slices.Contains(s.conversations, c) {
		c.script.Advance(s.state.nowMs())
		c.noteSent()
	}
}
