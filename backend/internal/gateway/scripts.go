package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// scriptModel is the model that represents a session's script. It costs nothing and needs no provider.
var scriptModel = &Model{ID: assistantscript.Model, Name: "Script", API: wire.Chat,
	Provider: &Provider{ID: "service", Name: "this session's script", Local: true}}

// maxScriptCalls is the maximum number of answers of one session's script that wait until they are due, so that no
// session can use up its account's share.
const maxScriptCalls = 64

// script returns the assistant script of the caller's session, or nil if calls to the model are not scripted.
func (s *Service) script(ctx context.Context, who Caller, model string) (*assistantscript.Script, error) {
	if who.Session == "" || model != Assistant && model != assistantscript.Model {
		return nil, nil
	}
	script, err := s.Sessions.Script(ctx, who.Session)
	switch {
	case errors.Is(err, ErrSessionOver): // without this check, a provider would answer instead of the deleted script
		return nil, sessionOver()
	case err != nil:
		return nil, fmt.Errorf("read assistant script: %w", err)
	}
	return script, nil
}

// sessionOver returns the refusal of a call whose session has ended.
func sessionOver() *Refusal {
	return Refuse(problem.CodeInvalidKey,
		"the session is over: open another and attach to it; its welcome has a new token")
}

// playScript answers a call from its session's script once the answer is due. While it waits, it keeps no part of the
// request and does not count as a running call.
func (c *call) playScript(ctx context.Context, request *assistantscript.Request, to Sink, end func()) error {
	c.s.calls.Add(1) // before end, so that Serve waits for this call and its memory
	defer c.s.calls.Done()
	streamed, includeUsage := request.Stream, request.IncludeUsage
	request.Memory = c.recalled.text()
	answer := c.script.Answer(request)
	c.request = nil
	if err := c.waitDue(ctx, answer.Delay, end); err != nil {
		return c.failScript(ctx, err)
	}
	switch {
	case ctx.Err() != nil:
		c.finish(ctx, result{outcome: outcomeCancelled})
		return nil
	case answer.Failure != nil:
		c.s.Sessions.LogAssistant(ctx, c.who.Session, glasses.RowAssistantFailed, answer.Failure.Row())
		return c.failScript(ctx, answer.Failure)
	}
	c.finish(ctx, result{outcome: outcomeOK, usage: wire.Usage{In: int64(answer.Usage.In), Out: int64(answer.Usage.Out)}})
	c.rememberLine(answer.Remember)
	for _, tool := range answer.Calls {
		c.s.Sessions.LogAssistant(ctx, c.who.Session, glasses.RowToolCalled,
			glasses.NewToolCalled(tool.Name, tool.Arguments))
	}
	id, created := "chatcmpl-"+rand.Text(), c.s.Now().Unix()
	parts := [][]byte{answer.Completion(id, created)}
	if streamed {
		parts = answer.Events(id, created, includeUsage)
	}
	to.Begin(streamed)
	for _, p := range parts {
		if to.Write(p) != nil {
			return nil // the app has disconnected
		}
	}
	return nil
}

// waitDue waits until the answer of a script is due. Meanwhile the call does not count as running. If the call cannot
// wait or is cut off, it returns the refusal.
func (c *call) waitDue(ctx context.Context, delay time.Duration, end func()) error {
	if delay == 0 {
		return nil
	}
	leave, err := c.s.waiting.Enter(ctx, c.who.Account) // never waits
	if err != nil {
		return TooManyCalls()
	}
	defer leave()
	leaveSession, err := c.s.scripts.Enter(ctx, c.who.Session) // never waits
	if err != nil {
		return TooManyCalls()
	}
	defer leaveSession()
	end()
	running, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	c.s.keep(c, cut)
	defer context.AfterFunc(c.s.ctx, func() { cut(errStopped) })()
	select {
	case <-running.Done():
		if ctx.Err() == nil {
			return c.unanswered(context.Cause(running))
		}
	case <-time.After(delay):
	}
	return nil
}

// failScript counts a call without an answer and returns its refusal.
func (c *call) failScript(ctx context.Context, err error) error {
	c.finish(ctx, result{outcome: outcomeFailed})
	var failure *assistantscript.Failure
	if errors.As(err, &failure) {
		return Refuse(failure.Code, failure.Message).After(time.Duration(failure.RetryAfter) * time.Second).At(failure.Param)
	}
	return err
}
