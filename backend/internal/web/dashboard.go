package web

import (
	"net/http"
	"net/url"
	"time"
)

// mountDashboard adds the pages below /account about projects, grants and the audit log.
func (w *Web) mountDashboard(mux *http.ServeMux) {
	if w.Dashboard == nil {
		return
	}
	const one = " /account/projects/{id}"
	mount(mux, w.signedIn, map[string]handler{
		"GET /account":                      w.overview,
		"GET /account/links/{link}/revoke":  w.revokeLinkPage,
		"POST /account/links/{link}/revoke": w.revokeLink,
		"GET /account/links/revoke-all":     w.revokeAllLinksPage,
		"POST /account/links/revoke-all":    w.revokeAllLinks,
		"GET /account/projects":             w.listProjects,
		"GET /account/credit":               w.credit,
		"POST /account/credit/caps":         w.changeAccountCaps,
		"GET /account/mcp-access":           w.access,
		"POST /account/mcp-access":          w.changeAccess,
		"GET /account/audit":                w.activity,
		"POST /account/audit/{entry}/undo":  w.undo,
	})
	mount(mux, w.withProject, map[string]handler{
		"GET" + one:                                     w.project,
		"POST" + one:                                    w.changeProject,
		"POST" + one + "/keys":                          w.mintKey,
		"GET" + one + "/keys/{key}/rotate":              w.rotateKeyPage,
		"POST" + one + "/keys/{key}/rotate":             w.rotateKey,
		"GET" + one + "/keys/{key}/revoke":              w.revokeKeyPage,
		"POST" + one + "/keys/{key}/revoke":             w.revokeKey,
		"GET" + one + "/merge":                          w.mergePage,
		"POST" + one + "/merge":                         w.merge,
		"GET" + one + "/delete":                         w.deletePage,
		"POST" + one + "/delete":                        w.deleteProject,
		"GET" + one + "/assistant":                      w.assistant,
		"POST" + one + "/assistant":                     w.changeAssistant,
		"GET" + one + "/credentials":                    w.credentials,
		"POST" + one + "/credentials/{provider}":        w.setCredential,
		"POST" + one + "/credentials/{provider}/test":   w.testCredential,
		"GET" + one + "/credentials/{provider}/remove":  w.removeCredentialPage,
		"POST" + one + "/credentials/{provider}/remove": w.removeCredential,
		"GET" + one + "/gateway":                        w.gateway,
		"GET /projects/{id}/gateway":                    w.gatewayAddress, // of mails
		"POST" + one + "/gateway/caps":                  w.changeProjectCaps,
		"POST" + one + "/gateway/key-source":            w.changeKeySource,
		"GET" + one + "/connection-page":                w.connectionPage,
		"POST" + one + "/connection-page":               w.changeConnectionPage,
		"GET" + one + "/connection-page/file":           w.connectionPageFile,
	})
}

func projectPath(id string) string { return "/account/projects/" + url.PathEscape(id) }

// projectNav is the data of the template "project-nav". Here is the page's last path segment, or "" on the project's
// own page.
type projectNav struct{ Path, ID, Name, Here string }

func (c *call) projectNav(here string) projectNav {
	return projectNav{Path: projectPath(c.project.ID), ID: c.project.ID, Name: c.project.DisplayName, Here: here}
}

// shownTime is the data of the template "time"; the zero time has no Text.
type shownTime struct{ ISO, Text string }

func showTime(t time.Time) shownTime {
	if t.IsZero() {
		return shownTime{}
	}
	t = t.UTC()
	return shownTime{t.Format(time.RFC3339), t.Format("2 Jan 2006, 15:04 UTC")}
}

// confirmation is the data of the template "dashboard_confirm", which asks before an action that cannot be undone. If
// Expect is set, it must be typed into the field "typed".
type confirmation struct {
	formErrors
	Nav     string // for the template "account-nav"
	Title   string
	Text    []string
	Action  string // where the confirmation is posted
	Hidden  map[string]string
	Label   string // of the button
	Expect  string
	Typed   string
	Back    string
	Instead string // label of the link Back
}

func (w *Web) confirm(c *call, ask confirmation) error {
	return w.render(c, ask.status(), "dashboard_confirm", ask)
}
