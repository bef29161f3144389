package web

import (
	"net/http"
	"net/url"
	"time"
)

// oneProject is the prefix of the route patterns for a project's pages.
const oneProject = " /account/projects/{id}"

// oneSession is the prefix of the paths for an open session.
const oneSession = "/account/sessions/{session}"

// accountPages are the pages about projects, sessions, credit, grants and the audit log.
var accountPages = map[string]func(*Web, *call) error{
	"GET /account":                      (*Web).overview,
	"GET /account/links/{link}/revoke":  (*Web).revokeLinkPage,
	"POST /account/links/{link}/revoke": (*Web).revokeLink,
	"GET /account/links/revoke-all":     (*Web).revokeAllLinksPage,
	"POST /account/links/revoke-all":    (*Web).revokeAllLinks,
	"GET /account/projects":             (*Web).listProjects,
	"GET /account/sessions":             (*Web).listSessions,
	"GET " + oneSession + "/panel":      (*Web).sessionPanel,
	"GET /s/{session}/panel":            (*Web).simulatorPanel,
	"GET " + oneSession + "/close":      (*Web).closeSimulatorPage,
	"POST " + oneSession + "/close":     (*Web).closeSimulator,
	"GET /account/credit":               (*Web).credit,
	"POST /account/credit/caps":         (*Web).changeAccountCaps,
	"GET /account/mcp-access":           (*Web).access,
	"POST /account/mcp-access":          (*Web).changeAccess,
	"POST /account/mcp-access/default":  (*Web).changeDefaultAccess,
	"GET /account/mcp-access/all":       (*Web).accessForAllPage,
	"POST /account/mcp-access/all":      (*Web).changeAccessForAll,
	"GET /account/audit":                (*Web).activity,
	"POST /account/audit/{entry}/undo":  (*Web).undo,
}

// projectPages are the pages of one project.
var projectPages = map[string]func(*Web, *call) error{
	"GET" + oneProject:                                     (*Web).project,
	"POST" + oneProject:                                    (*Web).changeProject,
	"POST" + oneProject + "/keys":                          proven("Create the key?", newKeyText, (*Web).mintKey),
	"GET" + oneProject + "/keys/{key}/rotate":              (*Web).rotateKeyPage,
	"POST" + oneProject + "/keys/{key}/rotate":             proven("Rotate the key?", newKeyText, (*Web).rotateKey),
	"GET" + oneProject + "/keys/{key}/revoke":              (*Web).revokeKeyPage,
	"POST" + oneProject + "/keys/{key}/revoke":             (*Web).revokeKey,
	"GET" + oneProject + "/merge":                          (*Web).mergePage,
	"POST" + oneProject + "/merge":                         proven("Merge the projects?", mergeText, (*Web).merge),
	"GET" + oneProject + "/delete":                         (*Web).deletePage,
	"POST" + oneProject + "/delete":                        (*Web).deleteProject,
	"GET" + oneProject + "/sessions":                       (*Web).listProjectSessions,
	"GET" + oneProject + "/assistant":                      (*Web).assistant,
	"POST" + oneProject + "/assistant":                     (*Web).changeAssistant,
	"GET" + oneProject + "/assistant/memory/erase":         (*Web).eraseMemoriesPage,
	"POST" + oneProject + "/assistant/memory":              (*Web).changeMemory,
	"GET" + oneProject + "/credentials":                    (*Web).credentials,
	"POST" + oneProject + "/credentials/{provider}":        (*Web).setCredential,
	"POST" + oneProject + "/credentials/{provider}/test":   (*Web).testCredential,
	"GET" + oneProject + "/credentials/{provider}/remove":  (*Web).removeCredentialPage,
	"POST" + oneProject + "/credentials/{provider}/remove": (*Web).removeCredential,
	"GET" + oneProject + "/gateway":                        (*Web).gateway,
	"GET /projects/{id}/gateway":                           (*Web).gatewayAddress, // the address that mails link to
	"POST" + oneProject + "/gateway/caps":                  (*Web).changeProjectCaps,
	"POST" + oneProject + "/gateway/key-source":            (*Web).changeKeySource,

	"POST" + oneProject + "/gateway/attestation":                           (*Web).changeAttestation,
	"POST" + oneProject + "/gateway/attestation/keys":                      (*Web).setPlayKeys,
	"GET" + oneProject + "/gateway/attestation/keys/remove":                (*Web).removePlayKeysPage,
	"POST" + oneProject + "/gateway/attestation/keys/remove":               (*Web).removePlayKeys,
	"POST" + oneProject + "/gateway/attestation/installs/{install}/revoke": (*Web).revokeInstall,

	"GET" + oneProject + "/connection-page":      (*Web).connectionPage,
	"POST" + oneProject + "/connection-page":     (*Web).changeConnectionPage,
	"GET" + oneProject + "/connection-page/file": (*Web).connectionPageFile,
}

// serverPages are the pages of local servers, which exist only if the backend runs on the user's own machine.
var serverPages = map[string]func(*Web, *call) error{
	"POST" + oneProject + "/gateway/servers":                 (*Web).addServer,
	"POST" + oneProject + "/gateway/servers/{server}/check":  (*Web).checkServer,
	"GET" + oneProject + "/gateway/servers/{server}/remove":  (*Web).removeServerPage,
	"POST" + oneProject + "/gateway/servers/{server}/remove": (*Web).removeServer,
}

// mountDashboard adds the pages below /account about projects, grants and the audit log.
func (w *Web) mountDashboard(mux *http.ServeMux) {
	if w.Dashboard == nil {
		return
	}
	for pattern, h := range accountPages {
		mux.Handle(pattern, w.signedIn(func(c *call) error { return h(w, c) }))
	}
	for pattern, h := range projectPages {
		mux.Handle(pattern, w.withProject(func(c *call) error { return h(w, c) }))
	}
	if w.Dashboard.LocalServers == nil {
		return
	}
	for pattern, h := range serverPages {
		mux.Handle(pattern, w.withProject(func(c *call) error { return h(w, c) }))
	}
}

func projectPath(id string) string { return "/account/projects/" + url.PathEscape(id) }

// projectNav is the data of the template "project-nav". Here is the last path segment of the current page, or "" for
// the project's own page.
type projectNav struct{ Path, ID, Name, Here string }

func (c *call) projectNav(here string) projectNav {
	return projectNav{Path: projectPath(c.project.ID), ID: c.project.ID, Name: c.project.DisplayName, Here: here}
}

// shownTime is the data of the template "time". The zero time has no Text.
type shownTime struct{ ISO, Text string }

func showTime(t time.Time) shownTime {
	if t.IsZero() {
		return shownTime{}
	}
	t = t.UTC()
	return shownTime{t.Format(time.RFC3339), t.Format("2 Jan 2006, 15:04 UTC")}
}

// confirmation is the data of the template "dashboard_confirm", which asks before an action that cannot be undone. If
// Expect is set, the user must type it into the field "typed".
type confirmation struct {
	formErrors
	Nav     string // current page in the template "account-nav"
	Title   string
	Text    []string
	Action  string // URL that the confirmation is posted to
	Hidden  map[string]string
	Label   string // label of the button
	Expect  string
	Typed   string
	Back    string
	Instead string // label of the link Back
}

func (w *Web) confirm(c *call, ask confirmation) error {
	return w.render(c, ask.status(), "dashboard_confirm", ask)
}
