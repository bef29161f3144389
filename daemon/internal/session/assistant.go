package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// scriptName is the name of the file in a session's directory that contains its assistant script.
const scriptName = "assistant.json"

// maxCalls is the maximum number of pending answers of one session's assistant.
const maxCalls = 64

// setScript sets the script of the session's assistant and sends the gateway's address to attached apps. Without a
// script, the session has no assistant.
func (s *localSession) setScript(script *assistantscript.Script) error {
	err := s.wake()
	if err != nil {
		return err
	}
	path := filepath.Join(s.folder(), scriptName)
	if script != nil {
		err = statefile.Write(path, script.Encode())
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return stateProblem("save the assistant script", err)
	}
	s.Mu.Lock()
	s.script = script
	s.Mu.Unlock()
	s.RenewTokens(s.owner.life, true)
	return nil
}

// AssistantScript returns the script of a session's assistant, or nil if it has none. For a browser session, this is
// the script that this daemon set.
func (m *Manager) AssistantScript(id string) *assistantscript.Script {
	if !IsLocal(id) {
		if !validID(id) {
			return nil
		}
		return readScriptFile(m.folder(id), id, m.opts.Log)
	}
	s := m.local.find(id)
	if s == nil {
		return nil
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.script
}

// SetAssistantScript sets the script of a session's assistant. It returns a *problem.Error on failure.
func (m *Manager) SetAssistantScript(
	ctx context.Context, target backend.Target, id string, script *assistantscript.Script,
) error {
	if !IsLocal(id) {
		return m.setBrowserScript(ctx, target, id, script)
	}
	s := m.local.find(id)
	if s == nil {
		return notFound()
	}
	return s.setScript(script)
}

// setBrowserScript passes the script to the backend and keeps a copy for recordings.
func (m *Manager) setBrowserScript(
	ctx context.Context, target backend.Target, id string, script *assistantscript.Script,
) error {
	if !validID(id) {
		return notFound()
	}
	if err := m.opts.Backend.SetAssistantScript(ctx, target, id, script.Encode()); err != nil {
		return err
	}
	unlock := m.minting.lock(id)
	defer unlock()
	err := os.MkdirAll(m.folder(id), 0o700)
	if err == nil {
		err = statefile.Write(filepath.Join(m.folder(id), scriptName), script.Encode())
	}
	if err != nil {
		return stateProblem("save the assistant script", err)
	}
	return nil
}

// loadScript reads the session's script. The caller holds Mu.
func (s *localSession) loadScript() {
	s.script = readScriptFile(s.folder(), s.id, s.owner.log)
}

// readScriptFile returns the script in a session's directory, or nil if there is none.
func readScriptFile(folder, session string, log *slog.Logger) *assistantscript.Script {
	data, err := statefile.Read(filepath.Join(folder, scriptName), assistantscript.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var script *assistantscript.Script
	if err == nil {
		script, err = assistantscript.Parse(data)
	}
	if err != nil {
		log.Warn("failed to read assistant script", "session", session, "err", err)
		return nil
	}
	return script
}

// NewGateway returns the gateway's address and a new token for an app, or nil if the session has no script (host.Host).
func (s *localSession) NewGateway(_ context.Context, a *App) (*glasses.Gateway, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.script == nil || s.isOver {
		return nil, nil
	}
	a.hasGateway.Store(true)
	return &glasses.Gateway{URL: a.gatewayURL, Token: s.owner.tokens.mint(a, s.TokenTime())}, nil
}

// TokenTime returns the current real time (host.Host).
func (s *localSession) TokenTime() time.Time { return s.owner.now() }

// AssistantReply is the answer of a session's assistant, once it is due.
type AssistantReply struct {
	assistantscript.Answer
	Request *assistantscript.Request
	// ID identifies the answer. Created is its time on the session's clock, in seconds.
	ID      string
	Created int64
}

// assistantCall is a call whose answer is not due yet.
type assistantCall struct {
	app    *App // the attachment through which the app began the call
	number int  // of the session's calls
	answer *assistantscript.Answer
	due    int64                  // ms on the session's clock
	isDue  chan struct{}          // closed when the answer is due
	memory *profiles.Conversation // nil if the call does not remember
}

// isOf reports whether the app waits for the answer. This includes an app that lost its connection during the call,
// even if it has attached again.
func (c *assistantCall) isOf(a *App) bool {
	return c.app == a || c.app.isGone() && c.app.Info == a.Info
}

// OpensAssistant reports whether token gives access to a session's assistant.
func (m *Manager) OpensAssistant(token string) bool {
	_, ok := m.local.tokens.find(token, m.opts.Now())
	return ok
}

// ErrGatewayToken is returned for a token that does not give access to a session's assistant.
var (
	ErrGatewayToken = &assistantscript.Failure{Status: http.StatusUnauthorized, Type: "authentication_error",
		Code: "invalid_key", Message: "the token is missing, unknown or expired: attach to the session for a new one"}
	errManyCalls = &assistantscript.Failure{Status: http.StatusServiceUnavailable, Type: "api_error",
		Code: "too_many_calls", Message: "too many concurrent calls: try again", RetryAfter: 1}
)

// AskAssistant returns the answer of a session's script to body, a chat request, once the answer is due on the
// session's clock. token identifies the session. user is the secret of the user to whose profile the answer's line is
// added; if it is empty, the call does not remember. It returns a *assistantscript.Failure, or ctx's error.
func (m *Manager) AskAssistant(ctx context.Context, token, user string, body []byte) (AssistantReply, error) {
	app, ok := m.local.tokens.find(token, m.opts.Now())
	if !ok {
		return AssistantReply{}, ErrGatewayToken
	}
	var err error
	reply := AssistantReply{}
	if reply.Request, err = assistantscript.ParseRequest(body); err == nil {
		reply, err = app.session.askAssistant(ctx, app, user, reply)
	}
	return reply, err
}

func (s *localSession) askAssistant(
	ctx context.Context, app *App, user string, reply AssistantReply,
) (AssistantReply, error) {
	c, err := s.beginCall(app, user, &reply)
	if err == nil {
		err = s.waitDue(ctx, c)
	}
	if user != "" {
		_ = s.owner.saveProfiles() // the answer is worth more than what it remembers
	}
	if err != nil {
		return AssistantReply{}, err
	}
	reply.Created = s.Now().Unix()
	if reply.Failure != nil {
		return reply, reply.Failure
	}
	return reply, nil
}

// beginCall sets the answer and ID of a reply, and returns the pending call.
func (s *localSession) beginCall(app *App, user string, reply *AssistantReply) (*assistantCall, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.isOver || s.script == nil:
		return nil, ErrGatewayToken
	case len(s.calls) >= maxCalls:
		return nil, errManyCalls
	}
	memory, err := s.beginMemory(user)
	if err != nil {
		return nil, err
	}
	s.asked++
	if memory != nil {
		reply.Request.Memory = memory.Profile
	}
	reply.Answer, reply.ID = s.script.Answer(reply.Request), fmt.Sprintf("chatcmpl-%d", s.asked)
	c := &assistantCall{app: app, number: s.asked, answer: &reply.Answer, isDue: make(chan struct{}), memory: memory,
		due: s.state.nowMs() + reply.Delay.Milliseconds()}
	s.calls[c] = true
	if reply.Delay == 0 {
		s.deliver(c)
	}
	return c, nil
}

// waitDue waits until the answer to a call is due.
func (s *localSession) waitDue(ctx context.Context, c *assistantCall) error {
	var passed <-chan time.Time // fires in real time
	if !s.isVirtual() {
		timer := time.NewTimer(c.answer.Delay)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-c.isDue:
		return nil
	case <-passed:
		s.Mu.Lock()
		defer s.Mu.Unlock()
		s.deliver(c)
		return nil
	case <-ctx.Done():
	case <-s.life.Done():
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c.memory.End()
	delete(s.calls, c)
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrGatewayToken
}

// deliver releases the answer to a call. The caller holds Mu.
func (s *localSession) deliver(c *assistantCall) {
	if !s.calls[c] {
		return
	}
	delete(s.calls, c)
	c.memory.End(c.answer.Remember)
	if f := c.answer.Failure; f != nil {
		s.logService(glasses.RowAssistantFailed, f.Row())
	}
	for _, call := range c.answer.Calls {
		s.logService(glasses.RowToolCalled, glasses.NewToolCalled(call.Name, call.Arguments))
	}
	for _, a := range s.Apps.All() {
		if c.isOf(a) {
			a.sent.Add(1) // an app may react to an answer, as to a frame
			a.noteActivity()
		}
	}
	close(c.isDue)
}

// deliverAnswers releases the answers that are due, the earliest first. The caller holds Mu.
func (s *localSession) deliverAnswers(now int64) {
	for {
		var next *assistantCall
		for c := range s.calls {
			if c.due <= now && (next == nil || cmp.Or(cmp.Compare(c.due, next.due), cmp.Compare(c.number, next.number)) < 0) {
				next = c
			}
		}
		if next == nil {
			return
		}
		s.deliver(next)
	}
}

// waitingCalls returns the number of the app's calls that are waiting for the session's clock.
func (s *localSession) waitingCalls(a *App) (n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for c := range s.calls {
		if c.isOf(a) {
			n++
		}
	}
	for _, c := range s.conversations {
		if _, waits := c.script.Due(); waits && c.isOf(a) {
			n++
		}
	}
	return n
}

func scriptProblem(path string, err error) error {
	var p *problem.Error
	if errors.As(err, &p) {
		return p
	}
	return problem.New(problem.CodeInvalidRequest, fmt.Sprintf("assistantScript %s: %v", path, err),
		"Correct what the message names; searchDocs assistant-scripts lists every field.")
}
