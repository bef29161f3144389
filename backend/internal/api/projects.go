package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/backendapi"
)

// Projects is what the routes need of the projects.
type Projects interface {
	List(ctx context.Context, accountID string) ([]projects.Project, error)
	// Get answers projects.ErrNotFound alike for ids that are unknown and those of other accounts.
	Get(ctx context.Context, accountID, id string) (projects.Project, error)
	MintKey(ctx context.Context, accountID, id, name string, by audit.Actor) (projects.Key, error)
}

func (a *API) listProjects(c *call) (any, error) {
	list, err := a.Projects.List(c.Context(), c.who.AccountID)
	if err != nil {
		return nil, err
	}
	out := backendapi.ProjectList{Projects: make([]backendapi.Project, 0, len(list))}
	for _, p := range list {
		g, err := a.Grants.Of(c.Context(), c.who.AccountID, p.ID)
		if err != nil {
			return nil, err
		}
		out.Projects = append(out.Projects, a.projectOf(p, g))
	}
	return out, nil
}

func (a *API) projectOf(p projects.Project, g grants.Grants) backendapi.Project {
	return backendapi.Project{
		Project: p.ID, DisplayName: p.DisplayName, Platforms: list(p.Platforms), CreatedAt: timestamp(p.CreatedAt),
		LastActiveAt: timeOrNull(p.LastActiveAt), Keys: p.Keys, OpenSessions: p.OpenSessions,
		Access:       backendapi.Access{AssistantConfig: assistantAccess(g), Credentials: string(g.Credentials), Analytics: string(g.Analytics)},
		DashboardURL: a.SiteURL + "/account/projects/" + url.PathEscape(p.ID),
	}
}

// list is never null on the wire.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (a *API) mintKey(c *call) (any, error) {
	var body backendapi.ProjectKeyRequest
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	k, err := a.Projects.MintKey(c.Context(), c.who.AccountID, c.PathValue("project"), body.Name, c.by())
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return backendapi.ProjectKey{ProjectKey: k.Secret, Hint: k.Hint, CreatedAt: timestamp(k.CreatedAt)}, nil
}

// projectRefusal turns the projects' errors into refusals; nil for others.
func projectRefusal(err error) *Refusal {
	var invalid *projects.InvalidError
	switch {
	case errors.As(err, &invalid):
		return refusal(backendapi.CodeInvalidRequest, invalid.Message, "correct the field and try again")
	case errors.Is(err, projects.ErrNotFound), errors.Is(err, assistant.ErrNoProject), errors.Is(err, connpage.ErrNotFound):
		return refusal(backendapi.CodeNotFound, "the account has no such project",
			"list the projects for their app ids; a project is made with its first session or key")
	case errors.Is(err, projects.ErrTooManyProjects):
		return refusal(backendapi.CodeConflict, "the account has as many projects as it can have", "use a project that is there, or ask the person to delete one in the dashboard")
	case errors.Is(err, projects.ErrTooManyKeys):
		return refusal(backendapi.CodeTooManyKeys, "the project has as many keys as it can have",
			"use a key that is kept already, or ask the account's owner to revoke one that is no longer used in the dashboard")
	}
	return nil
}
