package pluginhost

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// The kinds of records that backend.proto lists.
const (
	kindProjects           = "projects"
	kindAssistant          = "assistant"
	kindCredentials        = "credentials"
	kindCredentialLink     = "credential_link"
	kindAnalytics          = "analytics"
	kindGatewayUsage       = "gateway_usage"
	kindConnectionPage     = "connection_page"
	kindConnectionPageFile = "connection_page_file"
)

// Projects lists the account's projects, sorted by app id.
func (h *Host) Projects(ctx context.Context, t backend.Target) ([]backendapi.Project, error) {
	list, err := record[struct {
		Projects []backendapi.Project `json:"projects"`
	}](ctx, h, t, &pluginv1.RecordRequest{Kind: kindProjects})
	return list.Projects, err
}

// Assistant returns the settings of a project's voice assistant.
func (h *Host) Assistant(ctx context.Context, t backend.Target, project string) (backendapi.AssistantConfig, error) {
	return record[backendapi.AssistantConfig](ctx, h, t, &pluginv1.RecordRequest{Kind: kindAssistant, Project: project})
}

// ChangeAssistant changes the settings of a project's voice assistant and returns the new ones.
func (h *Host) ChangeAssistant(
	ctx context.Context, t backend.Target, project string, change backendapi.AssistantChange,
) (backendapi.AssistantConfig, error) {
	req := &pluginv1.RecordRequest{Kind: kindAssistant, Project: project}
	return changeRecord[backendapi.AssistantConfig](ctx, h, t, req, change)
}

// Credentials lists the provider credentials of a project without their values.
func (h *Host) Credentials(ctx context.Context, t backend.Target, project string) (backendapi.CredentialList, error) {
	return record[backendapi.CredentialList](ctx, h, t, &pluginv1.RecordRequest{Kind: kindCredentials, Project: project})
}

// CredentialLink creates a page on which the user sets a provider's credential.
func (h *Host) CredentialLink(
	ctx context.Context, t backend.Target, project, provider string,
) (backendapi.CredentialLink, error) {
	req := &pluginv1.RecordRequest{Kind: kindCredentialLink, Project: project, Id: provider}
	return changeRecord[backendapi.CredentialLink](ctx, h, t, req, struct{}{})
}

// Analytics returns a report on a shipped app.
func (h *Host) Analytics(
	ctx context.Context, t backend.Target, project string, q backend.AnalyticsQuery,
) (backendapi.AnalyticsReport, error) {
	query := map[string]string{"range": q.Range, "from": q.From, "to": q.To, "interval": q.Interval}
	req := &pluginv1.RecordRequest{Kind: kindAnalytics, Project: project, Query: given(query)}
	return record[backendapi.AnalyticsReport](ctx, h, t, req)
}

// GatewayUsage returns the cost of a project's calls through the AI gateway.
func (h *Host) GatewayUsage(
	ctx context.Context, t backend.Target, project string, q backend.UsageQuery,
) (backendapi.GatewayUsage, error) {
	query := given(map[string]string{"range": q.Range, "interval": q.Interval})
	req := &pluginv1.RecordRequest{Kind: kindGatewayUsage, Project: project, Query: query}
	return record[backendapi.GatewayUsage](ctx, h, t, req)
}

// given removes parameters with empty values.
func given(query map[string]string) map[string]string {
	maps.DeleteFunc(query, func(_, value string) bool { return value == "" })
	return query
}

// ConnectionPage returns the settings of a project's connection page.
func (h *Host) ConnectionPage(ctx context.Context, t backend.Target,
	project string) (backendapi.ConnectionPage, error) {
	return record[backendapi.ConnectionPage](ctx, h, t,
		&pluginv1.RecordRequest{Kind: kindConnectionPage, Project: project})
}

// ChangeConnectionPage changes the settings of a project's connection page and returns the new ones.
func (h *Host) ChangeConnectionPage(
	ctx context.Context, t backend.Target, project string, change backendapi.ConnectionPageChange,
) (backendapi.ConnectionPage, error) {
	req := &pluginv1.RecordRequest{Kind: kindConnectionPage, Project: project}
	return changeRecord[backendapi.ConnectionPage](ctx, h, t, req, change)
}

// ConnectionPageFile returns a project's connection page as one file.
func (h *Host) ConnectionPageFile(
	ctx context.Context, t backend.Target, project string,
) (backendapi.ConnectionPageFile, error) {
	req := &pluginv1.RecordRequest{Kind: kindConnectionPageFile, Project: project}
	return record[backendapi.ConnectionPageFile](ctx, h, t, req)
}

func changeRecord[R any](
	ctx context.Context, h *Host, t backend.Target, req *pluginv1.RecordRequest, change any,
) (r R, err error) {
	req.Change = true
	if req.Body, err = json.Marshal(change); err != nil {
		return r, err
	}
	return record[R](ctx, h, t, req)
}

// record makes a call about a record and decodes the reply. It returns the same errors as call.
func record[R any](ctx context.Context, h *Host, t backend.Target, req *pluginv1.RecordRequest) (r R, err error) {
	req.Target = target(t)
	resp, err := call(ctx, h, t, pluginv1.BackendClient.Record, req)
	if err != nil {
		return r, err
	}
	return readRecord[R](req.GetKind(), resp.GetBody())
}

// readRecord rejects unknown fields: the adapter has the same version, so it does not send any. Its error does not
// quote the body.
func readRecord[R any](kind string, body []byte) (R, error) {
	var r, none R
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() || bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return none, invalid("the backend's answer about " + kind + " cannot be read")
	}
	return r, nil
}
