package client

import (
	"context"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Glasses is one pair of real glasses.
type Glasses = controlv1.Glasses

// Glasses lists the remembered real glasses. If seconds is not 0, it also searches for that long and adds the glasses
// in range. If the search fails, it returns the remembered glasses and an *Error.
func (c *Client) Glasses(ctx context.Context, seconds int) ([]*Glasses, error) {
	r, err := c.api.ListGlasses(ctx, &controlv1.ListGlassesRequest{Caller: c.caller, Seconds: uint32(seconds)})
	if err == nil && r.GetProblem() != nil {
		return r.GetGlasses(), fromWire(r.GetProblem())
	}
	return r.GetGlasses(), refusal(err)
}

// DisconnectGlasses closes this directory's sessions with real glasses and returns their ids.
func (c *Client) DisconnectGlasses(ctx context.Context) ([]string, error) {
	r, err := c.api.DisconnectGlasses(ctx, &controlv1.DisconnectGlassesRequest{Caller: c.caller})
	return r.GetSessionIds(), refusal(err)
}

// Panel describes the panel of a pair of glasses, as entered by the user.
type Panel = controlv1.Panel

// SetPanel stores the user's description of the panel of a session's glasses. If it affects how pictures are drawn, the
// session reconnects to the glasses by itself.
func (c *Client) SetPanel(ctx context.Context, sessionID string, p *Panel) error {
	_, err := c.api.SetPanel(ctx, &controlv1.SetPanelRequest{Caller: c.caller, SessionId: sessionID, Panel: p})
	return refusal(err)
}

// ForgetGlasses forgets the glasses with this name, ignoring case.
func (c *Client) ForgetGlasses(ctx context.Context, name string) error {
	_, err := c.api.ForgetGlasses(ctx, &controlv1.ForgetGlassesRequest{Caller: c.caller, Name: name})
	return refusal(err)
}

// GlassesState is the state of real glasses in the results of tools.
type GlassesState struct {
	Name, Carrier, URL string
	Notice             string
	Steps              []string
	Links              []GlassesLink
	Problem            *struct{ Code, Message, FixHint string }
}

// GlassesLink is the Bluetooth connection to one part of a pair of glasses.
type GlassesLink struct {
	Key, State, Firmware string
	RSSI, BatteryPercent int
}
