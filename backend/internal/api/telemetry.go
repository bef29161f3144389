package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	wire "github.com/service-dev/service/proto/telemetry"
)

// uploadsPerMinute limits the requests of one address. A daemon sends once a minute, or as soon as it has 200 events,
// and all computers in an office may share one address.
const uploadsPerMinute = 300

// eventsPerMinute limits the events that one address sends, in any number of batches. At this rate one address needs
// days to fill the store; an office sends far fewer events.
const eventsPerMinute = 1200

// retryWhenFull is the time clients wait before they retry if the store is full. The next sweep starts within an hour.
const retryWhenFull = 15 * time.Minute

// telemetryRoutes returns the routes for usage data. They require no credential, because usage data is not tied to an
// account.
func (a *API) telemetryRoutes() []route {
	return []route{
		{method: http.MethodPost, path: backendapi.PathTelemetry, level: anyone, handler: a.uploadTelemetry},
		{method: http.MethodDelete, path: backendapi.PathTelemetry, level: anyone, handler: a.purgeTelemetry},
	}
}

// installOf returns the ID of the install that sends or deletes usage data.
func (a *API) installOf(c *call) (string, error) {
	install := c.Header.Get(backendapi.HeaderInstallID)
	if !validInstallID(install) || len(c.Header.Values(backendapi.HeaderInstallID)) > 1 {
		return "", invalidRequest("the request must contain exactly one valid install id",
			"Send "+backendapi.HeaderInstallID+" once.")
	}
	if err := checkQuery(c.Request, nil); err != nil {
		return "", err
	}
	if wait := a.uploads.Take(a.ClientIP(c.Request)); wait > 0 {
		return "", tooMany(wait)
	}
	return install, nil
}

// uploadTelemetry serves POST /api/telemetry.
func (a *API) uploadTelemetry(c *call) (any, error) {
	install, err := a.installOf(c)
	if err != nil {
		return nil, err
	}
	data, err := readBody(c.w, c.Request, wire.MaxBody)
	if err != nil {
		return nil, err
	}
	batch, err := wire.Decode(data)
	switch {
	case errors.Is(err, wire.ErrTooMany):
		return nil, invalidRequest(err.Error(), "Send it in parts.")
	case err != nil:
		return nil, invalidBody(err.Error())
	}
	if wait := a.events.TakeN(a.ClientIP(c.Request), len(batch.Records)); wait > 0 {
		return nil, tooMany(wait)
	}
	if batch.Dropped > 0 { // the statistics lack these events
		a.Log.InfoContext(c.Context(), "install dropped events before sending them", "events", batch.Dropped)
	}
	done, err := a.Telemetry.Ingest(c.Context(), install, batch.Records)
	if errors.Is(err, telemetry.ErrFull) {
		return nil, &problem.Error{Code: problem.CodeUnavailable, Message: err.Error(), FixHint: "Send them later.",
			RetryAfter: retryWhenFull}
	}
	if err != nil {
		return nil, err
	}
	c.status = http.StatusAccepted
	return backendapi.TelemetryReceipt{Accepted: int64(done.Accepted), Duplicates: int64(done.Duplicates),
		Rejected: int64(done.Rejected + batch.Rejected)}, nil
}

// purgeTelemetry serves DELETE /api/telemetry.
func (a *API) purgeTelemetry(c *call) (any, error) {
	install, err := a.installOf(c)
	if err != nil {
		return nil, err
	}
	deleted, err := a.Telemetry.Purge(c.Context(), install)
	if err != nil {
		return nil, err
	}
	return backendapi.TelemetryPurged{Deleted: deleted}, nil
}
