package client

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/control"
)

// LoginEvents are callbacks for the progress of a login, in order. Each may be nil.
type LoginEvents struct {
	Code    func(*Code)
	Opened  func(*Opened)
	Waiting func(*Waiting)
}

// Login links an account. replace allows it to replace a live link to another account or backend. Cancelling ctx stops
// the daemon's polling; Login then fails with context.Canceled.
func (c *Client) Login(ctx context.Context, replace bool, on LoginEvents) (*Linked, error) {
	c.serveIO()
	events, err := openStream(ctx, c, control.Login, control.LoginRequest{Replace: replace})
	if err != nil {
		return nil, err
	}
	defer events.close()
	for {
		e, err := events.next()
		if err != nil {
			return nil, err
		}
		tell(on.Code, e.Code)
		tell(on.Opened, e.Opened)
		tell(on.Waiting, e.Waiting)
		if e.Linked != nil {
			return e.Linked, nil
		}
	}
}

func tell[T any](hear func(*T), what *T) {
	if hear != nil && what != nil {
		hear(what)
	}
}

// argumentsOf checks a tool's arguments, a JSON object encoded as text; an empty text means none.
func argumentsOf(text string) (json.RawMessage, error) {
	switch {
	case !utf8.ValidString(text):
		return nil, errCallNotUTF8
	case text != "" && !json.Valid([]byte(text)):
		return nil, &problem.Error{Code: "invalid_request", Message: "the arguments are not JSON",
			FixHint: "Pass one JSON object, e.g. '{}'."}
	}
	return json.RawMessage(text), nil
}

var errCallNotUTF8 = &problem.Error{Code: "invalid_request",
	Message: "the name or the arguments of the call are not UTF-8", FixHint: "Write the arguments as JSON in UTF-8."}

// CallTool calls a tool as an agent would. arguments is a JSON object encoded as text.
func (c *Client) CallTool(ctx context.Context, name, arguments string, progress func(*Progress)) (*Result, error) {
	args, err := argumentsOf(arguments)
	if !utf8.ValidString(name) {
		err = errCallNotUTF8
	}
	if err != nil {
		return nil, err
	}
	c.serveIO()
	events, err := openStream(ctx, c, control.CallTool, control.ToolRequest{Name: name, Arguments: args,
		PrintsNotice: c.printsNotice})
	if err != nil {
		return nil, err
	}
	defer events.close()
	for {
		e, err := events.next()
		if err != nil {
			return nil, err
		}
		tell(progress, e.Progress)
		if e.Result != nil {
			c.keepNotice(e.Result)
			_, _ = events.next() // the stream ends once the daemon has recorded that the notice was shown
			return e.Result, nil
		}
	}
}

// OpenLocalSession calls startLocalSimulation for a session that must not outlive this process. The daemon closes the
// session when end is called, when the client is closed and when the process exits.
func (c *Client) OpenLocalSession(ctx context.Context, arguments string) (r *Result, end func(), err error) {
	args, err := argumentsOf(arguments)
	if err != nil {
		return nil, nil, err
	}
	c.serveIO()
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	asking := context.AfterFunc(ctx, cancel)
	defer asking()
	events, err := openStream(held, c, control.OpenSession, control.SessionRequest{Arguments: args,
		PrintsNotice: c.printsNotice})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	answer, err := events.next()
	if err != nil {
		cancel()
		events.close()
		return nil, nil, err
	}
	c.keepNotice(answer.Result)
	return answer.Result, func() { cancel(); events.close() }, nil
}

// keepNotice stores a result's notice, if there is one.
func (c *Client) keepNotice(r *Result) {
	if r.Notice != "" {
		c.notice.Store(&r.Notice)
	}
}

// Notice returns the notice for the user from the results so far, or "".
func (c *Client) Notice() string {
	if text := c.notice.Load(); text != nil {
		return *text
	}
	return ""
}
