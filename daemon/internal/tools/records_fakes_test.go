package tools

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
)

// accountRecords is the backend's side of an account with one project, com.example.app.
type accountRecords struct {
	err       error
	projects  []backend.Project
	assistant backend.AssistantConfig
	page      backend.ConnectionPage
	html      string
	report    backend.AnalyticsReport

	calls   int
	asked   string // project
	query   backend.AnalyticsQuery
	changed backend.AssistantChange
	paged   backend.ConnectionPageChange
}

func some[T any](v T) *T { return &v }

func someRecords() accountRecords {
	return accountRecords{
		projects: []backend.Project{{ID: "com.example.app", DisplayName: "App", CreatedAt: "2026-01-02T03:04:05.000Z", DashboardURL: "http://localhost:1/account/projects/com.example.app",
			Access: backend.Access{Credentials: "read_write", Analytics: "read"}}},
		assistant: backend.AssistantConfig{Project: "com.example.app", Version: 4, RealtimeModel: some("realtime-1"), Voice: some("ember"), MemoryModel: some("memory-1"),
			SessionMemory: some(true), Access: map[string]string{"voice": "read", "sounds": "off"}, Cost: backend.AssistantCost{MicroUSDPerMinute: some[int64](61000), Note: "an estimate."}},
		page: backend.ConnectionPage{Project: "com.example.app", Version: 2, Title: "App", Theme: "auto", Accent: "#0b6b68", PageURL: "http://localhost:1/connect/cp_1"},
		html: "<!doctype html><title>App</title>",
		report: backend.AnalyticsReport{Project: "com.example.app", From: "2026-01-01T00:00:00.000Z", To: "2026-01-02T00:00:00.000Z", Interval: "day",
			Totals: backend.AnalyticsTotals{Sessions: 3, Events: 2, Errors: 1, PeakActiveInstalls: 7}, Estimated: true, Reading: "Quiet."},
	}
}

// reach answers as a backend does: a link first, then the project.
func (r *accountRecords) reach(t backend.Target, project string) error {
	r.calls++
	r.asked = project
	switch {
	case t.Bearer == "":
		return &backend.Problem{Code: backend.CodeAuthRequired, Message: "link first"}
	case r.err != nil:
		return r.err
	case project != "com.example.app" && project != "":
		return &backend.Problem{Code: backend.CodeNotFound, Message: "there is no such project"}
	}
	return nil
}

func (r *accountRecords) Projects(_ context.Context, t backend.Target) ([]backend.Project, error) {
	return r.projects, r.reach(t, "")
}

func (r *accountRecords) Assistant(_ context.Context, t backend.Target, project string) (backend.AssistantConfig, error) {
	return r.assistant, r.reach(t, project)
}

func (r *accountRecords) ChangeAssistant(_ context.Context, t backend.Target, project string, c backend.AssistantChange) (backend.AssistantConfig, error) {
	r.changed = c
	after := r.assistant
	if c.Voice != nil && *c.Voice != *after.Voice {
		after.Version, after.Voice = after.Version+1, c.Voice
		after.Cost = backend.AssistantCost{MicroUSDPerMinute: some[int64](1_081_000), BeforeMicroUSDPerMinute: some[int64](61000)}
	}
	return after, r.reach(t, project)
}

func (r *accountRecords) Credentials(_ context.Context, t backend.Target, project string) (backend.CredentialList, error) {
	return backend.CredentialList{Project: project, Credentials: []backend.Credential{
		{Provider: "openai", Name: "OpenAI", Set: true, Hint: some("...wxyz"), TestResult: some("refused")}, {Provider: "google", Name: "Google"},
	}}, r.reach(t, project)
}

func (r *accountRecords) CredentialLink(_ context.Context, t backend.Target, project, provider string) (backend.CredentialLink, error) {
	return backend.CredentialLink{Provider: provider, URL: "http://localhost:1/account/credentials/scl_1", ExpiresAt: "2026-01-02T03:19:05.000Z"}, r.reach(t, project)
}

func (r *accountRecords) Analytics(_ context.Context, t backend.Target, project string, q backend.AnalyticsQuery) (backend.AnalyticsReport, error) {
	r.query = q
	return r.report, r.reach(t, project)
}

func (r *accountRecords) ConnectionPage(_ context.Context, t backend.Target, project string) (backend.ConnectionPage, error) {
	return r.page, r.reach(t, project)
}

func (r *accountRecords) ChangeConnectionPage(_ context.Context, t backend.Target, project string, c backend.ConnectionPageChange) (backend.ConnectionPage, error) {
	r.paged = c
	after := r.page
	after.Version++
	return after, r.reach(t, project)
}

func (r *accountRecords) ConnectionPageFile(_ context.Context, t backend.Target, project string) (backend.ConnectionPageFile, error) {
	if err := r.reach(t, ""); err != nil { // its project was just made
		return backend.ConnectionPageFile{}, err
	}
	return backend.ConnectionPageFile{Name: "connect.html", HTML: r.html}, nil
}

// Project is what the fake's directory says, unless the argument names one.
func (s sessions) Project(_ context.Context, argument string, who caller.Caller) (string, error) {
	if argument == "not-an-id" {
		return "", &backend.Problem{Code: CodeInvalidArguments, Message: "project is not an app id in reverse-DNS form", FixHint: "pass an id"}
	}
	return first(argument, s.here), nil
}
