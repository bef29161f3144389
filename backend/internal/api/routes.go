package api

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/backendapi"
)

// authLevel determines who may call a route.
type authLevel int

const (
	anyone     authLevel = iota // the backend checks no credential
	linked                      // a linked install, with its bearer token
	ownProject                  // a linked install whose account has the project in the path
	appKey                      // a shipped app, with a project key that the handler verifies
)

// route is one row of the route table: a pattern, who may call it, and the grant that an agent needs.
type route struct {
	method, path string
	level        authLevel
	query        []string          // accepted query parameters; any other is refused
	capability   grants.Capability // "" if no grant is needed
	grant        grants.Level
	fields       func(*call) ([]string, error) // field names in the request, if each has a grant
	reads        string                        // action in the account's audit log
	waits        bool                          // waits for an open page, so it does not use one of the account's slots
	handler      func(*call) (any, error)      // returns the response, which is sent as JSON
	raw          http.HandlerFunc              // instead of handler, for callers that are not installs
}

// call is one request being handled by enforce.
type call struct {
	*http.Request
	w       http.ResponseWriter
	who     link.Principal   // set for levels linked and ownProject
	project projects.Project // set for level ownProject; its ID is not an alias
	grants  grants.Grants    // set for level ownProject
	body    any              // the body as decoded by fields
	status  int
}

// table returns the route table of this API.
func (a *API) table() []route {
	get, post, patch, remove := http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	session, project := backendapi.PathSessions+"/{id}", backendapi.PathProjects+"/{project}"
	page, file := project+backendapi.PathConnectionPage, project+backendapi.PathConnectionPageFile
	return append([]route{
		{method: get, path: backendapi.PathHealth, level: anyone, handler: a.health},
		{method: post, path: backendapi.PathDeviceCode, level: anyone, handler: withBody(a.issueCode)},
		{method: post, path: backendapi.PathDeviceToken, level: anyone, handler: withBody(a.pollToken)},
		{method: post, path: backendapi.PathDeviceCancel, level: anyone, handler: withBody(a.cancelCode)},
		{method: get, path: backendapi.PathAccount, level: linked, handler: a.whoAmI},
		{method: remove, path: backendapi.PathAccountLink, level: linked, handler: a.revokeOwnLink},

		{method: post, path: backendapi.PathSessions, level: linked, handler: withBody(a.createSession)},
		{method: get, path: backendapi.PathSessions, level: linked, handler: a.listSessions},
		{method: get, path: session, level: linked, handler: a.getSession},
		{method: remove, path: session, level: linked, handler: a.closeSession},
		{method: post, path: session + "/secrets", level: linked, handler: a.mintSecret},
		{method: get, path: session + "/events", level: linked, query: []string{"since", "limit", "waitMs"},
			handler: a.listEvents},
		{method: post, path: session + "/control", level: linked, waits: true, handler: a.control},
		{method: post, path: session + backendapi.PathAssistantScript, level: linked, handler: a.setScript},

		{method: get, path: backendapi.PathProjects, level: linked, handler: a.listProjects},
		// A project's first key creates the project, so the project in the path may not exist yet.
		{method: post, path: project + "/keys", level: linked, handler: withBody(a.mintKey)},
		{method: get, path: project + backendapi.PathAssistant, level: ownProject, handler: a.getAssistant,
			capability: grants.Assistant, grant: grants.Read, reads: "assistant.read"},
		{method: patch, path: project + backendapi.PathAssistant, level: ownProject, handler: a.changeAssistant,
			capability: grants.Assistant, grant: grants.ReadWrite, fields: assistantFields},
		{method: get, path: project + backendapi.PathGatewayUsage, level: ownProject, handler: a.reportUsage,
			query: []string{"range", "interval"}, capability: grants.Assistant, grant: grants.Read, fields: usageFields,
			reads: "gateway_usage.read"},
		{method: get, path: project + backendapi.PathCredentials, level: ownProject, handler: a.listCredentials,
			capability: grants.Credentials, grant: grants.Read, reads: "credentials.read"},
		{method: post, path: project + backendapi.PathCredentialLink, level: ownProject, handler: withBody(a.linkCredential),
			capability: grants.Credentials, grant: grants.ReadWrite},
		{method: get, path: project + backendapi.PathAnalytics, level: ownProject, handler: a.reportAnalytics,
			query: []string{"range", "from", "to", "interval"}, capability: grants.Analytics, grant: grants.Read,
			reads: "analytics.read"},
		{method: get, path: page, level: ownProject, handler: a.getConnectionPage},
		{method: patch, path: page, level: ownProject, handler: withBody(a.changeConnectionPage)},
		{method: get, path: file, level: ownProject, handler: a.connectionPageFile},
	}, append(a.ingestRoutes(), a.telemetryRoutes()...)...)
}

