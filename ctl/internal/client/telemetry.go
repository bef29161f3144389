package client

import (
	"context"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

type (
	// Telemetry describes what is recorded and where it is sent.
	Telemetry = controlv1.TelemetryResponse
	// Purged is the result of PurgeTelemetry.
	Purged = controlv1.PurgeTelemetryResponse
)

// Telemetry returns what is recorded and where it is sent.
func (c *Client) Telemetry(ctx context.Context) (*Telemetry, error) {
	r, err := c.api.Telemetry(ctx, &controlv1.TelemetryRequest{Caller: c.caller})
	return r, refusal(err)
}

// PurgeTelemetry erases recorded events, on this machine and at the backends.
func (c *Client) PurgeTelemetry(ctx context.Context) (*Purged, error) {
	r, err := c.api.PurgeTelemetry(ctx, &controlv1.PurgeTelemetryRequest{Caller: c.caller})
	return r, refusal(err)
}
