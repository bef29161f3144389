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
	"github.com/service-dev/service/daemon/internal/session"
)

const (
	testDevice = "sdc_device"
	testUser   = "WDJB-MJHT"
	testURL    = "http://localhost:1/activate?code=WDJB-MJHT"
	testToken  = "svc_token"
	testID     = "ses_abcdefgh234567abcdef"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is everything around the catalogue; tests set what they need.
type world struct {
	mu      sync.Mutex
	link    account.Link
	fresh   bool
	gated   *link.GatedCall
	wait    link.Wait
	revoked []string
	// complete is what Complete does; the default approves.
	complete func(ctx context.Context, wait link.Wait) error

	opened     session.Opened
	open       []backend.Session
	page       backend.EventPage
	sessionErr error
	request    session.Request
	caller     caller.Caller
	since      int64
	opens      int
	limit      int

	browsed []string
	events  []map[string]string
}

func newWorld() *world {
	s := backend.Session{
		SessionID: testID, Project: "com.example.app", Platform: "web", DeviceModel: "rayban_display", State: "open",
		SessionURL: "http://localhost:1/s/" + testID, AppEndpoint: "ws://localhost:1/api/sessions/" + testID + "/app",
		CreatedAt: testTime, LastActiveAt: testTime, ExpiresAt: testTime.Add(24 * time.Hour), LastSeq: 3,
	}
	return &world{
		link: account.Link{State: account.NotLinked}, fresh: true, open: []backend.Session{s},
		opened: session.Opened{Session: s, Created: true, AppTokenFile: "/state/sessions/" + testID + "/app.token"},
		page:   backend.EventPage{Events: []json.RawMessage{json.RawMessage(`{"seq":1}`)}, Next: 1, More: true},
	}
}

func (w *world) linked() *world {
	w.link = account.Link{State: account.Linked, AuthToken: testToken, AccountID: "acc", Tier: account.TierFree, LinkedAt: testTime, BackendURL: "embedded:x"}
	return w
}

func (w *world) Target(context.Context, caller.Caller) (backend.Target, account.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := backend.Target{BaseURL: "embedded:x", InstallID: "inst_1"}
	if w.link.Linked() {
		t = backend.Target{BaseURL: "embedded:x", Bearer: w.link.AuthToken.Reveal()}
	}
	return t, w.link, nil
}

func (w *world) InstallID() string                 { return "inst_1" }
func (w *world) Link(context.Context) account.Link { return w.link }
func (w *world) BackendURL(context.Context) string { return "embedded:x" }

func (w *world) Ask(_ context.Context, _ backend.Target, gated link.GatedCall, _ func(context.Context) error) (link.Code, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gated = &gated
	return link.Code{Fresh: w.fresh, DeviceCode: backend.DeviceCode{
		DeviceCode: testDevice, UserCode: testUser, VerificationURL: testURL, ExpiresIn: 10 * time.Minute, PollInterval: 5 * time.Second,
	}}, nil
}

func (w *world) Complete(ctx context.Context, _ caller.Caller, _ string, wait link.Wait) (link.Outcome, error) {
	w.mu.Lock()
	w.wait = wait
	complete := w.complete
	w.mu.Unlock()
	if complete != nil {
		if err := complete(ctx, wait); err != nil {
			return link.Outcome{}, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.linked()
	return link.Outcome{
		AccountID: "acc", Tier: account.TierFree, LinkedAt: testTime, PollCount: 4,
		File: link.AuthFile{Path: "/state/auth.json", Written: true},
	}, nil
}

func (w *world) TakeGated(string) (link.GatedCall, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gated == nil {
		return link.GatedCall{}, false
	}
	gated := *w.gated
	w.gated = nil
	return gated, true
}

func (w *world) Revoked(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revoked = append(w.revoked, token)
	w.link.State = account.Revoked
}

// sessions is the world's other half, whose Open has another signature.
type sessions struct{ *world }

func (s sessions) Open(_ context.Context, _ backend.Target, who caller.Caller, req session.Request) (session.Opened, error) {
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
	return s.open, s.sessionErr
}

func (s sessions) Close(context.Context, backend.Target, string) (backend.Session, error) {
	closed := s.opened.Session
	closed.State, closed.ClosedAt = "closed", testTime
	return closed, s.sessionErr
}

func (s sessions) Since(_ context.Context, _ backend.Target, _ string, since int64, limit int) (backend.EventPage, error) {
	s.since, s.limit = since, limit
	return s.page, s.sessionErr
}

type browser struct{ *world }

func (b browser) Open(_ context.Context, _ caller.Caller, url string) (bool, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.browsed = append(b.browsed, url)
	return true, ""
}

func (w *world) Record(_ context.Context, event string, fields map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fields["event"] = event
	w.events = append(w.events, fields)
}

func (w *world) catalogue() *Catalogue {
	return New(Options{
		Links: w, Sessions: sessions{w}, Browser: browser{w}, Telemetry: w,
		Accounts: w, Now: func() time.Time { return testTime },
	})
}

// call runs a tool and checks what holds for every answer: it fits the tool's schema, and says what it must say.
func (w *world) call(t *testing.T, name, args string, io IO) (Result, map[string]any) {
	t.Helper()
	return w.callIn(caller.With(context.Background(), caller.Caller{Cwd: "/home/a/app", Client: "agent"}), t, name, args, io)
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
		}
	}
	if result.Text == "" {
		t.Errorf("%s answered without text", name)
	}
	if result.IsError {
		for _, field := range []string{"code", "message", "retryable", "fixHint"} {
			if fields[field] == nil || fields[field] == "" {
				t.Errorf("%s: error without %s: %v", name, field, fields)
			}
		}
	} else if fields["summary"] == "" || fields["summary"] == nil {
		t.Errorf("%s: success without summary", name)
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
		t.Errorf("the answer does not fit its schema: %v", err)
	}
}
