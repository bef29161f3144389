package tools

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	file "github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/proto/backendapi"
)

const (
	testDevice = "sdc_device"
	testUser   = "WDJB-MJHT"
	testURL    = "http://localhost:1/activate?code=WDJB-MJHT"
	testToken  = "svc_token"
	testID     = "ses_abcdefgh234567abcdef"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world contains all dependencies of the catalogue; tests set what they need.
type world struct {
	added   []backend.Transport // transports in addition to localsim and browsersim
	mu      sync.Mutex
	link    account.Link
	shown   bool   // the page of the code was opened
	askAt   string // the page of a code; testURL if empty
	gated   *link.GatedCall
	wait    link.Wait
	revoked []string
	// complete replaces Complete; the default approves.
	complete func(ctx context.Context, wait link.Wait) error

	opened     session.Opened
	open       []backend.Session
	page       backendapi.EventPage
	sessionErr error
	request    session.Request
	caller     caller.Caller
	since      int64
	opens      int
	limit      int

	// local sessions, and the control frames sent to their glasses
	here     string // the project of the caller's directory
	latest   string
	replaced session.Replaced // returned by ClosePrevious
	local    session.LocalRequest
	real     session.RealRequest
	hardware backend.Hardware
	display  session.Display
	refusal  *glasses.Error
	controls []control
	pages    []backendapi.EventPage // returned by Wait one after another, then nothing
	waited   []int64
	advanced []int64
	settled  bool
	recorded scenario.RecordRequest
	replayed scenario.Request
	report   scenario.Report
	stepped  scenario.StepsRequest
	steps    scenario.StepsReport
	noted    []file.Step
	endless  bool

	keys    *keys
	account accountRecords
	browsed []string
	closed  []string // ids of closed sessions
	events  []map[string]any
}

type control struct {
	id, typ, payload string
	media            []byte
}

func newWorld() *world {
	s := backend.Session{
		SessionID: testID, Project: "com.example.app", Platform: "web", DeviceModel: "rayban_display", State: "open",
		SessionURL: "http://localhost:1/s/" + testID, AppEndpoint: "ws://localhost:1/api/sessions/" + testID + "/app",
		CreatedAt: testTime, LastActiveAt: testTime, ExpiresAt: testTime.Add(24 * time.Hour), LastSeq: 3,
	}
	return &world{
		link: account.Link{State: account.NotLinked}, here: "com.example.app", account: someRecords(),
		open:   []backend.Session{s},
		opened: session.Opened{Session: s, Created: true, AppTokenFile: "/state/sessions/" + testID + "/app.token"},
		page:   backendapi.EventPage{Events: []json.RawMessage{json.RawMessage(`{"seq":1}`)}, Next: 1, More: true},
	}
}

func (w *world) linked() *world {
	w.link = account.Link{State: account.Linked, AuthToken: testToken, AccountID: "acc", Tier: account.TierFree,
		LinkedAt: testTime, BackendURL: "embedded:x"}
	return w
}

// sessions is the world with the Open method of Sessions.
type sessions struct{ *world }

func (s sessions) Open(_ context.Context, _ backend.Target, who caller.Caller,
	req session.Request) (session.Opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.request, s.caller = req, who
	s.opens++
	return s.opened, s.sessionErr
}

func (s sessions) Get(_ context.Context, _ backend.Target, _ string) (backend.Session, error) {
	return s.opened.Session, s.sessionErr
}

func (s sessions) List(context.Context, backend.Target) ([]backend.Session, error) {
	if s.sessionErr != nil {
		return nil, s.sessionErr
	}
	return s.open, nil
}

func (s sessions) Close(_ context.Context, _ backend.Target, id string) (backend.Session, error) {
	s.closed = append(s.closed, id)
	closed := s.opened.Session
	closed.SessionID, closed.State, closed.ClosedAt = id, "closed", testTime
	return closed, s.sessionErr
}

func (s sessions) ClosePrevious(
	_ context.Context, _ backend.Target, _ caller.Caller, by session.Opened,
) session.Replaced {
	s.closed = append(s.closed, by.SessionID)
	return s.replaced
}

func (s sessions) Since(_ context.Context, _ backend.Target, _ string, since int64,
	limit int) (backendapi.EventPage, error) {
	s.since, s.limit = since, limit
	return s.page, s.sessionErr
}

const testLocal = "loc_abcdefghijklmnopqrst"

// locally opens a local session for the caller's directory.
func (w *world) locally() *world {
	w.latest, w.settled = testLocal, true
	model, _ := glasses.Model("rayban_display")
	tree := glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
		{Type: glasses.NodeText, Text: "Shopping"}, {Type: glasses.NodeButton, ID: "done", Text: "Done"}}}
	view := render.Clamp(model, glasses.View{Tree: &tree})
	w.display = session.NewDisplay(model, glasses.FreshState(), view)
	w.display.PNG = w.display.Picture()
	w.opened.SessionID, w.opened.Clock, w.opened.Transport = testLocal, backend.ClockReal, backend.TransportLocal
	w.opened.AppEndpoint = "ws://127.0.0.1:1/api/sessions/" + testLocal + "/app"
	return w
}

func (s sessions) StartLocal(_ context.Context, who caller.Caller, req session.LocalRequest) (session.Opened, error) {
	s.local, s.caller = req, who
	return s.opened, s.sessionErr
}

