package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// site fakes a backend, as far as the real link and session managers need them.
type site struct {
	session.Backend // the methods that no test calls
	mu              sync.Mutex
	approved        time.Time // when the user approves; zero means never
	issued          int       // codes that were requested
	refused         int       // calls that were refused with a code
	polls           []time.Time
	revoked         bool
	accounts        *account.Store
}

func (s *site) IssueDeviceCode(context.Context, backend.Target, string) (backend.DeviceCode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	return siteCode, nil
}

var siteCode = backend.DeviceCode{DeviceCode: "sdc_1", UserCode: "WDJB-MJHT",
	VerificationURL: "https://x.test/activate?code=WDJB-MJHT",
	ExpiresIn:       10 * time.Minute, PollInterval: 5 * time.Second}

// authorise refuses a call without a valid link, with a new code, as backends do.
func (s *site) authorise(t backend.Target) error {
	if !s.revoked && t.Bearer != "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	return &backend.AuthRequired{DeviceCode: siteCode,
		Problem: &problem.Error{Code: problem.CodeAuthRequired, Message: "link first", HTTPStatus: 401}}
}

func (s *site) CancelDeviceCode(context.Context, backend.Target, string) error { return nil }

func (s *site) PollDeviceToken(context.Context, backend.Target, string) (backend.Poll, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls = append(s.polls, time.Now())
	if s.approved.IsZero() || time.Now().Before(s.approved) {
		return backend.Poll{PollInterval: 5 * time.Second}, nil
	}
	return backend.Poll{Token: &backend.Token{AuthToken: "svc_1",
		Account: backend.Account{AccountID: "acc", Tier: account.TierFree, LinkedAt: time.Now()}}}, nil
}

func (s *site) Account(context.Context, backend.Target) (backend.Account, error) {
	return backend.Account{AccountID: "acc"}, nil
}

func (s *site) RevokeLink(context.Context, backend.Target) error { return nil }

func (s *site) CreateSession(_ context.Context, t backend.Target,
	req backendapi.SessionRequest) (backend.Session, bool, error) {
	if err := s.authorise(t); err != nil {
		return backend.Session{}, false, err
	}
	return backend.Session{SessionID: "ses_abcdefgh", Project: req.Project, Platform: req.Platform, State: "open",
		SessionURL: "https://x.test/s/ses_abcdefgh"}, true, nil
}

func (s *site) GetSession(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{}, nil
}

func (s *site) ListSessions(context.Context, backend.Target) ([]backend.Session, error) {
	return nil, nil
}

func (s *site) CloseSession(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{}, nil
}

func (s *site) MintSessionSecret(context.Context, backend.Target, string) (string, error) {
	return "sst_1", nil
}

func (s *site) ListEvents(context.Context, backend.Target, string, int64, int) (backendapi.EventPage, error) {
	return backendapi.EventPage{}, nil
}

func (s *site) Embedded(context.Context) (string, string, error) { return "", "", nil }

func (s *site) InstallID() string                              { return "inst_1" }
func (s *site) Link(context.Context) account.Link              { return s.accounts.For("https://x.test") }
func (s *site) BackendURL(context.Context) string              { return "https://x.test" }
func (s *site) Record(context.Context, string, map[string]any) {}
func (s *site) Open(context.Context, caller.Caller, string) (bool, string) {
	return false, "no desktop"
}

// agent runs tell with a catalogue that uses the real managers, on a simulated clock.
func agent(t *testing.T, tell func(t *testing.T, s *site,
	call func(ctx context.Context, name, args string, io tools.IO) map[string]any)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &site{accounts: account.Open(account.Options{Dir: dir})}
		links := link.New(link.Options{
			Backend: s, Accounts: s.accounts, Record: s, Config: config.Default, InstallID: "inst_1",
		})
		ctx, cancel := context.WithCancel(context.Background())
		var served sync.WaitGroup
		served.Go(func() { _ = links.Serve(ctx) })
		defer served.Wait()
		defer cancel()
		c := tools.New(tools.Options{
			Links: links, Accounts: s, Browser: s, Telemetry: s, Records: records{site: s},
			Sessions: session.New(session.Options{StateDir: dir, Backend: s}),
		})
		tell(t, s, func(ctx context.Context, name, args string, io tools.IO) map[string]any {
			if caller.From(ctx).Env == nil {
				ctx = caller.With(ctx, caller.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": "https://x.test"}})
			}
			var fields map[string]any
			if err := json.Unmarshal(c.Call(ctx, name, json.RawMessage(args), io).Structured, &fields); err != nil {
				t.Error(err)
			}
			return fields
		})
	})
}

