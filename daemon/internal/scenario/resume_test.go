package scenario

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/scenario"
)

func attachedRow(payload string) glasses.Event {
	return glasses.Event{Type: glasses.RowAppAttached, Sender: glasses.SenderService, Kind: glasses.KindEvent,
		Payload: json.RawMessage(payload)}
}

func detachedRow() glasses.Event {
	return glasses.Event{Type: glasses.RowAppDetached, Sender: glasses.SenderService, Kind: glasses.KindEvent}
}

func appEvent(name string) glasses.Event {
	return glasses.Event{Type: "com.example." + name, ID: name, Sender: glasses.SenderApp, Kind: glasses.KindEvent}
}

// An app that loses its connection and resumes is one app, in a recording as in a run; one that was started again is
// another, and a run can only begin with that.
func TestRecord_GoesOnAcrossAnAppThatResumes(t *testing.T) {
	const begun, resumed = `{"name":"app"}`, `{"name":"app","resumed":true}`
	for name, c := range map[string]struct {
		rows     []glasses.Event
		since    int64
		requests int
		first    int64 // row of the beginning
	}{
		"resumed": {rows: rows(attachedRow(begun), appEvent("a"), detachedRow(), attachedRow(resumed), appEvent("b")),
			requests: 2, first: 1},
		"resumed after the cursor": {rows: rows(attachedRow(begun), appEvent("a"), detachedRow(), attachedRow(resumed),
			appEvent("b")), since: 3, requests: 2, first: 1},
		"started again": {rows: rows(attachedRow(begun), appEvent("a"), detachedRow(), attachedRow(begun), appEvent("b")),
			requests: 1, first: 4},
		"started again, from the first": {rows: rows(appEvent("x"), attachedRow(begun), appEvent("a"), detachedRow(),
			attachedRow(begun), appEvent("b")), since: 1, requests: 2, first: 2},
		"two at once": {rows: rows(attachedRow(begun), appEvent("a"), attachedRow(begun), appEvent("b")),
			requests: 2, first: 1},
		"its beginning is gone": {rows: rows(appEvent("a"), attachedRow(resumed), appEvent("b")), requests: 1, first: 2},
	} {
		p := &pageOnly{rows: c.rows}
		path := filepath.Join(t.TempDir(), "rec.json")
		rec, err := New(p, p).Record(t.Context(), RecordRequest{Files: ours, SessionID: "ses_abcdefgh", Path: path,
			Since: c.since})
		if err != nil || rec.Requests != c.requests {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
		if got := span(c.rows, c.since)[0].Seq; got != c.first {
			t.Errorf("%s: begins with row %d, not %d", name, got, c.first)
		}
		r := New(p, p)
		report, err := r.Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh", Path: path})
		if isLast := name != "two at once" && name != "started again, from the first"; err != nil ||
			isLast && report.Verdict != Pass {
			t.Errorf("%s: replayed %+v, %v", name, report, err)
		}
	}
}

// What one injection changed is one step, whatever is logged or claimed between its rows.
func TestRecord_AnInjectionIsOneStep(t *testing.T) {
	state := func(typ, payload string) glasses.Event {
		return glasses.Event{Type: typ, Sender: glasses.SenderGlasses, Kind: glasses.KindEvent,
			Payload: json.RawMessage(payload)}
	}
	p := &pageOnly{rows: rows(attachedRow(`{"name":"app"}`), state(glasses.TypeBattery, `{"level":9,"charging":false}`),
		appEvent("a"), state(glasses.TypeWear, `{"worn":false}`), state(glasses.TypeWear, `{"worn":true}`),
		state(glasses.TypeInput, `{"kind":"navigate","direction":"down"}`), state(glasses.TypeInput, `{"kind":"tap"}`))}
	for i := range p.rows {
		p.rows[i].At = 1000
	}
	r := New(p, p)
	worn := false
	patch := glasses.StatePatch{Battery: &glasses.Battery{Level: 9}, Worn: &worn}
	step, ok := injected(glasses.SimState, patch)
	if !ok {
		t.Fatal("a state is not noted")
	}
	r.journal.add("ses_abcdefgh", note{after: 1, until: 4, at: 1000, step: step})
	step, _ = injected(glasses.SimInput, glasses.Input{Target: "go"})
	r.journal.add("ses_abcdefgh", note{after: 5, until: 7, at: 1000, step: step})
	if _, ok := injected(glasses.SimInput, glasses.Input{Kind: glasses.InputTap}); ok {
		t.Error("an input that its row tells is noted too")
	}
	if _, ok := injected(glasses.SimState, struct{}{}); ok {
		t.Error("reading the state is noted")
	}
	path := filepath.Join(t.TempDir(), "rec.json")
	if _, err := r.Record(t.Context(), RecordRequest{Files: ours, SessionID: "ses_abcdefgh", Path: path}); err != nil {
		t.Fatal(err)
	}
	s, err := Load(t.Context(), ours, path)
	if err != nil || len(s.Steps) != 3 || s.Steps[0].State.Battery == nil || s.Steps[0].State.Worn == nil ||
		s.Steps[1].State.Worn == nil || s.Steps[2].Input.Target != "go" {
		steps, _ := json.Marshal(s.Steps)
		t.Errorf("%s, %v", steps, err)
	}
}

// A claim about one of the rows of an injection does not part it.
func TestRecord_ClaimsAboutTheRowsOfOneInstant(t *testing.T) {
	p := &pageOnly{rows: rows(attachedRow(`{"name":"app"}`),
		glasses.Event{Type: glasses.TypeBattery, Sender: glasses.SenderGlasses, Payload: json.RawMessage(`{"level":9}`)},
		glasses.Event{Type: glasses.TypeWear, Sender: glasses.SenderGlasses, Payload: json.RawMessage(`{"worn":false}`)})}
	for i := range p.rows {
		p.rows[i].At = 1000
	}
	r := New(p, p)
	r.Note(t.Context(), backend.Target{}, "ses_abcdefgh", scenario.Step{Expect: &scenario.Expect{Type: glasses.TypeBattery}}, 2, 1000)
	path := filepath.Join(t.TempDir(), "rec.json")
	if _, err := r.Record(t.Context(), RecordRequest{Files: ours, SessionID: "ses_abcdefgh", Path: path}); err != nil {
		t.Fatal(err)
	}
	s, err := Load(t.Context(), ours, path)
	if err != nil || len(s.Steps) != 2 || s.Steps[0].State == nil || s.Steps[0].State.Battery == nil ||
		s.Steps[0].State.Worn == nil || s.Steps[1].Expect == nil {
		steps, _ := json.Marshal(s.Steps)
		t.Errorf("%s, %v", steps, err)
	}
}

// An app that was still busy when the next thing was done to its glasses did that before.
func TestRecord_PlacesInjectionsAfterWhatTheAppDidBefore(t *testing.T) {
	log := rows(attachedRow(`{"name":"app"}`), appEvent("a"), glasses.Event{Type: glasses.TypeBattery,
		Sender: glasses.SenderGlasses, Payload: json.RawMessage(`{"level":9}`)}, appEvent("b"))
	state, _ := injected(glasses.SimState, glasses.StatePatch{Battery: &glasses.Battery{Level: 9}})
	motion, _ := injected(glasses.SimMotion, glasses.Motion{AX: 1})
	list := placed(log, []note{{after: 1, until: 2, step: motion}, {after: 1, until: 4, step: state}, {after: 2, row: 2}})
	if len(list) != 3 || list[0].row != 2 || list[1].step.Motion == nil || list[2].step.State == nil ||
		list[2].after != 2 {
		t.Errorf("%+v", list)
	}
}
