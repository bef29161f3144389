package control

import (
	"context"
	"fmt"
	"time"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Telemetry is what is recorded about the use of the service, and the first-run notice that tells people of it.
type Telemetry interface {
	Telemetry(ctx context.Context) TelemetryStatus
	// PurgeTelemetry erases it here and at the backend; the error is of this machine.
	PurgeTelemetry(ctx context.Context) (TelemetryPurged, error)
	// TakeNotice claims the notice for one answer; ok is false when it is not due. done must be called once, with
	// whether the answer was sent.
	TakeNotice(ctx context.Context) (text string, done func(sent bool), ok bool)
}

// TelemetryStatus is a state of TelemetryResponse; zero times were never.
type TelemetryStatus struct {
	Consent
	LogFile, BackendURL, LastError string
	NoticeAt, UploadedAt, NextAt   time.Time
	Waiting, Uploaded              int
	Bytes, Cap, Dropped            int64
}

// TelemetryPurged is what an erasure did. Backend is erased, nothing or failed; Err belongs to failed.
type TelemetryPurged struct {
	Local, Waiting, Deleted int64
	Backend                 string
	Err                     error
}

// Telemetry tells what is recorded, what would be uploaded, and which switch decides it.
func (s *Server) Telemetry(ctx context.Context, r *controlv1.TelemetryRequest) (*controlv1.TelemetryResponse, error) {
	t := s.o.Telemetry.Telemetry(withCaller(ctx, r.GetCaller()))
	return &controlv1.TelemetryResponse{
		Consent: consentOut(t.Consent), LogFile: t.LogFile, BackendUrl: t.BackendURL, NoticeMs: milliseconds(t.NoticeAt),
		Waiting: uint32(max(0, t.Waiting)), SpoolBytes: t.Bytes, SpoolCap: t.Cap, Dropped: t.Dropped,
		UploadedMs: milliseconds(t.UploadedAt), Uploaded: uint32(max(0, t.Uploaded)), LastError: t.LastError, NextMs: milliseconds(t.NextAt),
	}, nil
}

// PurgeTelemetry erases what was recorded. A backend that could not be asked is part of the answer, for the rest is
// done then.
func (s *Server) PurgeTelemetry(ctx context.Context, r *controlv1.PurgeTelemetryRequest) (*controlv1.PurgeTelemetryResponse, error) {
	p, err := s.o.Telemetry.PurgeTelemetry(withCaller(ctx, r.GetCaller()))
	if err != nil {
		return nil, failed(purgedElsewhere(p, err))
	}
	out := &controlv1.PurgeTelemetryResponse{Local: p.Local, Waiting: p.Waiting, Backend: p.Backend, BackendDeleted: p.Deleted}
	if p.Err != nil {
		why := errorOf(p.Err)
		if out.Detail = why.GetMessage(); why.GetFixHint() != "" {
			out.Detail += ". " + why.GetFixHint()
		}
	}
	return out, nil
}

// purgedElsewhere adds to an error of this machine what became of the backends' part.
func purgedElsewhere(p TelemetryPurged, err error) error {
	switch {
	case p.Err != nil:
		return fmt.Errorf("%w; nor could every backend erase what it has of this install (%d events are erased): %s", err, p.Deleted, p.Err.Error())
	case p.Backend == "nothing":
		return fmt.Errorf("%w; no backend has any events of this install", err)
	}
	return fmt.Errorf("%w; at the backend all is erased, %d events", err, p.Deleted)
}

// announced sends the result of a tool call, with the first-run notice when it is due. Who went away meanwhile has not
// seen it.
func (s *Server) announced(ctx context.Context, result *controlv1.ToolResult, send func(*controlv1.CallToolResponse) error) error {
	text, done, due := s.o.Telemetry.TakeNotice(ctx)
	if due {
		result.Notice = text
	}
	err := send(&controlv1.CallToolResponse{Event: &controlv1.CallToolResponse_Result{Result: result}})
	if due {
		done(err == nil && ctx.Err() == nil)
	}
	return err
}
