package client

import (
	"context"
	"unicode/utf8"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/control"
)

var none = control.None{}

// Status returns the state of the daemon.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return call(ctx, c, control.GetStatus, none)
}

// Whoami returns the install and its link, from the stored check or after checking with the backend.
func (c *Client) Whoami(ctx context.Context, refresh bool) (*Identity, error) {
	return call(ctx, c, control.Whoami, control.WhoamiRequest{Refresh: refresh})
}

// Logout deletes the link.
func (c *Client) Logout(ctx context.Context) (*LoggedOut, error) {
	return call(ctx, c, control.Logout, none)
}

// SetConsent records the telemetry decision, "accepted" or "declined".
func (c *Client) SetConsent(ctx context.Context, state string) (*Decision, error) {
	return call(ctx, c, control.SetConsent, control.ConsentRequest{State: state})
}

// Telemetry returns what is recorded and where it is sent.
func (c *Client) Telemetry(ctx context.Context) (*Telemetry, error) {
	return call(ctx, c, control.GetTelemetry, none)
}

// PurgeTelemetry erases recorded events, on this machine and at the backends.
func (c *Client) PurgeTelemetry(ctx context.Context) (*Purged, error) {
	return call(ctx, c, control.PurgeTelemetry, none)
}

var errNotUTF8 = &problem.Error{Code: "invalid_request", Message: "the e-mail address or the password is not UTF-8",
	FixHint: "Use a terminal or a file in UTF-8."}

// LocalAccounts lists the first accounts of the embedded backend, oldest first. With an email address it returns only
// the matching account, or none.
func (c *Client) LocalAccounts(ctx context.Context, email string) ([]LocalAccount, error) {
	if !utf8.ValidString(email) {
		return nil, errNotUTF8
	}
	r, err := call(ctx, c, control.ListAccounts, control.AccountsRequest{Email: email})
	if err != nil {
		return nil, err
	}
	return r.Accounts, nil
}

// ResetPassword sets a new password for an account of the embedded backend.
func (c *Client) ResetPassword(ctx context.Context, p NewPassword) (*PasswordReset, error) {
	if !utf8.ValidString(p.Email) || !utf8.ValidString(p.Password) {
		return nil, errNotUTF8
	}
	return call(ctx, c, control.ResetPassword, p)
}

// Tools lists the tools for agents.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	r, err := call(ctx, c, control.ListTools, none)
	if err != nil {
		return nil, err
	}
	return r.Tools, nil
}

// Plugins lists the adapters.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	r, err := call(ctx, c, control.ListPlugins, none)
	if err != nil {
		return nil, err
	}
	return r.Plugins, nil
}

// AddPlugin adds an adapter that the user approved.
func (c *Client) AddPlugin(ctx context.Context, path, sha256 string) (*Plugin, error) {
	r, err := call(ctx, c, control.AddPlugin, control.AddPluginRequest{Path: []byte(path), SHA256: sha256})
	if err != nil {
		return nil, err
	}
	return &r.Plugin, nil
}

// RemovePlugin removes an adapter that was added.
func (c *Client) RemovePlugin(ctx context.Context, name string) (*Plugin, error) {
	r, err := call(ctx, c, control.RemovePlugin, control.NameRequest{Name: name})
	if err != nil {
		return nil, err
	}
	return &r.Plugin, nil
}

// Fonts lists the fonts that the user added.
func (c *Client) Fonts(ctx context.Context) ([]Font, error) {
	r, err := call(ctx, c, control.ListFonts, none)
	if err != nil {
		return nil, err
	}
	return r.Fonts, nil
}

// AddFont adds the font in data, the content of a font file.
func (c *Client) AddFont(ctx context.Context, data []byte) (*Font, error) {
	response, err := c.send(ctx, control.AddFont.Route, data) //nolint:bodyclose // answerOf closes it
	if err != nil {
		return nil, err
	}
	r, err := answerOf[control.FontAnswer](ctx, response)
	if err != nil {
		return nil, err
	}
	return &r.Font, nil
}

// RemoveFont removes the font with this name, or the one whose SHA-256 begins with it.
func (c *Client) RemoveFont(ctx context.Context, name string) (*Font, error) {
	r, err := call(ctx, c, control.RemoveFont, control.NameRequest{Name: name})
	if err != nil {
		return nil, err
	}
	return &r.Font, nil
}

// Doctor runs the daemon's checks.
func (c *Client) Doctor(ctx context.Context) ([]Check, error) {
	r, err := call(ctx, c, control.RunDoctor, none)
	if err != nil {
		return nil, err
	}
	return r.Checks, nil
}

// Stop asks the daemon to drain and exit, and returns its process id.
func (c *Client) Stop(ctx context.Context) (int, error) {
	r, err := call(ctx, c, control.Stop, none)
	if err != nil {
		return 0, err
	}
	return r.PID, nil
}
