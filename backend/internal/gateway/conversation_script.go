package gateway

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// scriptVoice is the model that represents a session's script in realtime sessions.
var scriptVoice = &Model{ID: scriptModel.ID, Name: scriptModel.Name, API: wire.Realtime, Provider: scriptModel.Provider}

// maxScriptTokens is the maximum plausible number of tokens in an answer of a script.
const maxScriptTokens = 1_000_000_000

// ScriptConversation is a realtime session between an app and its session's script, in real time. It costs nothing and
// has the limits and endings of a Conversation.
type ScriptConversation struct {
	*appSide
	rate   int
	events chan []byte
	queued atomic.Int64 // bytes of events

	mu    sync.Mutex
	talk  *assistantscript.Conversation
	timer *time.Timer
	asked time.Time // when the latest answer began
	over  bool
}

// Limits on the events for an app that does not read. A script's answer is sent in parts of at most ten seconds of
// sound.
const (
	maxQueued      = 4096
	maxQueuedBytes = 32 << 20
)

// ConverseScript begins a conversation of an app with its session's script, at a sample rate of rate Hz. It returns nil
// if the model is not the script. The caller must call Serve or End of the result. It returns a *Refusal on failure.
func (s *Service) ConverseScript(
	ctx context.Context, who Caller, model string, rate int,
) (*ScriptConversation, error) {
	script, err := s.script(ctx, who, cmp.Or(model, Assistant))
	if err != nil {
		return nil, refusalOf(err)
	}
	if script == nil {
		return nil, nil
	}
	side, err := s.newAppSide(ctx, &call{s: s, who: who, model: scriptVoice, script: script, started: s.Now()})
	if err != nil {
		return nil, err
	}
	c := &ScriptConversation{appSide: side, rate: rate, events: make(chan []byte, maxQueued)}
	c.recalled = s.recall(ctx, who)
	if err := c.enter(ctx); err != nil {
		c.End()
		refusal := refusalOf(err)
		c.recordRefusal(ctx, wire.Realtime, refusal)
		return nil, refusal
	}
	return c, nil
}

// End releases the resources of a conversation. Serve calls it.
func (c *ScriptConversation) End() { c.release() }

// Serve answers the app until it leaves or the conversation is cut, and closes the app's connection.
func (c *ScriptConversation) Serve(app *websocket.Conn) {
	defer c.End()
	defer c.start(app, maxSession*time.Second, c.cut)()
	spoken := c.s.newSpoken(c.who, c.recalled, true)
	c.mu.Lock()
	c.talk = assistantscript.NewConversation(assistantscript.ConversationOptions{Script: c.script, Rate: c.rate,
		Send: c.send, Log: c.log, Memory: c.recalled.text()}, 0)
	c.timer = time.AfterFunc(time.Hour, func() { c.recovered(c.advance) })
	c.mu.Unlock()
	var others sync.WaitGroup
	for _, f := range []func(){
		c.write, func() { c.ping(func() {}) },
		func() { c.read(c.receive, c.queue, func() { c.cut(errLeft) }) },
	} {
		others.Go(func() { c.recovered(f) })
	}
	<-c.ctx.Done()
	cause := context.Cause(c.ctx)
	c.mu.Lock()
	c.over = true
	c.timer.Stop()
	c.log(glasses.RowAssistantEnded, glasses.AssistantEnded{Reason: endReason(cause)})
	lines := c.talk.Remembered()
	c.mu.Unlock()
	spoken.end(lines)
	app.SendClose(closing(cause))
	others.Wait()
	app.Drop()
}

// endReason returns the reason in the event log for the end of a conversation.
func endReason(cause error) string {
	switch {
	case errors.Is(cause, errRevoked):
		return "stopped"
	case errors.Is(cause, errQuiet):
		return "quiet"
	case errors.Is(cause, errSession):
		return "too_long"
	case errors.Is(cause, errStopped):
		return "restart"
	case errors.Is(cause, errUnpaid), errors.Is(cause, errUncovered):
		return problem.CodeNoCredit
	case errors.Is(cause, errLeft):
		return "closed"
	}
	return "failed"
}

// log appends a row to the session's event log.
func (c *ScriptConversation) log(row string, payload any) {
	c.s.Sessions.LogAssistant(c.logContext(), c.who.Session, row, payload)
}

// logContext returns a context for the last row too, which is written after the conversation was cut.
func (c *ScriptConversation) logContext() context.Context { return context.WithoutCancel(c.ctx) }

// send queues an event for the app and counts an answer that has ended.
func (c *ScriptConversation) send(event []byte) {
	c.quiet.Reset(c.s.Limits.Quiet)
	switch e, _ := wire.Server(event, maxScriptTokens); e.Type {
	case wire.EventResponseCreated:
		c.asked = c.s.Now()
	case wire.EventResponseDone:
		c.count(e)
	}
	c.queue(event)
}

// queue queues an event for the app.
func (c *ScriptConversation) queue(event []byte) {
	if c.queued.Add(int64(len(event))) > maxQueuedBytes {
		c.cut(errHalfOpen)
		return
	}
	select {
	case c.events <- event:
	default:
		c.cut(errHalfOpen)
	}
}

// count counts an answer.
func (c *ScriptConversation) count(e wire.ServerEvent) {
	outcome, u := outcomeOK, e.Receipt.Usage
	if e.Status == "cancelled" {
		outcome = outcomeCancelled
	}
	row := c.row(outcome)
	row.Duration = c.s.Now().Sub(c.asked)
	row.TextIn, row.TextOut, row.AudioOut = u.TextIn, u.TextOut, u.AudioOut
	ctx, cancel := settleContext(c.ctx)
	defer cancel()
	c.book(ctx, 0, row, result{outcome: outcome})
}

func (c *ScriptConversation) nowMs() int64 { return c.s.Now().Sub(c.started).Milliseconds() }

// advance sends the events that are due.
func (c *ScriptConversation) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.talk.Advance(c.nowMs())
		c.setTimer()
	}
}

// setTimer sets the time at which the script continues. The caller must hold mu.
func (c *ScriptConversation) setTimer() {
	if at, ok := c.talk.Due(); ok {
		c.timer.Reset(time.Duration(at-c.nowMs()) * time.Millisecond)
	}
}

// receive handles an event of the app.
func (c *ScriptConversation) receive(event []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.talk.Receive(c.nowMs(), event)
		c.setTimer()
	}
}

// write sends queued events to the app.
func (c *ScriptConversation) write() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case event := <-c.events:
			c.queued.Add(-int64(len(event)))
			if c.app.Write(websocket.Text, event) != nil {
				c.app.Drop() // read ends the conversation
			}
		}
	}
}
