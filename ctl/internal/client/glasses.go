package client

import (
	"context"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Glasses is one pair of real glasses.
type Glasses = controlv1.Glasses

// Glasses lists the remembered real glasses and, if seconds is not 0, those in range after looking for that long. If
// looking for them fails, it returns the remembered ones and an *Error.
func (c *Client) Glasses(ctx context.Context, seconds int) ([]*Glasses, error) {
	r, err := c.api.ListGlasses(ctx, &controlv1.ListGlassesRequest{Caller: c.caller, Seconds: uint32(seconds)})
	if err == nil && r.GetProblem() != nil {
		return r.GetGlasses(), fromWire(r.GetProblem())
	}
	return r.GetGlasses(), refusal(err)
}

// DisconnectGlasses closes the sessions of real glasses of this directory and returns their ids.
func (c *Client) DisconnectGlasses(ctx context.Context) ([]string, error) {
	r, err := c.api.DisconnectGlasses(ctx, &controlv1.DisconnectGlassesRequest{Caller: c.caller})
	return r.GetSessionIds(), refusal(err)
}

// Panel is what a person said about the panel of a pair.
type Panel = controlv1.Panel

// SetPanel stores what a person said about the panel of a session's glasses. If that changes their pictures, the
// session connects them again by itself.
func (c *Client) SetPanel(ctx context.Context, sessionID string, p *Panel) error {
	_, err := c.api.SetPanel(ctx, &controlv1.SetPanelRequest{Caller: c.caller, SessionId: sessionID, Panel: p})
	return refusal(err)
}

// ForgetGlasses forgets the pair with this name, ignoring case.
func (c *Client) ForgetGlasses(ctx context.Context, name string) error {
	_, err := c.api.ForgetGlasses(ctx, &controlv1.ForgetGlassesRequest{Caller: c.caller, Name: name})
	return refusal(err)
}
