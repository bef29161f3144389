package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/proto/backendapi"
)

var update = flag.Bool("update", false, "rewrite testdata/authorisation.md")

const authorisationFile = "testdata/authorisation.md"

const oneRule = `{"rules":[{"when":{"always":true},"reply":{"text":"Hi"}}]}`

// bodies holds the request body of each route; %d stands for the current version.
var bodies = map[string]string{
	"POST " + backendapi.PathDeviceCode:   `{"scope":"account_full"}`,
	"POST " + backendapi.PathDeviceToken:  `{"deviceCode":"sdc_never-issued"}`,
	"POST " + backendapi.PathDeviceCancel: `{"deviceCode":"sdc_never-issued"}`,
	// a session creates its project
	"POST " + backendapi.PathSessions:                                      `{"project":"com.example.played"}`,
	"POST " + backendapi.PathSessions + "/{id}/control":                    `{"type":"sim.battery","payload":{}}`,
	"POST " + backendapi.PathSessions + "/{id}/assistant-script":           oneRule,
	"POST " + backendapi.PathProjects + "/{project}/keys":                  `{"name":"laptop"}`,
	"PATCH " + backendapi.PathProjects + "/{project}/assistant":            `{"version":%d,"sounds":%t}`,
	"PATCH " + backendapi.PathProjects + "/{project}/connection-page":      `{"version":%d,"title":"Title %t"}`,
	"POST " + backendapi.PathProjects + "/{project}/credentials/{id}/link": `{}`,
	"POST " + backendapi.PathIngest:                                        `{"events":[]}`,
	"POST " + backendapi.PathTelemetry:                                     `{"events":[]}`,
}

// matrix calls every route as each of the callers.
type matrix struct {
	*world
	bob    account.Account
	tokens map[string]string
	turn   bool
}

// caller is one column of the table: the caller, its grants on Ada's project, and the owner of the resources in the
// path.
type caller struct {
	name    string
	headers func(m *matrix) []string
	grants  grants.Level // empty for the default grants
	missing bool         // the path names resources that have never existed
}

func bearer(name string) func(m *matrix) []string {
	return func(m *matrix) []string { return []string{"Authorization", "Bearer " + m.tokens[name]} }
}

