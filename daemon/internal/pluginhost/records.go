package pluginhost

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

// ofProject returns the path parameters of a route for a project.
func ofProject(project string) map[string]string { return map[string]string{"project": project} }

// Projects lists the account's projects, sorted by app id.
func (h *Host) Projects(ctx context.Context, t backend.Target) ([]backendapi.Project, error) {
	list, err := fetch[backendapi.ProjectList](ctx, h, t, request{route: backendapi.RouteProjects})
	return list.Projects, err
}

// MintProjectKey creates a key for a project of the linked account, with the label name.
func (h *Host) MintProjectKey(ctx context.Context, t backend.Target, project, name string) (backend.ProjectKey, error) {
	key, err := fetch[backendapi.ProjectKey](ctx, h, t, request{
		route: backendapi.RouteMintKey, path: ofProject(project), body: backendapi.ProjectKeyRequest{Name: name},
	})
	return backend.ProjectKey{Key: key.ProjectKey, Hint: key.Hint, CreatedAt: timestamp(key.CreatedAt)}, err
}

// Assistant returns the settings of a project's voice assistant.
func (h *Host) Assistant(ctx context.Context, t backend.Target, project string) (backendapi.AssistantConfig, error) {
	return fetch[backendapi.AssistantConfig](ctx, h, t,
		request{route: backendapi.RouteAssistant, path: ofProject(project)})
}

// ChangeAssistant changes the settings of a project's voice assistant and returns the new ones.
func (h *Host) ChangeAssistant(
	ctx context.Context, t backend.Target, project string, change backendapi.AssistantChange,
) (backendapi.AssistantConfig, error) {
	return fetch[backendapi.AssistantConfig](ctx, h, t,
		request{route: backendapi.RouteChangeAssistant, path: ofProject(project), body: change})
}

// Credentials lists the provider credentials of a project without their values.
func (h *Host) Credentials(ctx context.Context, t backend.Target, project string) (backendapi.CredentialList, error) {
	return fetch[backendapi.CredentialList](ctx, h, t,
		request{route: backendapi.RouteCredentials, path: ofProject(project)})
}

// CredentialLink creates a page on which the user sets a provider's credential.
func (h *Host) CredentialLink(
	ctx context.Context, t backend.Target, project, provider string,
) (backendapi.CredentialLink, error) {
	path := map[string]string{"project": project, "id": provider}
	return fetch[backendapi.CredentialLink](ctx, h, t,
		request{route: backendapi.RouteCredentialLink, path: path, body: struct{}{}})
}

// Analytics returns a report on a published app.
func (h *Host) Analytics(
	ctx context.Context, t backend.Target, project string, q backend.AnalyticsQuery,
) (backendapi.AnalyticsReport, error) {
	query := map[string]string{"range": q.Range, "from": q.From, "to": q.To, "interval": q.Interval}
	return fetch[backendapi.AnalyticsReport](ctx, h, t,
		request{route: backendapi.RouteAnalytics, path: ofProject(project), query: query})
}

// GatewayUsage returns the cost of a project's calls through the AI gateway.
func (h *Host) GatewayUsage(
	ctx context.Context, t backend.Target, project string, q backend.UsageQuery,
) (backendapi.GatewayUsage, error) {
	query := map[string]string{"range": q.Range, "interval": q.Interval}
	return fetch[backendapi.GatewayUsage](ctx, h, t,
		request{route: backendapi.RouteGatewayUsage, path: ofProject(project), query: query})
}

// ConnectionPage returns the settings of a project's connection page.
func (h *Host) ConnectionPage(ctx context.Context, t backend.Target,
	project string) (backendapi.ConnectionPage, error) {
	return fetch[backendapi.ConnectionPage](ctx, h, t,
		request{route: backendapi.RouteConnectionPage, path: ofProject(project)})
}

// ChangeConnectionPage changes the settings of a project's connection page and returns the new ones.
func (h *Host) ChangeConnectionPage(
	ctx context.Context, t backend.Target, project string, change backendapi.ConnectionPageChange,
) (backendapi.ConnectionPage, error) {
	return fetch[backendapi.ConnectionPage](ctx, h, t,
		request{route: backendapi.RouteChangePage, path: ofProject(project), body: change})
}

// ConnectionPageFile returns a project's connection page as one file.
func (h *Host) ConnectionPageFile(
	ctx context.Context, t backend.Target, project string,
) (backendapi.ConnectionPageFile, error) {
	return fetch[backendapi.ConnectionPageFile](ctx, h, t,
		request{route: backendapi.RouteConnectionPageFile, path: ofProject(project)})
}
