package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/proto/backendapi"
	wire "github.com/service-dev/service/proto/telemetry"
)

// Telemetry stores the usage events of installs.
type Telemetry interface {
	Ingest(ctx context.Context, installID string, records []wire.Record) (telemetry.Receipt, error)
	Purge(ctx context.Context, installID string) (int64, error)
}

// uploadsPerMinute limits the requests of one address. A daemon sends once a minute, or as soon as it has 200 events,
// and all computers of an office may share one address.
const uploadsPerMinute = 300

// eventsPerMinute limits the events that one address sends, in any number of batches. At this rate one address needs
// days to fill the store; an office sends far fewer events.
const eventsPerMinute = 1200

// retryWhenFull is the time clients wait before they retry if the store is full. The next sweep starts within an hour.
const retryWhenFull = 15 * time.Minute

// telemetryRoutes returns the routes for usage data. They require no credential, because usage data is not tied to an
// account.
func (a *API) telemetryRoutes() []route {
	if a.Telemetry == nil {
		return nil
	}
	return []route{
		{method: http.MethodPost, path: backendapi.PathTelemetry, level: anyone, handler: a.uploadTelemetry},
		{method: http.MethodDelete, path: backendapi.PathTelemetry, level: anyone, handler: a.purgeTelemetry},
	}
}

// installOf returns the ID of the install that sends or deletes usage data.
func (a *API) installOf(c *call) (string, error) {
	install := c.Header.Get(backendapi.HeaderInstallID)
	if !validInstallID(install) || len(c.Header.Values(backendapi.HeaderInstallID)) > 1 {
		return "", invalidRequest("the request must have exactly one valid install id",
			"send "+backendapi.HeaderInstallID+" once")
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
	records, rejected, dropped, err := telemetryRecords(data)
	if err != nil {
		return nil, err
	}
	if wait := a.events.TakeN(a.ClientIP(c.Request), len(records)); wait > 0 {
		return nil, tooMany(wait)
	}
	if dropped > 0 { // the statistics are missing these events
		a.Log.InfoContext(c.Context(), "install dropped events before sending them", "events", dropped)
	}
	done, err := a.Telemetry.Ingest(c.Context(), install, records)
	if errors.Is(err, telemetry.ErrFull) {
		return nil, &Refusal{Code: backendapi.CodeUnavailable, Message: err.Error(), FixHint: "send them later",
			RetryAfter: retryWhenFull}
	}
	if err != nil {
		return nil, err
	}
	c.status = http.StatusAccepted
	return backendapi.TelemetryReceipt{Accepted: int64(done.Accepted), Duplicates: int64(done.Duplicates),
		Rejected: int64(done.Rejected + rejected)}, nil
}

// telemetryRecords decodes a batch. It has a fast path for batches in the form that the daemon sends, and decodes all
// others strictly.
func telemetryRecords(data []byte) (records []wire.Record, rejected int, dropped int64, err error) {
	if records, rejected, dropped, ok := wire.Plain(data); ok {
		return records, rejected, dropped, nil
	}
	if n := bytes.Count(data, []byte("{")); n > 4*wire.MaxBatch {
		return nil, 0, 0, tooManyUploaded() // limits the memory used to decode it
	}
	var b uploaded
	if err := decodeBytes(data, &b); err != nil {
		return nil, 0, 0, err
	}
	if b.Events == nil {
		return nil, 0, 0, invalidBody("the field events is missing")
	}
	if len(b.Events) > wire.MaxBatch {
		return nil, 0, 0, tooManyUploaded()
	}
	if b.Dropped < 0 {
		return nil, 0, 0, invalidBody("the field dropped is below 0")
	}
	for i := range b.Events {
		r, err := b.Events[i].record()
		var refused *Refusal
		if errors.As(err, &refused) {
			return nil, 0, 0, refused
		}
		if err != nil {
			rejected++
			continue
		}
		records = append(records, r)
	}
	return records, rejected, b.Dropped, nil
}

// uploaded is a wire.Batch with undecoded fields. A map would silently keep the last of two equal names.
type uploaded struct {
	Events  []uploadedEvent `json:"events"`
	Dropped int64           `json:"dropped"`
}

type uploadedEvent struct {
	ID     string          `json:"id"`
	At     string          `json:"at"`
	Name   string          `json:"name"`
	Fields json.RawMessage `json:"fields"`
}

// record decodes one event. If it returns a *Refusal, the whole batch is rejected; any other error rejects only the
// event.
func (e *uploadedEvent) record() (wire.Record, error) {
	of := wire.Event{ID: e.ID, At: e.At, Name: e.Name}
	if len(e.Fields) > 0 {
		if err := json.Unmarshal(e.Fields, &of.Fields); err != nil {
			return wire.Record{}, invalidBody("the field events.fields has the wrong type")
		}
	}
	if hasDuplicate(e.Fields) {
		return wire.Record{}, errors.New("a field occurs twice")
	}
	return of.Record()
}

// hasDuplicate reports whether a name occurs twice in an object, even if its two occurrences are escaped differently.
// It ignores nested objects.
func hasDuplicate(object []byte) bool {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return false
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		text, ok := name.(string)
		if err != nil || !ok {
			return false
		}
		if seen[text] {
			return true
		}
		seen[text] = true
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
	}
	return false
}

func tooManyUploaded() error {
	return invalidRequest(fmt.Sprintf("the batch has more than %d events", wire.MaxBatch), "send it in parts")
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
