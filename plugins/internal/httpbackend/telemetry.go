package httpbackend

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/proto/telemetry"
)

// UploadTelemetry uploads a batch of usage events, identified only by the install id.
func (s *Server) UploadTelemetry(
	ctx context.Context, r *pluginv1.UploadTelemetryRequest,
) (*pluginv1.UploadTelemetryResponse, error) {
	if err := installOnly(r.GetTarget()); err != nil {
		return nil, err
	}
	batch := json.RawMessage(r.GetBatch())
	if len(batch) > telemetry.MaxBody || !json.Valid(batch) {
		return nil, unfit("the batch is too large or not JSON", "Send a batch of proto/telemetry.")
	}
	done, err := fetch[receipt](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathTelemetry, unnamed: true, in: batch,
	})
	if err != nil {
		return nil, err
	}
	return &pluginv1.UploadTelemetryResponse{
		Accepted: clamp(*done.Accepted), Duplicates: clamp(*done.Duplicates), Rejected: clamp(*done.Rejected),
	}, nil
}

// PurgeTelemetry deletes the data that the backend has stored under the install id.
func (s *Server) PurgeTelemetry(
	ctx context.Context, r *pluginv1.PurgeTelemetryRequest,
) (*pluginv1.PurgeTelemetryResponse, error) {
	if err := installOnly(r.GetTarget()); err != nil {
		return nil, err
	}
	done, err := fetch[purged](ctx, s.client, request{
		target: r.GetTarget(), method: http.MethodDelete, path: backendapi.PathTelemetry, unnamed: true,
	})
	if err != nil {
		return nil, err
	}
	return &pluginv1.PurgeTelemetryResponse{Deleted: *done.Deleted}, nil
}

// installOnly returns an error for a target with a token, which would tie usage to an account, and for one without an
// install id.
func installOnly(t *pluginv1.Target) error {
	if t.GetBearer() != "" || t.GetInstallId() == "" {
		return unfit("usage events must be sent with an install id and no token", "Set the install id and no bearer.")
	}
	return nil
}
