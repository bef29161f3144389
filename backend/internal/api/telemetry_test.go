package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/proto/backendapi"
	wire "github.com/service-dev/service/proto/telemetry"
)

// upload sends a body as an install. headers are pairs of name and value.
func (w *world) upload(body string, headers ...string) answer {
	w.Helper()
	return w.call("POST", backendapi.PathTelemetry, body,
		append([]string{backendapi.HeaderInstallID, installID}, headers...)...)
}

// receipt checks the response to an upload.
func (a answer) receipt(accepted, duplicates, rejected int64) {
	a.t.Helper()
	var got backendapi.TelemetryReceipt
	a.is(http.StatusAccepted).into(&got)
	if want := (backendapi.TelemetryReceipt{Accepted: accepted, Duplicates: duplicates, Rejected: rejected}); got != want {
		a.t.Errorf("%s: got receipt %+v, want %+v", a.what, got, want)
	}
}

// used returns a usage event with the current time.
func (w *world) used(name, fields string) string {
	if fields != "" {
		fields = `,"fields":` + fields
	}
	return fmt.Sprintf(`{"id":%q,"at":%q,"name":%q%s}`, uuid.Must(uuid.NewV7()), w.now().Format(wire.AtLayout), name,
		fields)
}

func batchOf(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }

func TestTelemetry_CountsEachEventOnce(t *testing.T) {
	w := newWorld(t)
	body := batchOf(w.used(wire.ToolCalled, `{"tool":"whoAmI","outcome":"ok","durationMs":3,"client":"claude-code"}`),
		w.used(wire.Linked, ""))
	w.upload(body).receipt(2, 0, 0)
	w.upload(body).receipt(0, 2, 0)
	w.pass(26 * time.Hour) // the upload is repeated after an outage of the backend
	w.upload(body).receipt(0, 2, 0)
	w.upload(`{"events":[]}`).receipt(0, 0, 0)
	w.upload(`{"events":[],"dropped":12}`).receipt(0, 0, 0)
	w.upload(`{ "dropped": 1, "events": [ `+w.used(wire.Linked, "")+` ] }`).receipt(1, 0, 0)
	if log := w.log.String(); !strings.Contains(log, `"events":12}`) || strings.Count(log, "install dropped events") != 2 {
		t.Errorf("got log %s, want both reports of dropped events", log)
	}
}

// An invalid event is rejected. The other events of its batch are stored.
func TestTelemetry_RejectsSingleEvents(t *testing.T) {
	w := newWorld(t)
	good := w.used(wire.Linked, "")
	at := func(ago time.Duration) string {
		return strings.Replace(w.used(wire.Linked, ""), w.now().Format(wire.AtLayout),
			w.now().Add(-ago).Format(wire.AtLayout), 1)
	}
	bad := []string{
		w.used("keyboard.typed", ""), w.used("", ""), w.used(wire.ToolCalled, `{"path":"/home/ada/secret"}`),
		w.used(wire.ToolCalled, `{"tool":{"deep":[1,null]}}`),
		w.used(wire.ToolCalled, `{"tool":"a","tool":"b"}`),
		w.used(wire.ToolCalled, `{"tool":"a","durationMs":1,"t\u006fol":"b"}`),
		w.used(wire.ToolCalled, `{"durationMs":-1}`), w.used(wire.ToolCalled, `{"tool":"a\u0000b"}`),
		w.used(wire.Linked, `{"account":"ada"}`),
		`{"id":"1","at":"` + w.now().Format(wire.AtLayout) + `","name":"account.linked"}`, `{}`, `null`,
		strings.Replace(w.used(wire.Linked, ""), w.now().Format(wire.AtLayout), "yesterday", 1), at(91 * 24 * time.Hour),
		at(-48 * time.Hour),
	}
	w.upload(batchOf(append(bad, good)...)).receipt(1, 0, int64(len(bad)))
	w.upload(batchOf(good, good, w.used(wire.Linked, ""))).receipt(1, 2, 0)
	w.upload(batchOf(at(89*24*time.Hour), at(-time.Hour))).receipt(2, 0, 0)
}

