package web

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

// memoryGrants stores grants in memory, for the real grants.Service.
type memoryGrants struct {
	mu   sync.Mutex
	rows []grants.Row
}

func (m *memoryGrants) GrantRows(_ context.Context, _, project string) (rows []grants.Row, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if project == "" || r.Project == "" || r.Project == project {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (m *memoryGrants) ChangeGrants(ctx context.Context, account, project string,
	change func([]grants.Row, []string) ([]grants.Row, []audit.Entry)) error {
	former, _ := m.GrantRows(ctx, account, project)
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, _ := change(former, []string{hello})
	kept := slices.DeleteFunc(m.rows, func(r grants.Row) bool { return slices.Contains(former, r) })
	m.rows = slices.Concat(kept, rows)
	return nil
}

// A level that a person set for a project stays while the default goes back and forth, and the page says which levels
// are the project's own.
func TestAccess_ProjectKeepsItsOwnLevels(t *testing.T) {
	h := newFakeDashboard()
	site, _ := dashboardSite(t, h, func(o *Options) {
		o.Dashboard.Grants = &grants.Service{Store: &memoryGrants{}, Now: time.Now}
	})
	strict := []string{"assistant.voice", "off", "analytics", "off"}
	v := signedIn(t, site, ada).get(accessPath(hello))
	v.post("/account/mcp-access", v.form(append(strict, "project", hello)...)).onward().want(http.StatusOK,
		"has its own levels", "Voice: Off, Analytics: Off")
	v.post("/account/mcp-access/default", v.form(strict...)).onward().want(http.StatusOK,
		"Voice: Off (as your default now), Analytics: Off (as your default now)")
	v.post("/account/mcp-access/default", v.form("assistant.voice", "read_write", "analytics", "read")).onward().want(
		http.StatusOK, "Voice: Off, Analytics: Off")
	v.get(accessPath(hello)).want(http.StatusOK, "has its own levels",
		`id="p0:analytics:off" name="analytics" value="off" checked`)
	v.post("/account/mcp-access", v.form("project", hello, "follow", "default")).onward().want(http.StatusOK,
		"follows your default again", "Every project follows your default")
}

// With one project the page begins with the default, and Show leads to the project's levels.
func TestAccess_OneProject(t *testing.T) {
	h := newFakeDashboard()
	h.projects = h.projects[:1]
	site, _ := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account/mcp-access").want(http.StatusOK, "Set one project apart",
		"grants no more than Read today").lacks("<details", `id="p0:analytics:off"`)
	v.get(accessPath(hello)).want(http.StatusOK, `id="p0:analytics:off"`).lacks("Set one project apart", `id="project"`)
	h.with(func() {
		h.projects = append(h.projects, projects.Project{ID: "com.example.other", DisplayName: "Other"})
	})
	v.get(accessPath(hello)).want(http.StatusOK, "Show another project").lacks(`<option value="` + hello)
}
