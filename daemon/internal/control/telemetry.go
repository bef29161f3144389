package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/tools"
	api "github.com/service-dev/service/proto/control"
)

// TelemetryStatus is the state of telemetry. A zero time means never.
type TelemetryStatus struct {
	Consent
	LogFile, BackendURL, LastError string
	NoticeAt, UploadedAt, NextAt   time.Time
	Waiting, Uploaded              int
	Bytes, Cap, Dropped            int64
}

// TelemetryPurged is the outcome of a purge. Backend is erased, nothing or failed. Err is set only for failed.
type TelemetryPurged struct {
	Local, Waiting, Deleted int64
	Backend                 string
	Err                     error
}

// telemetry returns the recorded events, the events to upload, and the switch that decides whether they are.
func (s *Server) telemetry(ctx context.Context, _ api.None) (api.Telemetry, error) {
	t := s.o.Daemon.Telemetry(ctx)
	return api.Telemetry{
		Consent: t.State, UploadAllowed: t.UploadAllowed, DecidedBy: t.DecidedBy, LogFile: t.LogFile,
		BackendURL: t.BackendURL, NoticeShownAt: moment(t.NoticeAt), Waiting: t.Waiting, SpoolBytes: t.Bytes, SpoolCap: t.Cap,
		Dropped: t.Dropped, UploadedAt: moment(t.UploadedAt), Uploaded: t.Uploaded, LastError: t.LastError,
		NextTryAt: moment(t.NextAt),
	}, nil
}

// moment returns t in UTC, rounded to milliseconds, or nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// purgeTelemetry erases recorded events. If a backend could not be reached, the response reports that instead of an
// error, because everything else was erased.
func (s *Server) purgeTelemetry(ctx context.Context, _ api.None) (api.Purged, error) {
	p, err := s.o.Daemon.PurgeTelemetry(ctx)
	if err != nil {
		return api.Purged{}, withBackendOutcome(p, err)
	}
	out := api.Purged{Local: p.Local, Waiting: p.Waiting, Backend: p.Backend, BackendDeleted: p.Deleted}
	if p.Err != nil {
		why := errorOf(p.Err)
		if out.Detail = why.Message; why.FixHint != "" {
			out.Detail += ". " + why.FixHint
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

// sendWithNotice sends the result of a tool call. It adds the first-run notice if the notice is pending and the client
// prints it. If the client disconnects before the result is sent, the notice stays pending.
func (s *Server) sendWithNotice(ctx context.Context, prints bool, result tools.Result,
	send func(api.ToolEvent) error) error {
	out := &api.ToolResult{IsError: result.IsError, Structured: structured(result)}
	for _, image := range result.Images {
		out.Images = append(out.Images, api.ToolImage{MIME: image.MIME, Data: image.Data})
	}
	var done func(sent bool)
	due := false
	if prints {
		out.Notice, done, due = s.o.Daemon.TakeNotice(ctx)
	}
	err := send(api.ToolEvent{Result: out})
	if due {
		done(err == nil && ctx.Err() == nil)
	}
	return err
}

// structured returns the structured content of a result as valid JSON.
func structured(result tools.Result) json.RawMessage {
	text := bytes.ToValidUTF8(result.Structured, []byte("\uFFFD"))
	if !json.Valid(text) {
		return nil
	}
	return text
}
