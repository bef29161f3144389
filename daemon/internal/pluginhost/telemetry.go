package pluginhost

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// UploadTelemetry uploads a batch of usage events, a proto/telemetry.Batch as JSON. Usage is not tied to an account,
// so the target's bearer token is not sent.
func (h *Host) UploadTelemetry(ctx context.Context, t backend.Target,
	batch []byte) (backendapi.TelemetryReceipt, error) {
	req := &pluginv1.UploadTelemetryRequest{Target: anonymous(t), Batch: batch}
	r, err := call(ctx, h, t, pluginv1.BackendClient.UploadTelemetry, req)
	return backendapi.TelemetryReceipt{
		Accepted: int64(r.GetAccepted()), Duplicates: int64(r.GetDuplicates()), Rejected: int64(r.GetRejected()),
	}, err
}

// PurgeTelemetry erases the backend's events for the target's install id and returns the number of erased events.
func (h *Host) PurgeTelemetry(ctx context.Context, t backend.Target) (deleted int64, err error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.PurgeTelemetry, &pluginv1.PurgeTelemetryRequest{Target: anonymous(t)})
	return r.GetDeleted(), err
}

// anonymous returns the target with the install id and no other information about the caller.
func anonymous(t backend.Target) *pluginv1.Target {
	return target(backend.Target{BaseURL: t.BaseURL, InstallID: t.InstallID})
}
