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
	mu        sync.Mutex
	rows      []grants.Row
	meanwhile []grants.Row // what another request stores just before the next change
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
	m.mu.Lock()
	m.rows, m.meanwhile = slices.Concat(m.rows, m.meanwhile), nil
	m.mu.Unlock()
	former, _ := m.GrantRows(ctx, account, project)
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, entries := change(former, []string{hello})
	if len(entries) == 0 {
		return nil
	}
	kept := slices.DeleteFunc(m.rows, func(r grants.Row) bool { return slices.Contains(former, r) })
	m.rows = slices.Concat(kept, rows)
	return nil
}

// A level that the user set for a project stays when the default changes back and forth, and the page marks the
// project's own levels.
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

// A change that raises no level shown on the page needs a proof if another request lowers one in the meantime.
func TestAccess_LoweredMeanwhile(t *testing.T) {
	for path, fields := range map[string][]string{
		"/account/mcp-access/default": {"analytics", "off", "assistant.voice", "read_write"},
		"/account/mcp-access":         {"analytics", "off", "assistant.voice", "read_write", "project", hello},
		"/account/mcp-access/all":     {"level", "read"},
	} {
		t.Run(path, func(t *testing.T) {
			store := &memoryGrants{}
			service := &grants.Service{Store: store, Now: time.Now}
			open := grants.Default()
			for _, field := range grants.Fields() {
				open.Assistant[field] = grants.ReadWrite
			}
			open.Analytics, open.Credentials = grants.ReadWrite, grants.ReadWrite
			if err := service.SetDefault(t.Context(), adaID, open, true, true, audit.Person()); err != nil {
				t.Fatal(err)
			}
			h := newFakeDashboard()
			f := newFakeSettings()
			site, accounts := dashboardSite(t, h, func(o *Options) {
				f.all(o)
				o.AskProof = true
				o.Dashboard.Grants = service
			})
			f.fakeAccounts = accounts
			v := signedIn(t, site, ada).get("/account/mcp-access")
			lowered := grants.Row{Project: hello, Capability: grants.Assistant, Field: "voice", Level: grants.Off}
			if path == "/account/mcp-access/default" {
				lowered.Project = ""
			}
			store.meanwhile = []grants.Row{lowered}
			v.post(path, v.form(fields...)).want(http.StatusOK, "Give agents more access?")
			if g, err := service.Of(t.Context(), adaID, hello); err != nil || g.Assistant["voice"] != grants.Off {
				t.Errorf("the level is %s (error %v), want it off without a proof", g.Assistant["voice"], err)
			}
		})
	}
}

// With one project, the page begins with the default, and Show opens the project's levels.
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
