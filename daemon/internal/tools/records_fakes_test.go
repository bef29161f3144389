package tools

import (
	"cmp"
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// accountRecords is a fake backend for an account with one project, com.example.app.
type accountRecords struct {
	err       error
	projects  []backendapi.Project
	assistant backendapi.AssistantConfig
	page      backendapi.ConnectionPage
	html      string
	report    backendapi.AnalyticsReport
	usage     backendapi.GatewayUsage

	calls   int
	asked   string // the requested project
	query   backend.AnalyticsQuery
	spent   backend.UsageQuery
	changed backendapi.AssistantChange
	paged   backendapi.ConnectionPageChange
}

// accountHost is the records and the project keys of one account.
type accountHost struct {
	*accountRecords
	*keys
}

func some[T any](v T) *T { return &v }

func someRecords() accountRecords {
	return accountRecords{
		projects: []backendapi.Project{{Project: "com.example.app", DisplayName: "App", CreatedAt: "2026-01-02T03:04:05.000Z",
			DashboardURL: "http://localhost:1/account/projects/com.example.app",
			Access:       backendapi.Access{Credentials: "read_write", Analytics: "read"}}},
		assistant: backendapi.AssistantConfig{Project: "com.example.app", Version: 4, RealtimeModel: some("realtime-1"),
			Voice: some("ember"), MemoryModel: some("memory-1"),
			SessionMemory: some(true), Access: map[string]string{"voice": "read", "sounds": "off"},
			Cost: backendapi.AssistantCost{MicroUSDPerMinute: some[int64](61000), Note: "an estimate."}},
		page: backendapi.ConnectionPage{Project: "com.example.app", Version: 2, Title: "App", Theme: "auto", Accent: "#0b6b68",
			PageURL: "http://localhost:1/connect/cp_1"},
		html: "<!doctype html><title>App</title>",
		report: backendapi.AnalyticsReport{Project: "com.example.app", From: "2026-01-01T00:00:00.000Z",
			To: "2026-01-02T00:00:00.000Z", Interval: "day",
			Totals:    backendapi.AnalyticsTotals{Sessions: 3, Events: 2, Errors: 1, PeakActiveInstalls: 7},
			Estimated: true, Reading: "Quiet."},
		usage: backendapi.GatewayUsage{Project: "com.example.app", Interval: "day",
			Range:  backendapi.GatewayRange{From: "2026-01-01T00:00:00.000Z", To: "2026-01-02T00:00:00.000Z"},
			Totals: backendapi.GatewaySums{Calls: 41, MicroUSD: 126_800}, Summary: "41 calls cost $0.1268."},
	}
}

// authorise checks in a backend's order: first the link, then the project.
func (r *accountRecords) authorise(t backend.Target, project string) error {
	r.calls++
	r.asked = project
	switch {
	case t.Bearer == "":
		return &problem.Error{Code: problem.CodeAuthRequired, Message: "link first"}
	case r.err != nil:
		return r.err
	case project != "com.example.app" && project != "":
		return &problem.Error{Code: problem.CodeNotFound, Message: "there is no such project"}
	}
	return nil
}

func (r *accountRecords) Projects(_ context.Context, t backend.Target) ([]backendapi.Project, error) {
	return r.projects, r.authorise(t, "")
}

func (r *accountRecords) Assistant(_ context.Context, t backend.Target,
	project string) (backendapi.AssistantConfig, error) {
	return r.assistant, r.authorise(t, project)
}

func (r *accountRecords) ChangeAssistant(_ context.Context, t backend.Target, project string,
	c backendapi.AssistantChange) (backendapi.AssistantConfig, error) {
	r.changed = c
	after := r.assistant
	if c.Voice != nil && *c.Voice != *after.Voice {
		after.Version, after.Voice, after.Changed = after.Version+1, c.Voice, []string{"voice"}
		after.Cost = backendapi.AssistantCost{MicroUSDPerMinute: some[int64](1_081_000),
			BeforeMicroUSDPerMinute: some[int64](61000)}
	}
	return after, r.authorise(t, project)
}

func (r *accountRecords) Credentials(_ context.Context, t backend.Target,
	project string) (backendapi.CredentialList, error) {
	return backendapi.CredentialList{Project: project, Credentials: []backendapi.Credential{
		{Provider: "openai", Name: "OpenAI", Set: true, Hint: some("...wxyz"), TestResult: some("refused")},
		{Provider: "google", Name: "Google"},
	}}, r.authorise(t, project)
}

func (r *accountRecords) CredentialLink(_ context.Context, t backend.Target, project,
	provider string) (backendapi.CredentialLink, error) {
	return backendapi.CredentialLink{Provider: provider, URL: "http://localhost:1/account/credentials/scl_1",
		ExpiresAt: "2026-01-02T03:19:05.000Z"}, r.authorise(t, project)
}

func (r *accountRecords) Analytics(_ context.Context, t backend.Target, project string,
	q backend.AnalyticsQuery) (backendapi.AnalyticsReport, error) {
	r.query = q
	return r.report, r.authorise(t, project)
}

func (r *accountRecords) GatewayUsage(_ context.Context, t backend.Target, project string,
	q backend.UsageQuery) (backendapi.GatewayUsage, error) {
	r.spent = q
	return r.usage, r.authorise(t, project)
}

func (r *accountRecords) ConnectionPage(_ context.Context, t backend.Target,
	project string) (backendapi.ConnectionPage, error) {
	return r.page, r.authorise(t, project)
}

func (r *accountRecords) ChangeConnectionPage(_ context.Context, t backend.Target, project string,
	c backendapi.ConnectionPageChange) (backendapi.ConnectionPage, error) {
	r.paged = c
	after := r.page
	after.Version++
	if c.Title != nil {
		after.Title = *c.Title
	}
	return after, r.authorise(t, project)
}

func (r *accountRecords) ConnectionPageFile(_ context.Context, t backend.Target,
	project string) (backendapi.ConnectionPageFile, error) {
	if err := r.authorise(t, ""); err != nil { // for any project: the test has just created this one
		return backendapi.ConnectionPageFile{}, err
	}
	return backendapi.ConnectionPageFile{Name: "connect.html", HTML: r.html}, nil
}

// Project returns the argument, otherwise the project of the fake's directory.
func (s sessions) Project(_ context.Context, argument string, who caller.Caller) (string, error) {
	if argument == "not-an-id" {
		return "", &problem.Error{Code: problem.CodeInvalidRequest, Message: "project must be an app id in reverse-DNS form",
			FixHint: "pass an id"}
	}
	return cmp.Or(argument, s.here), nil
}
