package pluginhost

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// UploadTelemetry hands a batch of usage events over, a proto/telemetry.Batch as JSON. Usage is not tied to an account:
// a target with a bearer loses it here.
func (h *Host) UploadTelemetry(ctx context.Context, t backend.Target, batch []byte) (backend.TelemetryReceipt, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.UploadTelemetry, &pluginv1.UploadTelemetryRequest{Target: anonymous(t), Batch: batch})
	if err != nil {
		return backend.TelemetryReceipt{}, err
	}
	return backend.TelemetryReceipt{Accepted: int(r.GetAccepted()), Duplicates: int(r.GetDuplicates()), Rejected: int(r.GetRejected())}, nil
}

// PurgeTelemetry erases what the backend holds of the target's install id and tells how many events that were.
func (h *Host) PurgeTelemetry(ctx context.Context, t backend.Target) (deleted int64, err error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.PurgeTelemetry, &pluginv1.PurgeTelemetryRequest{Target: anonymous(t)})
	return r.GetDeleted(), err
}

// anonymous is the target with the install id and nothing else of the caller.
func anonymous(t backend.Target) *pluginv1.Target {
	return target(backend.Target{BaseURL: t.BaseURL, InstallID: t.InstallID})
}
