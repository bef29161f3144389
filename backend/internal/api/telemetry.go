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

// Telemetry keeps what installs tell about their use.
type Telemetry interface {
	Ingest(ctx context.Context, installID string, records []wire.Record) (telemetry.Receipt, error)
	Purge(ctx context.Context, installID string) (int64, error)
}

// uploadsPerMinute is what one address may send or erase: a daemon sends once a minute, or when it has 200 events, and
// an office of them shares an address.
const uploadsPerMinute = 300

// eventsPerMinute is how many events of one address are taken, several batches at once among them. One address alone
// needs days to fill the store, and an office sends far less.
const eventsPerMinute = 1200

// waitForRoom is told when no more events can be kept; the next sweep is an hour away at most.
const waitForRoom = 15 * time.Minute

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
	if !validInstallID(install) || len(c.Header.Values(backendapi.HeaderInstallID)) > 1 {
		return "", refusal(backendapi.CodeInvalidRequest, "the request carries no valid install id, or several", "send "+backendapi.HeaderInstallID+" once")
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
	if wait := a.events.TakeN(a.ClientIP(c.Request), len(records)); wait > 0 {
		return nil, tooMany(wait)
	}
	if dropped > 0 { // so that whoever counts knows that something is missing
		a.Log.InfoContext(c.Context(), "an install lost events before it could send them", "events", dropped)
	}
	done, err := a.Telemetry.Ingest(c.Context(), install, records)
	if errors.Is(err, telemetry.ErrFull) {
		return nil, &Refusal{Code: backendapi.CodeUnavailable, Message: err.Error(), FixHint: "send them later", RetryAfter: waitForRoom}
	}
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

// uploaded is a wire.Batch whose fields are not read yet: in a map the last of two with one name would win.
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

// record reads one event. A Refusal is of the whole batch.
func (e *uploadedEvent) record() (wire.Record, error) {
	of := wire.Event{ID: e.ID, At: e.At, Name: e.Name}
	if len(e.Fields) > 0 {
		if err := json.Unmarshal(e.Fields, &of.Fields); err != nil {
			return wire.Record{}, invalidBody("the field events.fields has the wrong type")
		}
	}
	if twice(e.Fields) {
		return wire.Record{}, errors.New("a field stands twice")
	}
	return of.Record()
}

// twice tells whether a name stands twice in an object, however it is spelled; in an object inside it none is looked at.
func twice(object []byte) bool {
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
