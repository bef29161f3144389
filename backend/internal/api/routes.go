package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/proto/backendapi"
)

// door is who may come to a route at all.
type door int

const (
	anyone     door = iota // no credential is looked at
	linked                 // a linked install, with its bearer token
	ownProject             // a linked install whose account has the project that the path names
	appKey                 // a shipped app, with a project key; the handler looks at it
)

// route is one row of the table: what is asked for, who may ask, and which grant an agent needs.
type route struct {
	method, path string
	door         door
	query        []string          // parameters that it knows; any other is refused
	capability   grants.Capability // empty: no grant is needed
	level        grants.Level
	fields       func(*call) ([]string, error) // of a capability with a grant for each: those that the request is about
	reads        string                        // the action that the account's audit log keeps of it
	handler      func(*call) (any, error)      // the answer, as JSON with the call's status
	raw          http.HandlerFunc              // in place of handler, where a program that is no install calls
}

// call is one request on its way through enforce.
type call struct {
	*http.Request
	w       http.ResponseWriter
	who     link.Principal   // behind doors linked and ownProject
	project projects.Project // behind door ownProject; its ID is no alias
	grants  grants.Grants    // behind door ownProject
	body    any              // what fields has read
	status  int
}

// Grants is what enforce needs of an account's grants.
type Grants interface {
	Of(ctx context.Context, accountID, project string) (grants.Grants, error)
}

// AuditReads keeps what agents read.
type AuditReads interface {
	Read(ctx context.Context, accountID, project, action string, by audit.Actor) error
}

// table is every route of this API.
func (a *API) table() []route {
	get, post, patch, remove := http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	session, project := backendapi.PathSessions+"/{id}", backendapi.PathProjects+"/{project}"
	page, file := project+backendapi.PathConnectionPage, project+backendapi.PathConnectionPageFile
	return append([]route{
		{method: get, path: backendapi.PathHealth, door: anyone, handler: a.health},
		{method: post, path: backendapi.PathDeviceCode, door: anyone, handler: a.issueCode},
		{method: post, path: backendapi.PathDeviceToken, door: anyone, handler: a.pollToken},
		{method: get, path: backendapi.PathAccount, door: linked, handler: a.whoAmI},
		{method: remove, path: backendapi.PathAccountLink, door: linked, handler: a.revokeOwnLink},

		{method: post, path: backendapi.PathSessions, door: linked, handler: a.createSession},
		{method: get, path: backendapi.PathSessions, door: linked, handler: a.listSessions},
		{method: get, path: session, door: linked, handler: a.getSession},
		{method: remove, path: session, door: linked, handler: a.closeSession},
		{method: post, path: session + "/secrets", door: linked, handler: a.mintSecret},
		{method: get, path: session + "/events", door: linked, query: []string{"since", "limit", "waitMs"}, handler: a.listEvents},
		{method: post, path: session + "/control", door: linked, handler: a.control},

		{method: get, path: backendapi.PathProjects, door: linked, handler: a.listProjects},
		// A project is made by its first key: the path need not name one that is there.
		{method: post, path: project + "/keys", door: linked, handler: a.mintKey},
		{method: get, path: project + backendapi.PathAssistant, door: ownProject, handler: a.getAssistant,
			capability: grants.Assistant, level: grants.Read, reads: "assistant.read"},
		{method: patch, path: project + backendapi.PathAssistant, door: ownProject, handler: a.changeAssistant,
			capability: grants.Assistant, level: grants.ReadWrite, fields: assistantFields},
		{method: get, path: project + backendapi.PathCredentials, door: ownProject, handler: a.listCredentials,
			capability: grants.Credentials, level: grants.Read, reads: "credentials.read"},
		{method: post, path: project + backendapi.PathCredentialLink, door: ownProject, handler: a.linkCredential,
			capability: grants.Credentials, level: grants.ReadWrite},
		{method: get, path: project + backendapi.PathAnalytics, door: ownProject, handler: a.reportAnalytics,
			query: []string{"range", "from", "to", "interval"}, capability: grants.Analytics, level: grants.Read, reads: "analytics.read"},
		{method: get, path: page, door: ownProject, handler: a.getConnectionPage},
		{method: patch, path: page, door: ownProject, handler: a.changeConnectionPage},
		{method: get, path: file, door: ownProject, handler: a.connectionPageFile},
	}, append(a.ingestRoutes(), a.telemetryRoutes()...)...)
}

// enforce is the one way to every handler of the table: who calls, whether the project is theirs, whether the account
// lets agents do this; then what was read is noted, and the answer written.
func (a *API) enforce(rt route) http.HandlerFunc {
	if rt.raw != nil {
		return rt.raw
	}
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, status: http.StatusOK}
		if rt.door != anyone {
			who, ok := a.authenticate(w, r)
			if !ok {
				return
			}
			c.who = who
		}
		out, err := a.serve(rt, c)
		if errors.Is(err, link.ErrRevoked) {
			a.deadToken(w, r, err)
			return
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.answer(w, c.status, out)
	}
}

func (a *API) serve(rt route, c *call) (any, error) {
	if rt.door != anyone {
		if err := knownQuery(c.Request, rt.query); err != nil {
			return nil, err
		}
	}
	if rt.door == ownProject {
		if err := a.admit(rt, c); err != nil {
			return nil, err
		}
		if wait := a.spend(rt, c); wait > 0 {
			return nil, &Refusal{Code: backendapi.CodeRateLimited, Message: "too many changes through this link",
				FixHint: fmt.Sprintf("put what belongs together into one change and wait %d s", seconds(wait)), RetryAfter: wait}
		}
	}
	out, err := rt.handler(c)
	if err != nil || rt.reads == "" {
		return out, err
	}
	// What cannot be noted is not told.
	return out, a.Audit.Read(c.Context(), c.who.AccountID, c.project.ID, rt.reads, c.by())
}

// changesPerMinute is what one link may change of the projects' records: each change is an entry of the account's audit
// log, which keeps so many, and an agent must not push out what it or another did before.
const changesPerMinute = 60

// spend takes one change of the link, or tells how long it has to wait for the next.
func (a *API) spend(rt route, c *call) time.Duration {
	if rt.method == http.MethodGet {
		return 0
	}
	return a.changes.Take(c.who.LinkID)
}

// admit finds the project, which of another account is as missing as one that was never made, and asks its grants.
func (a *API) admit(rt route, c *call) (err error) {
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
		if err := c.grants.Require(c.project.ID, rt.capability, f, rt.level); err != nil {
			return err
		}
	}
	// Who may do nothing of the kind is told that, and not what is wrong with the body.
	return cmp.Or(c.grants.Require(c.project.ID, rt.capability, "", rt.level), err)
}

// by is the agent that calls.
func (c *call) by() audit.Actor { return audit.Agent(c.who.LinkID) }

// decode reads the request's body strictly.
func (c *call) decode(into any) error { return decode(c.w, c.Request, into) }

// knownQuery refuses parameters that a route does not know, and those that stand twice.
func knownQuery(r *http.Request, known []string) error {
	for name, values := range r.URL.Query() {
		switch {
		case !slices.Contains(known, name):
			return refusal(backendapi.CodeInvalidRequest, "unknown query parameter "+clip(name, 60), "send the documented parameters only")
		case len(values) > 1:
			return refusal(backendapi.CodeInvalidRequest, "the query parameter "+name+" stands twice", "send it once")
		}
	}
	return nil
}
