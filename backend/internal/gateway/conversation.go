package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// Limits of conversations. They apply to this process: several servers allow as many each.
const (
	projectConversations = 20
	sessionConversations = 2
	maxEvent             = 4 << 20 // bytes
	stallTime            = 30 * time.Second
)

// Close codes of conversations that the gateway ends. Of a provider's codes, apps receive only 1000.
const (
	closeInvalidKey = 4401
	closeNoCredit   = 4402
	closeOver       = 4408 // too long, or nothing was said
	closeProvider   = 4502
	closeRestart    = 4503
	closeTooLarge   = 1009
)

// Reasons for ending a conversation.
var (
	errQuiet    = errors.New("nothing was said for too long")
	errSession  = errors.New("the conversation took too long")
	errUnpaid   = errors.New("the credit does not cover another answer")
	errUnasked  = errors.New("the provider started an answer by itself")
	errTooBig   = errors.New("an event is over 4 MB")
	errHalfOpen = errors.New("the provider does not respond")
	errLimits   = errors.New("the provider refused the limits of the conversation")
)

// Conversation relays the events of one realtime session between an app and a provider. Each answer is a call: its
// maximum price is held before the provider receives response.create, and it is settled before the app receives
// response.done. The gateway itself requests the answers to speech, because a provider that starts them would spend
// without a hold. If a provider does so anyway, the operator pays, and the conversation ends.
type Conversation struct {
	*appSide
	provider  *ws.Conn
	rules     *wire.RealtimeRules
	created   []byte            // the provider's first event
	converter *converter        // nil for an app with the provider's sample rate
	rows      *conversationRows // nil for an app outside of a simulator session
	spoken    *spoken           // nil if the conversation does not remember

	mu      sync.Mutex
	turn    *turn       // the answer in progress, or nil
	latest  *turn       // the answer that began last, or nil
	due     bool        // an answer to speech is due after that
	unpaid  *time.Timer // nil unless an answer was refused for lack of credit
	commits int         // commits of the app that the provider has not confirmed
	ours    int         // session updates of ours whose confirmation the app does not receive
	added   wire.Input  // since the last answer began
	settled map[string]bool
	ending  error // why the conversation ends, once it is known; nil before
	dropped int   // events of the provider that apps do not receive
}

// CanConverse returns the *Refusal that Converse would return before it connects to the provider, or nil. It records no
// call.
func (s *Service) CanConverse(ctx context.Context, who Caller, model string) error {
	c := &Conversation{appSide: &appSide{call: &call{s: s, who: who, started: s.Now()}}}
	if _, err := c.choose(ctx, model); err != nil {
		return refusalOf(err)
	}
	return nil
}

// Converse connects to the provider of a model for realtime sessions. The app's sound has a sample rate of rate Hz,
// 16000 or 24000. The caller must call Serve or End of the result. It returns a *Refusal on failure.
func (s *Service) Converse(ctx context.Context, who Caller, model string, rate int) (*Conversation, error) {
	side, err := s.newAppSide(ctx, &call{s: s, who: who, started: s.Now()})
	if err != nil {
		return nil, err
	}
	c := &Conversation{appSide: side, settled: map[string]bool{}, converter: newConverter(rate)}
	if err := c.open(ctx, model); err != nil {
		c.End()
		refusal := refusalOf(err)
		c.recordRefusal(ctx, wire.Realtime, refusal)
		return nil, refusal
	}
	return c, nil
}

// choose finds the model and who pays for it. It returns the voice that the project's owner chose, or "".
func (c *Conversation) choose(ctx context.Context, model string) (voice string, err error) {
	if c.model, voice, err = c.s.realtimeModel(ctx, c.who, model); err != nil {
		return "", err
	}
	if c.own, err = c.s.payable(ctx, c.who, c.model); err != nil {
		return "", err
	}
	c.key = c.model.Provider.key
	if c.own {
		return voice, c.takeOwnKey(ctx)
	}
	return voice, nil
}

