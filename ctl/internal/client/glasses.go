package client

import (
	"context"

	"github.com/service-dev/service/proto/control"
)

// Glasses is one pair of real glasses.
type Glasses = control.KnownGlasses

// Panel describes the panel of a pair of glasses, as entered by the user.
type Panel = control.Panel

// Glasses lists the remembered real glasses. If seconds is not 0, it also searches for that long and adds the glasses
// in range. If the search fails, it returns the remembered glasses and a *problem.Error.
func (c *Client) Glasses(ctx context.Context, seconds int) ([]Glasses, error) {
	r, err := call(ctx, c, control.ListGlasses, control.GlassesRequest{Seconds: seconds})
	switch {
	case err != nil:
		return nil, err
	case r.Problem != nil:
		return r.Glasses, refusal(r.Problem)
	}
	return r.Glasses, nil
}

// DisconnectGlasses closes this directory's sessions with real glasses and returns their ids.
func (c *Client) DisconnectGlasses(ctx context.Context) ([]string, error) {
	r, err := call(ctx, c, control.DisconnectGlasses, none)
	if err != nil {
		return nil, err
	}
	return r.SessionIDs, nil
}

// SetPanel stores the user's description of the panel of a session's glasses. If it affects how pictures are drawn, the
// session reconnects to the glasses by itself.
func (c *Client) SetPanel(ctx context.Context, sessionID string, p *Panel) error {
	_, err := call(ctx, c, control.SetPanel, control.PanelRequest{SessionID: sessionID, Panel: *p})
	return err
}

// ForgetGlasses forgets the glasses with this name, ignoring case.
func (c *Client) ForgetGlasses(ctx context.Context, name string) error {
	_, err := call(ctx, c, control.ForgetGlasses, control.NameRequest{Name: name})
	return err
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
