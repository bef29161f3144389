package client

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"google.golang.org/grpc"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Status returns the state of the daemon.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	r, err := c.api.Status(ctx, &controlv1.StatusRequest{Caller: c.caller})
	return r, refusal(err)
}

// Whoami returns the install and its link, from the stored check or after checking with the backend.
func (c *Client) Whoami(ctx context.Context, refresh bool) (*Identity, error) {
	r, err := c.api.Whoami(ctx, &controlv1.WhoamiRequest{Caller: c.caller, Refresh: refresh})
	return r, refusal(err)
}

// Logout deletes the link.
func (c *Client) Logout(ctx context.Context) (*LoggedOut, error) {
	r, err := c.api.Logout(ctx, &controlv1.LogoutRequest{Caller: c.caller})
	return r, refusal(err)
}

// SetConsent records the telemetry decision, "accepted" or "declined".
func (c *Client) SetConsent(ctx context.Context, state string) (*Decision, error) {
	r, err := c.api.SetConsent(ctx, &controlv1.SetConsentRequest{Caller: c.caller, State: state})
	return r, refusal(err)
}

// Tools lists the tools for agents.
func (c *Client) Tools(ctx context.Context) ([]*Tool, error) {
	r, err := c.api.ListTools(ctx, &controlv1.ListToolsRequest{Caller: c.caller})
	return r.GetTools(), refusal(err)
}

// Plugins lists the adapters.
func (c *Client) Plugins(ctx context.Context) ([]*Plugin, error) {
	r, err := c.api.ListPlugins(ctx, &controlv1.ListPluginsRequest{Caller: c.caller})
	return r.GetPlugins(), refusal(err)
}

// AddPlugin adds an adapter that the user approved.
func (c *Client) AddPlugin(ctx context.Context, path, sha256 string) (*Plugin, error) {
	r, err := c.api.AddPlugin(ctx, &controlv1.AddPluginRequest{Caller: c.caller, Path: []byte(path), Sha256: sha256})
	return r.GetPlugin(), refusal(err)
}

// RemovePlugin removes an adapter that was added.
func (c *Client) RemovePlugin(ctx context.Context, name string) (*Plugin, error) {
	r, err := c.api.RemovePlugin(ctx, &controlv1.RemovePluginRequest{Caller: c.caller, Name: name})
	return r.GetPlugin(), refusal(err)
}

// Doctor runs the daemon's checks.
func (c *Client) Doctor(ctx context.Context) ([]*Check, error) {
	r, err := c.api.Doctor(ctx, &controlv1.DoctorRequest{Caller: c.caller})
	return r.GetChecks(), refusal(err)
}

// Stop asks the daemon to drain and exit, and returns its process id.
func (c *Client) Stop(ctx context.Context) (int64, error) {
	r, err := c.api.Stop(ctx, &controlv1.StopRequest{Caller: c.caller})
	return r.GetPid(), refusal(err)
}

// LoginEvents are callbacks for the progress of a login, in order. Each may be nil.
type LoginEvents struct {
	Code    func(*Code)
	Opened  func(*Opened)
	Waiting func(*Waiting)
}

// Login links an account. replace allows it to replace a live link to another account or backend. Cancelling ctx stops
// the daemon's polling; Login then fails with context.Canceled once the daemon has discarded the code.
func (c *Client) Login(ctx context.Context, host string, replace bool, on LoginEvents) (*Linked, error) {
	c.serveIO()
	stream, err := c.api.Login(ctx, &controlv1.LoginRequest{Caller: c.caller, ClientHost: host, Replace: replace})
	if err != nil {
		return nil, refusal(err)
	}
	return await(ctx, stream, func(r *controlv1.LoginResponse) (linked *Linked, err error) {
		switch e := r.GetEvent().(type) {
		case *controlv1.LoginResponse_Code:
			tell(on.Code, e.Code)
		case *controlv1.LoginResponse_Opened:
			tell(on.Opened, e.Opened)
		case *controlv1.LoginResponse_Waiting:
			tell(on.Waiting, e.Waiting)
		case *controlv1.LoginResponse_Linked:
			linked = e.Linked
		case *controlv1.LoginResponse_Error:
			err = fromWire(e.Error)
		}
		return linked, err
	})
}

// await reads a stream until on returns a result or an error.
func await[T, R any](ctx context.Context, stream grpc.ServerStreamingClient[T], on func(*T) (*R, error)) (*R, error) {
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil, ended(ctx, err)
		}
		if result, err := on(r); result != nil || err != nil {
			return result, err
		}
	}
}

func tell[T any](hear func(*T), what *T) {
	if hear != nil {
		hear(what)
	}
}

// CallTool calls a tool as an agent would. arguments is a JSON object encoded as text.
func (c *Client) CallTool(ctx context.Context, name, arguments string, progress func(*Progress)) (*Result, error) {
	if !utf8.ValidString(name) || !utf8.ValidString(arguments) {
		return nil, &Error{Code: "invalid_request", Message: "the name or the arguments of the call are not UTF-8",
			FixHint: "Write the arguments as JSON in UTF-8."}
	}
	c.serveIO()
	stream, err := c.api.CallTool(ctx, &controlv1.CallToolRequest{Caller: c.caller, Name: name, Arguments: arguments,
		PrintsNotice: c.printsNotice})
	if err != nil {
		return nil, refusal(err)
	}
	return await(ctx, stream, func(r *controlv1.CallToolResponse) (*Result, error) {
		if p := r.GetProgress(); p != nil {
			tell(progress, p)
		}
		if c.keepNotice(r.GetResult()) {
			_, _ = stream.Recv() // the stream ends once the daemon has recorded that the notice was shown
		}
		return r.GetResult(), nil
	})
}

// OpenLocalSession calls startLocalSimulation for a session that must not outlive this process. The daemon closes the
// session when end is called, when the client is closed and when the process exits.
func (c *Client) OpenLocalSession(ctx context.Context, arguments string) (r *Result, end func(), err error) {
	c.serveIO()
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	asking := context.AfterFunc(ctx, end)
	defer asking()
	stream, err := c.api.OpenLocalSession(held, &controlv1.OpenLocalSessionRequest{
		Caller: c.caller, Arguments: arguments, PrintsNotice: c.printsNotice,
	})
	if err != nil {
		end()
		return nil, nil, refusal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		end()
		return nil, nil, ended(ctx, err)
	}
	c.keepNotice(answer.GetResult())
	return answer.GetResult(), end, nil
}

// keepNotice stores a result's notice and reports whether there is one.
func (c *Client) keepNotice(r *Result) bool {
	text := r.GetNotice()
	if text == "" {
		return false
	}
	c.notice.Store(&text)
	return true
}

// Notice returns the notice for the user from the results so far, or "".
func (c *Client) Notice() string {
	if text := c.notice.Load(); text != nil {
		return *text
	}
	return ""
}

// ended returns why a stream ended before its last message.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, io.EOF):
		return gone("the daemon ended the call without a result")
	}
	return refusal(err)
}
