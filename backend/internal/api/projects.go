package api

import (
	"net/http"
	"net/url"

	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/backendapi"
)

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
		Access: backendapi.Access{
			AssistantConfig: assistantAccess(g), Credentials: string(g.Credentials), Analytics: string(g.Analytics),
		},
		DashboardURL: a.SiteURL + "/account/projects/" + url.PathEscape(p.ID),
	}
}

// list returns s, or an empty slice if s is nil, which JSON would encode as null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// convert returns the results of calling one for each element, never nil.
func convert[S, T any](from []S, one func(S) T) []T {
	to := make([]T, len(from))
	for i, v := range from {
		to[i] = one(v)
	}
	return to
}

// keysPerMinute limits the project keys that one link creates. Each adds an entry to the account's audit log.
const keysPerMinute = 10

func (a *API) mintKey(c *call, body backendapi.ProjectKeyRequest) (any, error) {
	if wait := a.mints.Take(c.who.LinkID); wait > 0 {
		return nil, rateLimited(wait, "too many project keys created with this link",
			"Use a key that you already created, or wait %d s.")
	}
	k, err := a.Projects.MintKey(c.Context(), c.who.AccountID, c.PathValue("project"), body.Name, c.by())
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return backendapi.ProjectKey{ProjectKey: k.Secret, Hint: k.Hint, CreatedAt: timestamp(k.CreatedAt)}, nil
}
