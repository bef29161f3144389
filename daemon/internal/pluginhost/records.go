package pluginhost

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Kinds of records, as backend.proto lists them.
const (
	kindProjects           = "projects"
	kindAssistant          = "assistant"
	kindCredentials        = "credentials"
	kindCredentialLink     = "credential_link"
	kindAnalytics          = "analytics"
	kindConnectionPage     = "connection_page"
	kindConnectionPageFile = "connection_page_file"
)

// Projects lists the account's projects, by app id.
func (h *Host) Projects(ctx context.Context, t backend.Target) ([]backend.Project, error) {
	list, err := record[struct {
		Projects []backend.Project `json:"projects"`
	}](ctx, h, t, &pluginv1.RecordRequest{Kind: kindProjects})
	return list.Projects, err
}

// Assistant reads how a project's voice assistant is set.
func (h *Host) Assistant(ctx context.Context, t backend.Target, project string) (backend.AssistantConfig, error) {
	return record[backend.AssistantConfig](ctx, h, t, &pluginv1.RecordRequest{Kind: kindAssistant, Project: project})
}

// ChangeAssistant changes it and gives what it is then.
func (h *Host) ChangeAssistant(ctx context.Context, t backend.Target, project string, change backend.AssistantChange) (backend.AssistantConfig, error) {
	return changeRecord[backend.AssistantConfig](ctx, h, t, &pluginv1.RecordRequest{Kind: kindAssistant, Project: project}, change)
}

// Credentials tells which credentials of providers a project has, never their values.
func (h *Host) Credentials(ctx context.Context, t backend.Target, project string) (backend.CredentialList, error) {
	return record[backend.CredentialList](ctx, h, t, &pluginv1.RecordRequest{Kind: kindCredentials, Project: project})
}

// CredentialLink makes a page on which the person sets one.
func (h *Host) CredentialLink(ctx context.Context, t backend.Target, project, provider string) (backend.CredentialLink, error) {
	return changeRecord[backend.CredentialLink](ctx, h, t, &pluginv1.RecordRequest{Kind: kindCredentialLink, Project: project, Id: provider}, struct{}{})
}

// Analytics reports what a shipped app did.
func (h *Host) Analytics(ctx context.Context, t backend.Target, project string, q backend.AnalyticsQuery) (backend.AnalyticsReport, error) {
	query := map[string]string{}
	for name, value := range map[string]string{"range": q.Range, "from": q.From, "to": q.To, "interval": q.Interval} {
		if value != "" {
			query[name] = value
		}
	}
	return record[backend.AnalyticsReport](ctx, h, t, &pluginv1.RecordRequest{Kind: kindAnalytics, Project: project, Query: query})
}

// ConnectionPage reads the settings of a project's connection page.
func (h *Host) ConnectionPage(ctx context.Context, t backend.Target, project string) (backend.ConnectionPage, error) {
	return record[backend.ConnectionPage](ctx, h, t, &pluginv1.RecordRequest{Kind: kindConnectionPage, Project: project})
}

// ChangeConnectionPage changes them and gives what they are then.
func (h *Host) ChangeConnectionPage(ctx context.Context, t backend.Target, project string, change backend.ConnectionPageChange) (backend.ConnectionPage, error) {
	return changeRecord[backend.ConnectionPage](ctx, h, t, &pluginv1.RecordRequest{Kind: kindConnectionPage, Project: project}, change)
}

// ConnectionPageFile brings the page as one file.
func (h *Host) ConnectionPageFile(ctx context.Context, t backend.Target, project string) (backend.ConnectionPageFile, error) {
	return record[backend.ConnectionPageFile](ctx, h, t, &pluginv1.RecordRequest{Kind: kindConnectionPageFile, Project: project})
}

func changeRecord[R any](ctx context.Context, h *Host, t backend.Target, req *pluginv1.RecordRequest, change any) (R, error) {
	body, err := json.Marshal(change)
	if err != nil {
		var none R
		return none, err
	}
	req.Change, req.Body = true, body
	return record[R](ctx, h, t, req)
}

// record makes one call about a record and reads the answer. Errors are as of call.
func record[R any](ctx context.Context, h *Host, t backend.Target, req *pluginv1.RecordRequest) (R, error) {
	req.Target = target(t)
	resp, err := call(ctx, h, t, pluginv1.BackendClient.Record, req)
	if err != nil {
		var none R
		return none, err
	}
	return readRecord[R](req.GetKind(), resp.GetBody())
}

// readRecord takes exactly the fields that it knows: the adapter is of the same version and sends no other. What does
// not fit is not quoted.
func readRecord[R any](kind string, body []byte) (R, error) {
	var r, none R
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return none, invalid("the backend's answer about " + kind + " cannot be read")
	}
	return r, nil
}
