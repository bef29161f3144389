package control

import (
	"context"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/tools"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Telemetry records usage events and manages the first-run notice about them.
type Telemetry interface {
	Telemetry(ctx context.Context) TelemetryStatus
	// PurgeTelemetry erases recorded events on this machine and at the backends. The error concerns this machine only.
	PurgeTelemetry(ctx context.Context) (TelemetryPurged, error)
	// TakeNotice claims the notice for one response; ok is false if no notice is pending. Call done exactly once, with
	// whether the response was sent.
	TakeNotice(ctx context.Context) (text string, done func(sent bool), ok bool)
}

// TelemetryStatus is the state of telemetry; zero times mean never.
type TelemetryStatus struct {
	Consent
	LogFile, BackendURL, LastError string
	NoticeAt, UploadedAt, NextAt   time.Time
	Waiting, Uploaded              int
	Bytes, Cap, Dropped            int64
}

// TelemetryPurged is the outcome of a purge. Backend is erased, nothing or failed; Err is set if it is failed.
type TelemetryPurged struct {
	Local, Waiting, Deleted int64
	Backend                 string
	Err                     error
}

// Telemetry returns what is recorded, what would be uploaded, and which switch decides that.
func (s *Server) Telemetry(ctx context.Context, r *controlv1.TelemetryRequest) (*controlv1.TelemetryResponse, error) {
	t := s.o.Telemetry.Telemetry(withCaller(ctx, r.GetCaller()))
	return &controlv1.TelemetryResponse{
		Consent: consentMessage(t.Consent), LogFile: t.LogFile, BackendUrl: t.BackendURL, NoticeMs: milliseconds(t.NoticeAt),
		Waiting: uint32(max(0, t.Waiting)), SpoolBytes: t.Bytes, SpoolCap: t.Cap, Dropped: t.Dropped,
		UploadedMs: milliseconds(t.UploadedAt), Uploaded: uint32(max(0,
			t.Uploaded)), LastError: t.LastError, NextMs: milliseconds(t.NextAt),
	}, nil
}

// PurgeTelemetry erases recorded events. A backend that could not be reached is reported in the response and not as an
// error, because everything else was erased.
func (s *Server) PurgeTelemetry(ctx context.Context,
	r *controlv1.PurgeTelemetryRequest) (*controlv1.PurgeTelemetryResponse, error) {
	p, err := s.o.Telemetry.PurgeTelemetry(withCaller(ctx, r.GetCaller()))
	if err != nil {
		return nil, statusError(withBackendOutcome(p, err))
	}
	out := &controlv1.PurgeTelemetryResponse{Local: p.Local, Waiting: p.Waiting, Backend: p.Backend,
		BackendDeleted: p.Deleted}
	if p.Err != nil {
		why := errorOf(p.Err)
		if out.Detail = why.GetMessage(); why.GetFixHint() != "" {
			out.Detail += ". " + why.GetFixHint()
		}
	}
	return out, nil
}

// withBackendOutcome adds the backends' outcome to an error of the local purge.
func withBackendOutcome(p TelemetryPurged, err error) error {
	switch {
	case p.Err != nil:
		return fmt.Errorf("%w; not every backend erased its events of this install (erased %d events): %s",
			err, p.Deleted, p.Err.Error())
	case p.Backend == "nothing":
		return fmt.Errorf("%w; no backend has events of this install", err)
	}
	return fmt.Errorf("%w; the backend erased all %d events", err, p.Deleted)
}

// sendWithNotice sends the result of a tool call, together with the first-run notice if it is pending and the client
// prints it. If the client disconnects before the response is sent, the notice stays pending.
func (s *Server) sendWithNotice(ctx context.Context, prints bool, result tools.Result,
	send func(*controlv1.CallToolResponse) error) error {
	message := &controlv1.ToolResult{IsError: result.IsError, Structured: string(result.Structured),
		Images: imageMessages(result)}
	var done func(sent bool)
	due := false
	if prints {
		message.Notice, done, due = s.o.Telemetry.TakeNotice(ctx)
	}
	err := send(&controlv1.CallToolResponse{Event: &controlv1.CallToolResponse_Result{Result: message}})
	if due {
		done(err == nil && ctx.Err() == nil)
	}
	return err
}
