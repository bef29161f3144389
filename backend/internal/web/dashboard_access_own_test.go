package web

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// changedMeanwhile runs a function just before each change, as if another request was faster.
type changedMeanwhile struct {
	*grants.Service
	happen func()
}

func (c *changedMeanwhile) Set(
	ctx context.Context, account, project string, g grants.Grants, mayRaise bool, by audit.Actor,
) error {
	c.happen()
	return c.Service.Set(ctx, account, project, g, mayRaise, by)
}

func (c *changedMeanwhile) Follow(ctx context.Context, account, project string, mayRaise bool, by audit.Actor) error {
	c.happen()
	return c.Service.Follow(ctx, account, project, mayRaise, by)
}

func (c *changedMeanwhile) SetDefault(
	ctx context.Context, account string, g grants.Grants, everywhere, mayRaise bool, by audit.Actor,
) error {
	c.happen()
	return c.Service.SetDefault(ctx, account, g, everywhere, mayRaise, by)
}

// A level that the user set for a project stays when the default changes back and forth, and the page marks the
// project's own levels.
func TestAccess_ProjectKeepsItsOwnLevels(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
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
			h := newDashboardWorld(t)
			open := grants.Default()
			for _, field := range grants.Fields() {
				open.Assistant[field] = grants.ReadWrite
			}
			open.Analytics, open.Credentials = grants.ReadWrite, grants.ReadWrite
			if err := h.grants.SetDefault(t.Context(), adaID, open, true, true, audit.Person()); err != nil {
				t.Fatal(err)
			}
			lower := `INSERT INTO project_grants (account_id, app_id, capability, field, level)
				VALUES ('` + adaID + `', '` + hello + `', 'assistant_config', 'voice', 'off')`
			if path == "/account/mcp-access/default" {
				lower = `INSERT INTO account_grants (account_id, capability, field, level)
					VALUES ('` + adaID + `', 'assistant_config', 'voice', 'off')`
			}
			site := dashboardSite(t, h, func(o *Options) {
				o.AskProof = true
				o.Dashboard.Grants = &changedMeanwhile{h.grants, func() { h.exec(lower) }}
			})
			v := signedIn(t, site, ada).get("/account/mcp-access")
			v.post(path, v.form(fields...)).want(http.StatusOK, "Give agents more access?")
			if g, err := h.grants.Of(t.Context(), adaID, hello); err != nil || g.Assistant["voice"] != grants.Off {
				t.Errorf("the level is %s (error %v), want it off without a proof", g.Assistant["voice"], err)
			}
		})
	}
}

// With one project, the page begins with the default, and Show opens the project's levels.
func TestAccess_OneProject(t *testing.T) {
	h := newDashboardWorld(t)
	h.exec("DELETE FROM projects WHERE app_id <> $1", hello)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account/mcp-access").want(http.StatusOK, "Set one project apart",
		"grants no more than Read today").lacks("<details", `id="p0:analytics:off"`)
	v.get(accessPath(hello)).want(http.StatusOK, `id="p0:analytics:off"`).lacks("Set one project apart", `id="project"`)
	h.addProject("com.example.other", "Other", time.Time{})
	v.get(accessPath(hello)).want(http.StatusOK, "Show another project").lacks(`<option value="` + hello)
}