func (s sessions) ConnectReal(_ context.Context, who caller.Caller, req session.RealRequest) (session.Real,
	error) {
	s.real, s.caller = req, who
	return session.Real{Opened: s.opened, Hardware: s.hardware, NewPage: s.hardware.ConnectURL}, s.sessionErr
}

func (s sessions) AppTokenFile(string) string { return s.opened.AppTokenFile }

func (s sessions) Latest(context.Context, caller.Caller) (string, bool) {
	return s.latest, s.latest != ""
}

func (s sessions) Control(_ context.Context, _ backend.Target, id, typ string, payload any,
	media []byte) (glasses.Result, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return glasses.Result{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controls = append(s.controls, control{id, typ, string(data), media})
	if s.refusal != nil {
		return glasses.Result{Error: s.refusal}, s.sessionErr
	}
	state := glasses.FreshState()
	return glasses.Result{OK: true, State: &state, View: &glasses.View{Focus: -1}}, s.sessionErr
}

func (s sessions) Display(context.Context, backend.Target, string) (session.Display, error) {
	return s.display, s.sessionErr
}

func (s sessions) Advance(_ context.Context, _ string, ms int64) (int64, bool, error) {
	s.advanced = append(s.advanced, ms)
	return ms, s.settled, s.sessionErr
}

func (s sessions) Wait(ctx context.Context, _ backend.Target, _ string, since int64, _ int,
	wait time.Duration) (backendapi.EventPage, error) {
	s.mu.Lock()
	s.waited = append(s.waited, since)
	if len(s.pages) > 0 {
		page := s.pages[0]
		s.pages = s.pages[1:]
		s.mu.Unlock()
		return page, s.sessionErr
	}
	s.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return backendapi.EventPage{Next: since}, s.sessionErr
}

type scenarios struct{ *world }

func (w scenarios) Record(_ context.Context, req scenario.RecordRequest) (scenario.Recording, error) {
	w.recorded = req
	return scenario.Recording{Name: req.Name, Path: req.Path, DurationMs: 60_000, Steps: 4, Requests: 7,
		Pictures: 3}, w.sessionErr
}

func (w scenarios) Run(ctx context.Context, req scenario.Request) (scenario.Report, error) {
	w.replayed = req
	if w.endless {
		<-ctx.Done()
		return scenario.Report{}, ctx.Err()
	}
	return w.report, w.sessionErr
}

func (w scenarios) RunSteps(ctx context.Context, req scenario.StepsRequest) (scenario.StepsReport, error) {
	w.stepped = req
	return w.steps, w.sessionErr
}

func (scenarios) NoteSound(context.Context, backend.Target, string, []byte) {}

func (w scenarios) Note(_ context.Context, _ backend.Target, _ string, step file.Step, _, _ int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, step)
}

type browser struct{ *world }

func (b browser) Open(_ context.Context, _ caller.Caller, url string) (bool, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.browsed = append(b.browsed, url)
	return true, ""
}

func (w *world) Record(_ context.Context, event string, fields map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fields["event"] = event
	w.events = append(w.events, fields)
}

func (w *world) Transports() []backend.Transport {
	return append([]backend.Transport{{Name: "localsim", Title: "Simulated", VirtualClock: true},
		{Name: "browsersim", NeedsAccount: true, HostsSessions: true}}, w.added...)
}

func (w *world) catalogue() *Catalogue {
	return New(Options{
		Links: w, Sessions: sessions{w}, Scenarios: scenarios{w}, Browser: browser{w}, Telemetry: w,
		Transports: w, Accounts: w, Records: accountHost{&w.account, w.keys}, Now: func() time.Time { return testTime },
	})
}

// call runs a tool and checks the rules for every answer: it matches the tool's schema and has a summary or an error.
func (w *world) call(t *testing.T, name, args string, io IO) (Result, map[string]any) {
	t.Helper()
	return w.callIn(caller.With(context.Background(), caller.Caller{
		Cwd: "/home/a/app", Client: "agent", IO: local.New(),
	}), t, name, args, io)
}

func (w *world) callIn(ctx context.Context, t *testing.T, name, args string, io IO) (Result, map[string]any) {
	t.Helper()
	c := w.catalogue()
	result := c.Call(ctx, name, json.RawMessage(args), io)
	var fields map[string]any
	if err := json.Unmarshal(result.Structured, &fields); err != nil {
		t.Fatalf("%s answered %q: %v", name, result.Structured, err)
	}
	if result.Outcome == OutcomeDeferred {
		return result, fields
	}
	for _, tool := range c.List() {
		if tool.Name == name {
			validate(t, tool.OutputSchema, fields)
			validate(t, Compact(tool.OutputSchema), fields)
			if len(result.Images) > 0 && !tool.Pictures {
				t.Errorf("%s returned a picture but does not declare it", name)
			}
		}
	}
	if result.Text == "" {
		t.Errorf("%s returned no text", name)
	}
	if result.IsError {
		for _, field := range []string{"code", "message", "retryable", "fixHint"} {
			if fields[field] == nil || fields[field] == "" {
				t.Errorf("%s: the error has no %s: %v", name, field, fields)
			}
		}
	} else if fields["summary"] == "" || fields["summary"] == nil {
		t.Errorf("%s: the answer has no summary", name)
	}
	return result, fields
}

func validate(t *testing.T, schema json.RawMessage, value any) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Errorf("the answer does not match its schema: %v", err)
	}
}