func TestLinking_FromTheFirstCallToTheRetriedOne(t *testing.T) {
	agent(t, func(t *testing.T, s *site, call func(context.Context, string, string, tools.IO) map[string]any) {
		ctx := t.Context()
		first := call(ctx, "createSimulatorSession", `{"project":"com.example.app"}`, tools.IO{})
		again := call(ctx, "getSessionStatus", `{"sessionId":"ses_abcdefgh"}`, tools.IO{})
		if first["status"] != "auth_required" || again["deviceCode"] != first["deviceCode"] || s.refused != 1 ||
			s.issued != 0 {
			t.Fatalf("first answer %v, then %v, %d codes; want the same code twice", first, again, s.issued)
		}
		call(ctx, "createSimulatorSession", `{"project":"com.example.app"}`, tools.IO{})
		s.approved = time.Now().Add(2 * time.Minute)

		short, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		start := time.Now()
		if got := call(short, "completeAuthLink", `{"deviceCode":"sdc_1"}`,
			tools.IO{}); got["code"] != problem.CodeCancelled || time.Since(start) != 30*time.Second {
			t.Errorf("a cancelled call: %v after %v; want cancelled after 30 s", got, time.Since(start))
		}
		if got := call(ctx, "completeAuthLink", `{"deviceCode":"sdc_1","maxWaitSeconds":20}`,
			tools.IO{}); got["code"] != problem.CodeAuthTimeout || got["retryable"] != true || got["fixHint"] == "" {
			t.Errorf("a wait that is too short: %v, want a timeout", got)
		}
		last := time.Now()
		got := call(ctx, "completeAuthLink", `{"deviceCode":"sdc_1"}`, tools.IO{Progress: func(float64, float64, string) {
			if gap := time.Since(last); gap > 20*time.Second {
				t.Errorf("%v passed without progress", gap)
			}
			last = time.Now()
		}})
		retried, _ := got["retried"].(map[string]any)
		if got["linked"] != true || got["accountId"] != "acc" || retried["status"] != "active" ||
			retried["project"] != "com.example.app" {
			t.Errorf("completed with %v, want the link and the retried call", got)
		}
		if file, _ := retried["appTokenFile"].(string); file == "" {
			t.Error("the answer has no token file")
		} else if data, err := os.ReadFile(file); err != nil || string(data) != "sst_1" {
			t.Errorf("the token file contains %q, error %v; want sst_1", data, err)
		}
		for i := 1; i < len(s.polls); i++ {
			if gap := s.polls[i].Sub(s.polls[i-1]); gap < 5*time.Second {
				t.Errorf("two polls were only %v apart", gap)
			}
		}
		s.revoked = true
		if got := call(ctx, "createSimulatorSession", `{"project":"com.example.app"}`,
			tools.IO{}); got["status"] != "auth_required" || got["reason"] != "revoked" || s.refused != 2 || s.issued != 0 {
			t.Errorf("after the link was revoked: %v, %d codes requested; want the code of the refusal", got, s.issued)
		}
	})
}

// records is the part of the site that holds one project's assistant.
type records struct {
	tools.Records
	*site
}

func (r records) Assistant(_ context.Context, t backend.Target, project string) (backendapi.AssistantConfig, error) {
	if err := r.authorise(t); err != nil {
		return backendapi.AssistantConfig{}, err
	}
	return backendapi.AssistantConfig{Project: project, Version: 3}, nil
}

func TestLinking_RetriesARecordTool(t *testing.T) {
	agent(t, func(t *testing.T, s *site, call func(context.Context, string, string, tools.IO) map[string]any) {
		ctx := t.Context()
		if got := call(ctx, "getAssistantConfig", `{"project":"com.example.app"}`,
			tools.IO{}); got["status"] != "auth_required" {
			t.Fatalf("answered %v", got)
		}
		s.approved = time.Now().Add(time.Minute)
		got := call(ctx, "completeAuthLink", `{"deviceCode":"sdc_1"}`, tools.IO{})
		if retried, _ := got["retried"].(map[string]any); retried["version"] != 3.0 ||
			retried["project"] != "com.example.app" {
			t.Errorf("completed with %v, want the retried answer", got)
		}
		if got := call(ctx, "getAssistantConfig", `{}`, tools.IO{}); got["code"] != problem.CodeInvalidRequest {
			t.Errorf("without a project: %v, want invalid_request", got)
		}
		s.revoked = true
		if got := call(ctx, "getAssistantConfig", `{"project":"com.example.app"}`, tools.IO{}); got["reason"] != "revoked" ||
			s.refused != 2 || s.issued != 0 {
			t.Errorf("after the link was revoked: %v, %d codes requested; want the code of the refusal", got, s.issued)
		}
	})
}

func TestLinking_WithElicitation(t *testing.T) {
	agent(t, func(t *testing.T, s *site, call func(context.Context, string, string, tools.IO) map[string]any) {
		s.approved = time.Now().Add(40 * time.Second)
		accept := tools.IO{Elicit: func(context.Context, string, string) (bool, error) { return true, nil }}
		if got := call(t.Context(), "createSimulatorSession", `{"project":"a.b"}`, accept); got["status"] != "active" {
			t.Errorf("answered %v", got)
		}
	})
	agent(t, func(t *testing.T, _ *site, call func(context.Context, string, string, tools.IO) map[string]any) {
		start := time.Now()
		accept := tools.IO{Elicit: func(context.Context, string, string) (bool, error) { return true, nil }}
		got := call(t.Context(), "createSimulatorSession", `{"project":"a.b"}`, accept)
		if took := time.Since(start); got["status"] != "auth_required" || took != 50*time.Second ||
			got["expiresInSeconds"] != 550.0 {
			t.Errorf("without approval: %v after %v; want auth_required after 50 s", got, took)
		}
	})
}

func TestLinking_InvalidBackendURL(t *testing.T) {
	agent(t, func(t *testing.T, _ *site, call func(context.Context, string, string, tools.IO) map[string]any) {
		ctx := caller.With(t.Context(), caller.Caller{Env: map[string]string{"SERVICE_BACKEND_URL": "ftp://x"}})
		if got := call(ctx, "createSimulatorSession", `{"project":"a.b"}`,
			tools.IO{}); got["code"] != problem.CodeInvalidConfig || got["fixHint"] == "" {
			t.Errorf("answered %v", got)
		}
	})
}