var callers = []caller{
	{name: "no credential", headers: func(*matrix) []string { return nil }},
	{name: "install id", headers: func(*matrix) []string { return []string{backendapi.HeaderInstallID, installID} }},
	{name: "both", headers: func(m *matrix) []string {
		return append(bearer("owner")(m), backendapi.HeaderInstallID, installID)
	}},
	{name: "garbage token", headers: func(*matrix) []string { return []string{"Authorization", "Bearer garbage"} }},
	{name: "revoked", headers: bearer("revoked")},
	{name: "expired", headers: bearer("expired")},
	{name: "suspended", headers: bearer("suspended")},
	{name: "other account", headers: bearer("other")},
	{name: "owner, missing", headers: bearer("owner"), missing: true},
	{name: "owner, off", headers: bearer("owner"), grants: grants.Off},
	{name: "owner, read", headers: bearer("owner"), grants: grants.Read},
	{name: "owner, read + write", headers: bearer("owner"), grants: grants.ReadWrite},
	{name: "owner, defaults", headers: bearer("owner")},
	{name: "project key", headers: bearer("key")},
	{name: "revoked key", headers: bearer("revoked key")},
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{world: newWorld(t, func(o *Options) {
		o.CodesPerMinute = 100_000
		o.Sessions.PerMinute = 100_000
	})}
	m.bob = m.person("7d1b0c58-6e5b-4c0e-8e11-0c6d9a1fb002", "bob")
	carol := m.person("7d1b0c58-6e5b-4c0e-8e11-0c6d9a1fb003", "carol")
	m.tokens = map[string]string{"owner": m.link(), "other": m.linkOf(m.bob), "suspended": m.linkOf(carol)}
	for name, change := range map[string]string{"revoked": "revoked_at", "expired": "expires_at"} {
		before := m.now()
		m.pass(time.Second) // the new link gets a later time than the others
		m.tokens[name] = m.link()
		m.operate("UPDATE links SET "+change+" = $1 WHERE linked_at > $2", m.now().UnixMilli(), before.UnixMilli())
		m.pass(time.Second)
	}
	m.operate("UPDATE accounts SET state = 'suspended' WHERE id = $1", carol.ID)
	for _, name := range []string{"key", "revoked key"} {
		k, err := m.projects.MintKey(t.Context(), m.ada.ID, app, name, audit.Person())
		if err != nil {
			t.Fatal(err)
		}
		m.tokens[name] = k.Secret
		keys, err := m.projects.Keys(t.Context(), m.ada.ID, app)
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range keys {
			if name == "revoked key" && known.Name == name {
				if err := m.projects.RevokeKey(t.Context(), m.ada.ID, app, known.ID, audit.Person()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return m
}

// TestAuthorisation compares the status of every route and caller with the golden table. Another account's resource and
// a missing one must get the same response.
func TestAuthorisation(t *testing.T) {
	m := newMatrix(t)
	var table strings.Builder
	table.WriteString("# Who may call what\n\nWritten by `go test ./backend/internal/api -run TestAuthorisation -update`. Each cell is the status, and the code of a refusal.\n\n| route | needs |")
	for _, c := range callers {
		table.WriteString(" " + c.name + " |")
	}
	table.WriteString("\n|---|---|" + strings.Repeat("---|", len(callers)) + "\n")
	for _, rt := range m.api.table() {
		fmt.Fprintf(&table, "| %s %s | %s |", rt.method, rt.path, needs(rt))
		foreign := answer{}
		for _, c := range callers {
			got, check := m.ask(rt, c)
			table.WriteString(" " + cell(got) + " |")
			check()
			switch {
			case c.name == "other account":
				foreign = got
			case c.missing && about(rt) && (foreign.status != got.status || !bytes.Equal(foreign.body, got.body)):
				t.Errorf("%s %s: another account's resource and a missing one got different responses:\n%.300s\n%.300s",
					rt.method, rt.path,
					foreign.body,
					got.body)
			}
		}
		table.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(authorisationFile, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(authorisationFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != table.String() {
		t.Errorf("the table has changed; if that is intended, run with -update and review the diff:\n%s", table.String())
	}
}

// about reports whether a route concerns one existing resource of an account. A project's first key creates the
// project.
func about(rt route) bool {
	return strings.Contains(rt.path, "{") && !strings.HasSuffix(rt.path, "/keys")
}

func needs(rt route) string {
	switch {
	case rt.capability != "":
		return fmt.Sprintf("%s %s", rt.capability, rt.grant)
	case rt.level == ownProject:
		return "the project"
	case rt.level == linked:
		return "a link"
	case rt.level == appKey:
		return "a project key"
	}
	return "nothing"
}

func cell(got answer) string {
	var p backendapi.Problem
	if got.status < 400 || json.Unmarshal(got.body, &p) != nil {
		return fmt.Sprint(got.status)
	}
	return fmt.Sprintf("%d %s", got.status, p.Code)
}

// ask sends one request. The returned check verifies that only the owner's request ended the session in the path.
func (m *matrix) ask(rt route, c caller) (got answer, check func()) {
	m.Helper()
	g := grants.Default()
	if c.grants != "" {
		g = grants.Grants{Assistant: map[string]grants.Level{}, Credentials: c.grants, Analytics: c.grants}
		for _, f := range grants.Fields() {
			g.Assistant[f] = c.grants
		}
	}
	m.grant(func(to *grants.Grants) { *to = g })
	var s backendapi.CreatedSession
	ofSession := strings.HasPrefix(rt.path, backendapi.PathSessions+"/")
	if ofSession {
		m.call("POST", backendapi.PathSessions, `{"project":"com.example.app","fresh":true}`,
			bearer("owner")(m)...).is(http.StatusCreated).into(&s)
	}
	project, session := app, s.SessionID
	if c.missing {
		project, session = "com.example.never", "ses_never"
	}
	if strings.HasSuffix(rt.path, "/keys") {
		project += ".keyed" // a key creates its project, so the other account gets one too
	}
	id := "openai"
	if ofSession {
		id = session
	}
	body, ok := bodies[rt.method+" "+rt.path]
	if rt.method == http.MethodPatch && !ok {
		m.Fatalf("%s %s: the test has no request body for this route", rt.method, rt.path)
	}
	if strings.Contains(body, "%d") {
		m.turn = !m.turn
		body = fmt.Sprintf(body, m.version(rt.path), m.turn)
	}
	got = m.call(rt.method, strings.NewReplacer("{project}", project, "{id}", id).Replace(rt.path), body, c.headers(m)...)
	if rt.path == backendapi.PathAccountLink { // the call revoked the link that it used
		m.tokens["owner"], m.tokens["other"] = m.link(), m.linkOf(m.bob)
	}
	return got, func() {
		m.Helper()
		if !ofSession || strings.HasPrefix(c.name, "owner") && !c.missing {
			return
		}
		var now backendapi.Session
		m.call("GET", backendapi.PathSessions+"/"+s.SessionID, "", bearer("owner")(m)...).is(http.StatusOK).into(&now)
		if now.ClosedAt != nil {
			m.Errorf("%s ended the owner's session with %s %s", c.name, rt.method, rt.path)
		}
	}
}

// version returns the current version of the record at a path.
func (m *matrix) version(path string) int64 {
	m.Helper()
	if strings.HasSuffix(path, backendapi.PathAssistant) {
		c, err := m.api.Assistant.Get(m.Context(), m.ada.ID, app)
		if err != nil {
			m.Fatal(err)
		}
		return c.Version
	}
	p, err := m.api.Pages.Get(m.Context(), m.ada.ID, app)
	if err != nil {
		m.Fatal(err)
	}
	return p.Version
}

// Every route must be mounted from the route table, so that enforce runs before it and the test above covers it.
func TestMount_OnlyTheTable(t *testing.T) {
	w := newWorld(t)
	for _, rt := range w.api.table() {
		path := strings.NewReplacer("{project}", app, "{id}", "x").Replace(rt.path)
		if _, pattern := w.mux.Handler(httptest.NewRequest(rt.method, path, nil)); pattern != rt.method+" "+rt.path {
			t.Errorf("%s %s: routed to %q, want its own pattern", rt.method, rt.path, pattern)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	mounted := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "HandleFunc" || s.Sel.Name == "Handle") {
				if mounted++; file != "api.go" {
					t.Errorf("%s: route mounted outside the route table", set.Position(s.Pos()))
				}
			}
			return true
		})
	}
	if mounted != 2 {
		t.Errorf("Mount has %d mount calls, want 2: for the table and for unknown paths", mounted)
	}
}