// open finds the model and connects to its provider.
func (c *Conversation) open(ctx context.Context, model string) error {
	voice, err := c.choose(ctx, model)
	if err != nil {
		return err
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	v := c.model.voice
	c.rules = wire.NewRealtimeRules(c.model.output, v.history, v.inRate, v.voices)
	c.rules.NoItemSound = c.converter != nil
	if c.recalled = c.s.recall(ctx, c.who); c.recalled != nil {
		c.rules.Notes = memory.Block(c.recalled.profile.Text)
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.Limits.FirstByte)
	defer cancel()
	if err := c.dial(ctx); err != nil {
		return err
	}
	return c.greet(ctx, voice)
}

// realtimeModel returns a model for realtime sessions, and the voice that the project's owner chose with it or "".
func (s *Service) realtimeModel(ctx context.Context, who Caller, id string) (m *Model, voice string, err error) {
	if len(s.Catalogue.Realtime) == 0 {
		return nil, "", Refuse(problem.CodeNotConfigured, "the operator of this backend has set up no realtime models")
	}
	asked := id
	if asked == Assistant && s.Settings != nil {
		config, err := s.Settings.Get(ctx, who.Account, who.Project)
		if err != nil {
			return nil, "", fmt.Errorf("read the project's realtime model: %w", err)
		}
		id, voice = config.RealtimeModel, config.Voice
	}
	m = s.Catalogue.model(id)
	switch {
	case m == nil && asked == Assistant:
		return nil, "", noModel("the realtime model that this project has chosen is not offered here: choose another on the " +
			"project's page, or name one of GET /v1/models")
	case m == nil:
		return nil, "", noModel("there is no model " + clip(id) + ": GET /v1/models lists the available models")
	case m.voice == nil:
		return nil, "", Refuse(problem.CodeWrongAPI, "the model "+m.ID+" is served at "+m.API.Route()).At("model")
	}
	return m, voice, nil
}

func (c *Conversation) dial(ctx context.Context) error {
	p := c.model.Provider
	header := http.Header{"User-Agent": {"service-gateway"}}
	for name, value := range p.headers {
		header.Set(name, value)
	}
	if k := c.key.reveal(); k != "" {
		header.Set(p.header, p.prefix+k)
	}
	at := "ws" + strings.TrimPrefix(p.base, "http") + wire.Realtime.Path() + "?model=" + url.QueryEscape(c.model.upstream)
	conn, response, err := ws.Dial(ctx, at, &ws.DialOptions{HTTPClient: c.s.client, HTTPHeader: header})
	if err != nil && response != nil {
		defer response.Body.Close()
		return c.refused(ctx, response)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return c.unanswered(errFirstByte)
	case err != nil:
		return c.unanswered(err)
	}
	conn.SetReadLimit(maxEvent)
	c.provider = conn
	return nil
}

// greet waits for the provider's session and sets the gateway's limits in it. A provider may ignore earlier events.
func (c *Conversation) greet(ctx context.Context, voice string) error {
	_, data, err := c.provider.Read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errFirstByte
		}
		return c.unanswered(err)
	}
	if e, ok := wire.Server(data, 0); !ok || e.Type != wire.EventSessionCreated {
		c.s.Log.Error("provider began a realtime session with another event", "provider", c.model.Provider.ID,
			"model", c.model.ID, "code", e.Code)
		return Refuse(problem.CodeProviderError, "the model's provider opened no session: try again").After(busyRetry)
	}
	c.created, c.ours = c.redact(c.name(data)), 1
	return c.provider.Write(ctx, ws.MessageText, c.rules.Begin(voice))
}

// End releases the resources of a conversation. Serve calls it.
func (c *Conversation) End() {
	if c.provider != nil {
		_ = c.provider.CloseNow()
	}
	c.release()
}

// Serve relays until one side leaves or the conversation is cut, and closes the app's connection.
func (c *Conversation) Serve(app *websocket.Conn) {
	defer c.End()
	c.rows, c.spoken = c.newRows(), c.s.newSpoken(c.who, c.recalled, false)
	defer c.start(app, c.model.voice.session, c.finish)()
	defer context.AfterFunc(c.ctx, func() { _ = c.provider.CloseNow() })()
	var others sync.WaitGroup
	others.Go(func() { c.recovered(func() { c.ping(c.pingProvider) }) })
	others.Go(func() { c.recovered(func() { c.read(c.fromApp, c.tell, func() { c.finish(errLeft) }) }) })
	err := c.app.Write(websocket.Text, c.created)
	c.recovered(func() {
		for err == nil {
			err = c.fromProvider()
		}
	})
	cause := c.endTurn(err)
	c.cut(cause)
	c.rows.ended(cause)
	c.spoken.end(nil)
	code, reason := closing(cause)
	app.SendClose(code, reason)
	others.Wait()
	app.Drop()
}

// closing returns the code and reason with which the app's connection is closed.
func closing(cause error) (websocket.Status, string) {
	var closed ws.CloseError
	switch {
	case errors.Is(cause, errRevoked):
		return closeInvalidKey, "the key, the install or what it attested with was revoked or removed, or the session is over"
	case errors.Is(cause, errUncovered):
		return closeNoCredit, "the credit reserved for the answer was released: connect again"
	case errors.Is(cause, errUnpaid):
		return closeNoCredit, cause.Error()
	case errors.Is(cause, errQuiet), errors.Is(cause, errSession):
		return closeOver, cause.Error()
	case errors.Is(cause, errStopped):
		return closeRestart, "the server is restarting: connect again"
	case errors.Is(cause, errPanicked):
		return closeProvider, "the gateway failed: connect again"
	case errors.Is(cause, errTooBig):
		return closeTooLarge, cause.Error()
	case errors.Is(cause, errUnasked), errors.Is(cause, errHalfOpen), errors.Is(cause, errLimits):
		return closeProvider, cause.Error()
	case errors.As(cause, &closed) && closed.Code == ws.StatusNormalClosure:
		return websocket.Status(closed.Code), "the provider ended the conversation"
	}
	return closeProvider, "the provider closed the connection"
}

// pingProvider ends the conversation if the provider does not respond.
func (c *Conversation) pingProvider() {
	ctx, cancel := context.WithTimeout(c.ctx, c.s.Limits.Ping)
	defer cancel()
	if c.provider.Ping(ctx) != nil {
		c.cut(errHalfOpen)
	}
}

// fromApp handles an event of the app.
func (c *Conversation) fromApp(event []byte) {
	if answer := c.clientEvent(event); answer != nil {
		c.tell(answer)
	}
}

// tell sends an event to the app. If the app has left, read notices.
func (c *Conversation) tell(event []byte) { _ = c.app.Write(websocket.Text, event) }

// finish ends the conversation, once the usage of an answer in progress is known.
func (c *Conversation) finish(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != nil {
		return
	}
	c.ending = cause
	if c.turn == nil {
		c.cut(cause)
		return
	}
	_ = c.send([]byte(`{"type":"` + wire.EventResponseCancel + `"}`))
	time.AfterFunc(c.s.Limits.Drain, func() { c.cut(cause) })
}

// send sends an event to the provider. The caller must hold mu, so that events stay in order.
func (c *Conversation) send(event []byte) error {
	ctx, cancel := context.WithTimeout(c.ctx, stallTime)
	defer cancel()
	err := c.provider.Write(ctx, ws.MessageText, event)
	if err != nil {
		c.cut(errHalfOpen)
	}
	return err
}
