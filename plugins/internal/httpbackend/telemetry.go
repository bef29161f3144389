package httpbackend

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/proto/telemetry"
)

// UploadTelemetry hands a batch of usage events over, under the install id alone.
func (s *Server) UploadTelemetry(ctx context.Context, r *pluginv1.UploadTelemetryRequest) (*pluginv1.UploadTelemetryResponse, error) {
	if err := installOnly(r.GetTarget()); err != nil {
		return nil, err
	}
	batch := json.RawMessage(r.GetBatch())
	if len(batch) > telemetry.MaxBody || !json.Valid(batch) {
		return nil, unfit("the batch is not JSON of a size that a backend takes", "Send a batch of proto/telemetry.")
	}
	var done receipt
	err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodPost, path: backendapi.PathTelemetry, unnamed: true, in: batch, out: &done})
	if err != nil {
		return nil, err
	}
	return &pluginv1.UploadTelemetryResponse{Accepted: clamp(*done.Accepted), Duplicates: clamp(*done.Duplicates), Rejected: clamp(*done.Rejected)}, nil
}

// PurgeTelemetry erases what the backend holds of the install id.
func (s *Server) PurgeTelemetry(ctx context.Context, r *pluginv1.PurgeTelemetryRequest) (*pluginv1.PurgeTelemetryResponse, error) {
	if err := installOnly(r.GetTarget()); err != nil {
		return nil, err
	}
	var done purged
	err := s.do(ctx, request{target: r.GetTarget(), method: http.MethodDelete, path: backendapi.PathTelemetry, unnamed: true, out: &done})
	if err != nil {
		return nil, err
	}
	return &pluginv1.PurgeTelemetryResponse{Deleted: *done.Deleted}, nil
}

// installOnly refuses a target that would tie usage to an account, and one that is nobody's.
func installOnly(t *pluginv1.Target) error {
	if t.GetBearer() != "" || t.GetInstallId() == "" {
		return unfit("usage events are sent under an install id alone", "Name the install id, and no token.")
	}
	return nil
}

type receipt struct {
	Accepted   *int64 `json:"accepted"`
	Duplicates *int64 `json:"duplicates"`
	Rejected   *int64 `json:"rejected"`
}

func (r *receipt) check() error { return counts(r.Accepted, r.Duplicates, r.Rejected) }

type purged struct {
	Deleted *int64 `json:"deleted"`
}

func (p *purged) check() error { return counts(p.Deleted) }

func counts(all ...*int64) error {
	for _, n := range all {
		switch {
		case n == nil:
			return errIncomplete
		case *n < 0:
			return errors.New("a count is below 0")
		}
	}
	return nil
}