func TestTelemetryRefusals(t *testing.T) {
	w := newWorld(t)
	one := w.used(wire.Linked, "")
	for what, body := range map[string]string{
		"no JSON": `{"events":[`, "an array": `[]`, "an unknown field": `{"events":[],"user":"ada"}`,
		"an unknown field of an event": batchOf(strings.Replace(one, `"name"`, `"account":"ada","name"`, 1)),
		"another case":                 `{"Events":[]}`, "a field twice": `{"events":[],"events":[]}`,
		"something behind it":    `{"events":[]}{}`,
		"an id that is a number": batchOf(`{"id":7}`),
		"too many":               batchOf(strings.Split(strings.TrimSuffix(strings.Repeat(one+"\n", wire.MaxBatch+1), "\n"), "\n")...),
		"null":                   `null`, "nothing": `{}`, "null for events": `{"events":null}`, "a loss alone": `{"dropped":3}`,
		"fields that are a list": batchOf(strings.Replace(one, `"account.linked"`, `"account.linked","fields":[]`, 1)),
		"a loss below zero":      `{"events":[],"dropped":-1}`, "very many": `{"events":[` + strings.Repeat(`{},`, 5000) +
			`{}]}`,
	} {
		if p := w.upload(body).problem(http.StatusBadRequest, "invalid_request"); p.Retryable {
			t.Errorf("%s: got a retryable problem, want one that is not retryable", what)
		}
	}
	w.upload(batchOf(strings.Repeat(" ", wire.MaxBody))).problem(http.StatusRequestEntityTooLarge, "request_too_large")
	w.upload(batchOf(), "Content-Type", "text/plain").problem(http.StatusUnsupportedMediaType, "unsupported_media")
	for _, id := range []string{"", "inst_", "inst_x y z", "ada", "inst_" + strings.Repeat("x", 65)} {
		w.call("POST", backendapi.PathTelemetry, batchOf(one), backendapi.HeaderInstallID, id).problem(http.StatusBadRequest,
			"invalid_request")
		w.call("DELETE", backendapi.PathTelemetry, "", backendapi.HeaderInstallID, id).problem(http.StatusBadRequest,
			"invalid_request")
	}
	for _, method := range []string{"POST", "DELETE"} {
		two := httptest.NewRequest(method, backendapi.PathTelemetry, strings.NewReader(batchOf(one)))
		two.Header.Set("Content-Type", "application/json")
		two.Header[backendapi.HeaderInstallID] = []string{installID, "inst_other456789"}
		got := httptest.NewRecorder()
		if w.mux.ServeHTTP(got, two); got.Code != http.StatusBadRequest {
			t.Errorf("%s with two install IDs: got status %d, want 400", method, got.Code)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(batchOf(one)))
	z.Close()
	w.upload(packed.String(), "Content-Encoding", "gzip").problem(http.StatusBadRequest, "invalid_request")
	w.upload(batchOf(one)).receipt(1, 0, 0) // nothing above was stored
}

// Uploaded usage cannot be traced to an account. A bearer token sent with it is ignored, and no row refers to the
// account or its link.
func TestTelemetry_IsAnonymous(t *testing.T) {
	w := newWorld(t)
	token := w.link()
	w.upload(batchOf(w.used(wire.Linked, "")), "Authorization", "Bearer "+token).receipt(1, 0, 0)
	w.upload(batchOf(w.used(wire.Linked, "")), "Authorization", "Bearer garbage").receipt(1, 0, 0)
	w.call("POST", backendapi.PathTelemetry, batchOf(), "Authorization", "Bearer "+token).problem(http.StatusBadRequest,
		"invalid_request")
	var kept []byte
	files, _ := filepath.Glob(w.file + "*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, data...)
	}
	for what, text := range map[string]string{"database": string(kept), "log": w.log.String()} {
		if strings.Contains(text, installID) || strings.Contains(text, token) {
			t.Errorf("the %s contains the install ID or the token", what)
		}
	}
	if !strings.Contains(string(kept), wire.Linked) {
		t.Error("the search does not find the stored event")
	}
}

func TestTelemetry_PurgeErasesOneInstall(t *testing.T) {
	w := newWorld(t)
	const other = "inst_other456789"
	old := strings.Replace(w.used(wire.Linked, ""), w.now().Format(wire.AtLayout),
		w.now().Add(-80*24*time.Hour).Format(wire.AtLayout), 1)
	w.upload(batchOf(w.used(wire.Linked, ""), old)).receipt(2, 0, 0)
	w.call("POST", backendapi.PathTelemetry, batchOf(w.used(wire.Linked, "")), backendapi.HeaderInstallID,
		other).receipt(1, 0, 0)
	for _, c := range []struct {
		install string
		want    int64
	}{{installID, 2}, {installID, 0}, {other, 1}} {
		var got backendapi.TelemetryPurged
		w.call("DELETE", backendapi.PathTelemetry, "", backendapi.HeaderInstallID, c.install).is(http.StatusOK).into(&got)
		if got.Deleted != c.want {
			t.Errorf("%s: got %d events deleted, want %d", c.install, got.Deleted, c.want)
		}
	}
}

func TestTelemetry_IsLimitedPerAddress(t *testing.T) {
	w := newWorld(t)
	from := []string{backendapi.HeaderInstallID, installID, ipHeader, "192.0.2.1"}
	for range uploadsPerMinute {
		w.call("POST", backendapi.PathTelemetry, batchOf(), from...).receipt(0, 0, 0)
	}
	for _, method := range []string{"POST", "DELETE"} {
		got := w.call(method, backendapi.PathTelemetry, batchOf(), from...)
		p := got.problem(http.StatusTooManyRequests, "rate_limited")
		if wait, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 || !p.Retryable {
			t.Errorf("%s: got Retry-After %q, problem %+v, want 1 to 60 s and retryable", method, got.header.Get("Retry-After"),
				p)
		}
	}
	w.upload(batchOf(), ipHeader, "192.0.2.2").receipt(0, 0, 0)
	w.pass(time.Second)
	w.upload(batchOf(), from...).receipt(0, 0, 0)
}

// An address cannot fill the disk with full batches.
func TestTelemetry_EventsAreLimitedPerAddress(t *testing.T) {
	w := newWorld(t)
	full := make([]string, wire.MaxBatch)
	upload := func(address string) answer {
		for i := range full {
			full[i] = w.used(wire.Linked, "")
		}
		return w.upload(batchOf(full...), ipHeader, address)
	}
	for range eventsPerMinute / wire.MaxBatch {
		upload("192.0.2.1").receipt(wire.MaxBatch, 0, 0)
	}
	got := upload("192.0.2.1")
	p := got.problem(http.StatusTooManyRequests, "rate_limited")
	if wait, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 || !p.Retryable {
		t.Errorf("got Retry-After %q, problem %+v, want 1 to 60 s and retryable", got.header.Get("Retry-After"), p)
	}
	w.upload(batchOf(), ipHeader, "192.0.2.1").receipt(0, 0, 0)
	upload("192.0.2.2").receipt(wire.MaxBatch, 0, 0)
	w.pass(wire.MaxBatch * time.Minute / eventsPerMinute)
	upload("192.0.2.1").receipt(wire.MaxBatch, 0, 0)
}

// If the store is full, the response contains the reason and when to retry.
func TestTelemetry_RefusesEventsWhenFull(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Telemetry.MaxRows = 3 })
	w.upload(batchOf(w.used(wire.Linked, ""), w.used(wire.Linked, ""), w.used(wire.Linked, ""))).receipt(3, 0, 0)
	got := w.upload(batchOf(w.used(wire.Linked, "")))
	if p := got.problem(http.StatusServiceUnavailable, "unavailable"); got.header.Get("Retry-After") != "900" ||
		!p.Retryable {
		t.Errorf("got Retry-After %q, problem %+v, want 900 and retryable", got.header.Get("Retry-After"), p)
	}
	w.call("DELETE", backendapi.PathTelemetry, "", backendapi.HeaderInstallID, installID).is(http.StatusOK)
	w.upload(batchOf(w.used(wire.Linked, ""))).receipt(1, 0, 0)
}
