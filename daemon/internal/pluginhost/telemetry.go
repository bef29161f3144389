package pluginhost

import (
	"context"
	"encoding/json"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

// UploadTelemetry uploads a batch of usage events (proto/telemetry.Batch, as JSON). Usage is not tied to an account, so
// the target's bearer token is not sent.
func (h *Host) UploadTelemetry(ctx context.Context, t backend.Target,
	batch []byte) (backendapi.TelemetryReceipt, error) {
	return fetch[backendapi.TelemetryReceipt](ctx, h, anonymous(t),
		request{route: backendapi.RouteUploadTelemetry, body: json.RawMessage(batch)})
}

// PurgeTelemetry erases the backend's events for the target's install id and returns the number of erased events.
func (h *Host) PurgeTelemetry(ctx context.Context, t backend.Target) (deleted int64, err error) {
	r, err := fetch[backendapi.TelemetryPurged](ctx, h, anonymous(t), request{route: backendapi.RoutePurgeTelemetry})
	return r.Deleted, err
}

// anonymous returns the target with the install id and no other information about the caller.
func anonymous(t backend.Target) backend.Target {
	return backend.Target{BaseURL: t.BaseURL, InstallID: t.InstallID}
}
