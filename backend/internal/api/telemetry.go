package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/proto/backendapi"
	wire "github.com/service-dev/service/proto/telemetry"
)

// Telemetry keeps what installs tell about their use.
type Telemetry interface {
	Ingest(ctx context.Context, installID string, records []wire.Record) (telemetry.Receipt, error)
	Purge(ctx context.Context, installID string) (int64, error)
}

// uploadsPerMinute is what one address may send or erase: a daemon sends once a minute, or when it has 200 events, and
// an office of them shares an address.
const uploadsPerMinute = 300

// telemetryRoutes take usage data. They look at no credential: usage is not tied to an account.
func (a *API) telemetryRoutes() []route {
	if a.Telemetry == nil {
		return nil
	}
	return []route{
		{method: http.MethodPost, path: backendapi.PathTelemetry, door: anyone, handler: a.uploadTelemetry},
		{method: http.MethodDelete, path: backendapi.PathTelemetry, door: anyone, handler: a.purgeTelemetry},
	}
}

// uploading gives the install that a request speaks for.
func (a *API) uploading(c *call) (string, error) {
	install := c.Header.Get(backendapi.HeaderInstallID)
	if !validInstallID(install) {
		return "", refusal(backendapi.CodeInvalidRequest, "the request carries no valid install id", "send "+backendapi.HeaderInstallID)
	}
	if err := knownQuery(c.Request, nil); err != nil {
		return "", err
	}
	if wait := a.uploads.Take(a.ClientIP(c.Request)); wait > 0 {
		return "", tooMany(wait)
	}
	return install, nil
}

// uploadTelemetry is POST /api/telemetry.
func (a *API) uploadTelemetry(c *call) (any, error) {
	install, err := a.uploading(c)
	if err != nil {
		return nil, err
	}
	data, err := readWithin(c.w, c.Request, wire.MaxBody)
	if err != nil {
		return nil, err
	}
	records, rejected, dropped, err := telemetryRecords(data)
	if err != nil {
		return nil, err
	}
	if dropped > 0 { // so that whoever counts knows that something is missing
		a.Log.InfoContext(c.Context(), "an install lost events before it could send them", "events", dropped)
	}
	done, err := a.Telemetry.Ingest(c.Context(), install, records)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusAccepted
	return backendapi.TelemetryReceipt{Accepted: int64(done.Accepted), Duplicates: int64(done.Duplicates), Rejected: int64(done.Rejected + rejected)}, nil
}

// telemetryRecords reads a batch: the short way where it was written as our daemons do, else strictly.
func telemetryRecords(data []byte) (records []wire.Record, rejected int, dropped int64, err error) {
	if records, rejected, dropped, ok := wire.Plain(data); ok {
		return records, rejected, dropped, nil
	}
	if n := bytes.Count(data, []byte("{")); n > 4*wire.MaxBatch {
		return nil, 0, 0, tooManyUploaded() // so that no body unfolds into much memory
	}
	var b wire.Batch
	if err := decodeBytes(data, &b); err != nil {
		return nil, 0, 0, err
	}
	if len(b.Events) > wire.MaxBatch {
		return nil, 0, 0, tooManyUploaded()
	}
	if b.Dropped < 0 {
		return nil, 0, 0, invalidBody("the field dropped is below 0")
	}
	for i := range b.Events {
		r, err := b.Events[i].Record()
		if err != nil {
			rejected++
			continue
		}
		records = append(records, r)
	}
	return records, rejected, b.Dropped, nil
}

func tooManyUploaded() error {
	return refusal(backendapi.CodeInvalidRequest, fmt.Sprintf("the batch has more than %d events", wire.MaxBatch), "send it in parts")
}

// purgeTelemetry is DELETE /api/telemetry.
func (a *API) purgeTelemetry(c *call) (any, error) {
	install, err := a.uploading(c)
	if err != nil {
		return nil, err
	}
	deleted, err := a.Telemetry.Purge(c.Context(), install)
	if err != nil {
		return nil, err
	}
	return backendapi.TelemetryPurged{Deleted: deleted}, nil
}