// enforce returns the handler for a route of the table. It checks the caller's credential, that the account has the
// project, and that the account's grants allow the call. Then it records the read and writes the response.
func (a *API) enforce(rt route) http.HandlerFunc {
	if rt.raw != nil {
		return rt.raw
	}
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, status: http.StatusOK}
		if rt.level != anyone {
			who, ok := a.authenticate(w, r)
			if !ok {
				return
			}
			c.who = who
		}
		out, err := a.serveChange(rt, c)
		if errors.Is(err, link.ErrRevoked) {
			a.invalidToken(w, r, err)
			return
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.answer(w, c.status, out)
	}
}

// changeBounds limits the concurrent changes of one account. Most changes lock the same rows, so more of them would
// only hold database connections while they wait for each other.
var changeBounds = limit.Bounds{Running: 10_000, RunningEach: 4, Waiting: 10_000, WaitingEach: 100}

// serveChange is like serve, but runs only a few changes of each account at the same time.
func (a *API) serveChange(rt route, c *call) (any, error) {
	if rt.level == anyone || rt.method == http.MethodGet || rt.waits {
		return a.serve(rt, c)
	}
	leave, err := a.running.Enter(c.Context(), c.who.AccountID)
	if errors.Is(err, limit.ErrFull) {
		return nil, rateLimited(time.Second, "too many changes of this account are in progress",
			"Wait %d s and try again, with fewer requests at the same time.")
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	return a.serve(rt, c)
}

func (a *API) serve(rt route, c *call) (any, error) {
	if rt.level != anyone {
		if err := checkQuery(c.Request, rt.query); err != nil {
			return nil, err
		}
	}
	if rt.level == ownProject {
		if err := a.authorise(rt, c); err != nil {
			return nil, err
		}
		if wait := a.takeChange(rt, c); wait > 0 {
			return nil, rateLimited(wait, "too many changes with this link",
				"Combine related edits into one change and wait %d s.")
		}
	}
	out, err := rt.handler(c)
	if err != nil || rt.reads == "" {
		return out, err
	}
	// Fail if the audit entry cannot be written.
	return out, a.Audit.Read(c.Context(), c.who.AccountID, c.project.ID, rt.reads, c.by())
}

// changesPerMinute limits the changes made with one link. Each change adds an entry to the account's audit log, which
// has a maximum size, and an agent must not be able to push out earlier entries.
const changesPerMinute = 60

// takeChange counts a change made with the link. It returns the time to wait if there were too many, or 0 otherwise.
func (a *API) takeChange(rt route, c *call) time.Duration {
	if rt.method == http.MethodGet {
		return 0
	}
	return a.changes.Take(c.who.LinkID)
}

// authorise loads the project in the path and checks its grants. It reports another account's project as not found.
func (a *API) authorise(rt route, c *call) (err error) {
	if c.project, err = a.Projects.Get(c.Context(), c.who.AccountID, c.PathValue("project")); err != nil {
		return err
	}
	if c.grants, err = a.Grants.Of(c.Context(), c.who.AccountID, c.project.ID); err != nil {
		return err
	}
	if rt.capability == "" {
		return nil
	}
	var fields []string
	if rt.fields != nil {
		fields, err = rt.fields(c)
	}
	for _, f := range fields {
		if err := c.grants.Require(c.project.ID, rt.capability, f, rt.grant); err != nil {
			return err
		}
	}
	if len(fields) > 0 && err == nil {
		return nil
	}
	// Report a missing grant before mistakes in the body.
	return cmp.Or(c.grants.Require(c.project.ID, rt.capability, "", rt.grant), err)
}

// by returns the calling agent as an audit actor.
func (c *call) by() audit.Actor { return audit.Agent(c.who.LinkID) }

// checkQuery returns an error for unknown and repeated parameters.
func checkQuery(r *http.Request, known []string) error {
	for name, values := range r.URL.Query() {
		switch {
		case !slices.Contains(known, name):
			return invalidRequest("unknown query parameter "+clip(name, 60), "Send the documented parameters only.")
		case len(values) > 1:
			return invalidRequest("the query parameter "+name+" occurs twice", "Send it once.")
		}
	}
	return nil
}
