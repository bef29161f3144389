package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

func TestAdminTelemetry_Summarises(t *testing.T) {
	d := newDesk(t)
	usage := func(args ...string) (code int, out, errs string) {
		return run(append([]string{"admin", "--database", d.file, "telemetry"}, args...)...)
	}
	if code, out, errs := usage(); code != 0 || out != "no usage events\n" {
		t.Errorf("without events: got exit code %d, %q, %q", code, out, errs)
	}
	if code, out, errs := usage("--json"); code != 0 || strings.TrimSpace(out) != "[]" {
		t.Errorf("without events: got exit code %d, %q, %q", code, out, errs)
	}
	now := time.Now()
	event := func(name string, fields wire.Fields) wire.Record {
		r, err := wire.Event{ID: uuid.Must(uuid.NewV7()).String(), At: now.UTC().Format(wire.AtLayout), Name: name,
			Fields: fields}.Record()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	called := wire.Fields{"tool": json.RawMessage(`"whoAmI"`), "outcome": json.RawMessage(`"ok"`),
		"version": json.RawMessage(`"1.4.0"`)}
	service := telemetry.New(telemetry.Options{Store: telemetry.NewStore(d.db), Hasher: secret.NewHasher(make([]byte, 32)),
		Now: func() time.Time { return now }})
	for _, install := range []string{"a", "b"} {
		events := []wire.Record{event(wire.ToolCalled, called), event(wire.ToolCalled, called)}
		if install == "a" {
			events = append(events, event(wire.Linked, nil))
		}
		if _, err := service.Ingest(t.Context(), install, events); err != nil {
			t.Fatal(err)
		}
	}
	today := now.UTC().Format(time.DateOnly)
	want := "DAY         EVENT           TOOL    OUTCOME  VERSION  EVENTS  INSTALLS\n" +
		today + "  tool.called     whoAmI  ok       1.4.0    4       2\n" +
		today + "  account.linked  -       -        -        1       1\n"
	if code, out, errs := usage(); code != 0 || out != want {
		t.Errorf("got exit code %d, %s%s, want\n%s", code, out, errs, want)
	}
	code, out, errs := usage("--json", "--days", "90")
	var rows []usageJSON
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 2 || rows[0] != (usageJSON{
		Day: today, Event: wire.ToolCalled, Tool: "whoAmI", Outcome: "ok", Version: "1.4.0", Events: 4, Installs: 2}) {
		t.Errorf("got exit code %d, %+v (error %v), %s", code, rows, err, errs)
	}
	for _, days := range []string{"0", "91"} {
		if code, out, errs := usage("--days", days); code != 1 || out != "" || !strings.Contains(errs, "from 1 to 90") {
			t.Errorf("%s days: got exit code %d, %q, %q; want 1 and the limits", days, code, out, errs)
		}
	}
}
