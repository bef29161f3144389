package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const someEvent = `{"id":"` + someID + `","at":"2026-01-02T03:04:05.678Z","name":"tool.called",` +
	`"fields":{"tool":"a","durationMs":3}}`

func batchOf(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }

func TestDecode(t *testing.T) {
	twice := func(member, again string) string { return strings.Replace(someEvent, member, again, 1) }
	for _, c := range []struct {
		event  string
		fields string // of the record; empty if the event is rejected
	}{
		{someEvent, `{"tool":"a","durationMs":3}`},
		{twice(`{"tool":"a","durationMs":3}`, `{ "durationMs" : 3 , "t\u006fol" : "\u0061" }`), `{"durationMs":3,"tool":"a"}`},
		{`{"fields":{"tool":"a"},"name":"tool.called","at":"2026-01-02T03:04:05.678Z","id":"` + someID + `"}`, `{"tool":"a"}`},
		{twice(`{"tool":"a","durationMs":3}`, `null`), `{}`},
		{twice(`"tool":"a"`, `"tool":"a","tool":"a"`), ""},
		{twice(`"tool":"a"`, `"tool":"a","t\u006fol":"b"`), ""},
		{twice(`"tool":"a"`, `"tool":"a","Tool":"a"`), ""},
		{twice(`"tool":"a"`, `"tool":{"deep":[1,null]}`), ""},
		{twice(`"tool":"a"`, `"tool":null`), ""},
		{twice(`"tool":"a"`, "\"tool\":\"\xff\""), ""},
		{twice(`"tool.called"`, `null`), ""},
		{`null`, ""}, {`{}`, ""},
	} {
		u, err := Decode([]byte(batchOf(someEvent, c.event, someEvent)))
		want := c.fields
		switch {
		case err != nil:
			t.Errorf("%s: got error %v", c.event, err)
		case want == "" && (len(u.Records) != 2 || u.Rejected != 1):
			t.Errorf("%s: got %d records and %d rejected, want 1 rejected", c.event, len(u.Records), u.Rejected)
		case want != "" && (len(u.Records) != 3 || string(u.Records[1].Fields) != want):
			t.Errorf("%s: got %+v, want a record with fields %s", c.event, u, want)
		}
	}
}

func TestDecode_RefusesBatch(t *testing.T) {
	for body, want := range map[string]string{
		``: "not JSON", `{"events":[`: "not JSON", `{"events":[]}{}`: "not JSON", `{"events":[]`: "not JSON",
		`{"events":[` + someEvent + `,]}`: "not JSON", `{"events":[]]`: "not JSON", `{"events" []}`: "not JSON",
		`[]`: "must be a JSON object", `null`: "events is missing", `{}`: "events is missing", `{"events":null}`: "events is missing",
		`{"events":7}`: "events has the wrong type", `{"events":[7]}`: "events has the wrong type",
		`{"Events":[]}`: "unknown field Events", `{"events":[],"events":[]}`: "events occurs twice",
		`{"events":null,"events":[]}`: "events occurs twice", `{"events":[],"dropped":1,"dropped":1}`: "dropped occurs twice",
		`{"events":[],"dropped":-1}`: "must not be below 0", `{"events":[],"dropped":1.5}`: "dropped has the wrong type",
		`{"events":[],"dropped":"1"}`:                        "dropped has the wrong type",
		batchOf(`{"id":7}`):                                  "events.id has the wrong type",
		batchOf(`{"id":"a","id":null}`):                      "events.id occurs twice",
		batchOf(`{"id":null,"\u0069d":"a"}`):                 "events.id occurs twice",
		batchOf(`{"account":"a"}`):                           "unknown field events.account",
		batchOf(`{"fields":[]}`):                             "events.fields has the wrong type",
		batchOf(`{"fields":{},"fields":{}}`):                 "events.fields occurs twice",
		batchOf(strings.Repeat(`{},`, MaxBatch) + someEvent): ErrTooMany.Error(),
	} {
		if u, err := Decode([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got %+v, error %v, want %q", body, u, err, want)
		}
	}
	if u, err := Decode([]byte(`{"dropped":null,"events":[]}`)); err != nil || u.Dropped != 0 {
		t.Errorf("got %+v, error %v, want no dropped events", u, err)
	}
}

// An error shows a field's name only if it could be a name: no control characters, no credentials.
func TestDecode_CleansUnknownNames(t *testing.T) {
	long := strings.Repeat("A1b2C3d4", 8)
	for name, want := range map[string]string{
		"account":               "account",
		strings.Repeat("n", 99): strings.Repeat("n", 40),
		"a\\nb":                 "(not a name)",
		"a\\u001b[31mb":         "(not a name)",
		"a\u202eb":              "(not a name)",
		"":                      "(not a name)",
		long:                    "(not a name)",
	} {
		for body, object := range map[string]string{`{"` + name + `":1}`: "", batchOf(`{"` + name + `":1}`): "events."} {
			_, err := Decode([]byte(body))
			if err == nil || err.Error() != "unknown field "+object+want {
				t.Errorf("%s: got error %v, want the name %s", body, err, want)
			}
		}
	}
	_, err := Event{ID: someID, At: "2026-01-02T03:04:05.678Z", Name: long}.Record()
	if err == nil || strings.Contains(err.Error(), long[:24]) {
		t.Errorf("the name of an event looks like a credential: got error %v", err)
	}
}

// FuzzDecode checks that no body causes a panic, that accepted events are in the event list and within its limits, and
// that reformatted JSON gets the same result.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{batchOf(), batchOf(someEvent), batchOf(someEvent, someEvent), batchOf(`{"id":1}`),
		batchOf(`null`), `{"events":null}`, `null`, `[`, `{}`,
		batchOf(strings.Replace(someEvent, `"tool":"a"`, `"tool":"a","tool":"b"`, 1)), `{"events":[{"fields":{"a":{"b":[]}}}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		u, err := Decode(body)
		if err != nil {
			return
		}
		if s := strings.TrimSpace(string(body)); s == "null" || s == "{}" {
			t.Fatalf("%q was accepted, want a refusal", body)
		}
		if u.Rejected < 0 || u.Dropped < 0 || len(u.Records)+u.Rejected > MaxBatch {
			t.Fatalf("%q: got %d records and %d rejected, more than a batch may have", body, len(u.Records), u.Rejected)
		}
		for _, r := range u.Records {
			if _, known := Of(r.Name); !known || !json.Valid(r.Fields) || len(r.Fields) > 1024 {
				t.Fatalf("%q: invalid event %s with fields %q was accepted", body, r.Name, r.Fields)
			}
		}
		var spaced bytes.Buffer
		if json.Indent(&spaced, body, "", " ") != nil {
			t.Fatalf("accepted, but not valid JSON: %q", body)
		}
		again, err := Decode(spaced.Bytes())
		if err != nil || len(again.Records) != len(u.Records) || again.Rejected != u.Rejected || again.Dropped != u.Dropped {
			t.Fatalf("%q: got %+v (error %v) after reformatting, want %+v", body, again, err, u)
		}
	})
}
