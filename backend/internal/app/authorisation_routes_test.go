package app

import (
	"slices"
	"testing"
)

// reach defines who may use a route.
type reach int

const (
	// owned: the route names a resource of the owner. Others must not find out whether it exists.
	owned reach = iota
	// self: the route concerns the account that is signed in.
	self
	// open: anyone may use the route.
	open
)

// visit is one request of the test. In path and form, {name} is replaced by a resource of the owner
// (authWorld.things), and {own} by a project name that every account uses.
type visit struct {
	pattern string
	whose   reach
	path    string // default: the pattern itself
	form    string // of a POST, URL-encoded
	first   string // page opened first, for its cookies and its "seen" token
	acts    bool   // the owner's request changes the database
	refused bool   // the request changes only the counter of refusals
	public  bool   // caches may store the response
	framed  bool   // other sites may frame the response
	socket  bool   // the request upgrades to a WebSocket
}

const (
	project = "/account/projects/{project}"
	twin    = "/account/projects/{own}"
)

// walk contains at least one visit of every HTML route.
var walk = []visit{
	{pattern: "GET /{$}", path: "/", whose: open},
	{pattern: "GET /privacy", whose: open},
	{pattern: "GET /signup", whose: open},
	{pattern: "POST /signup", whose: open, form: "email=new@example.org&accept=1&password={password}", acts: true},
	{pattern: "GET /signup/sent", whose: open},
	{pattern: "GET /signup/confirm", path: "/signup/confirm?token={signup}", whose: open},
	{pattern: "POST /signup/confirm", first: "/signup/confirm?token={signup}", form: "password={password}", whose: open,
		acts: true},
	{pattern: "GET /signin", whose: open},
	{pattern: "POST /signin", whose: open, form: "email=other@example.org&password={password}", acts: true},
	{pattern: "POST /signin", whose: open, form: "email={email}&password=not+the+password", acts: true, refused: true},
	{pattern: "POST /signin", whose: open, form: "email=suspended@example.org&password={password}"},
	{pattern: "POST /signout", whose: open, acts: true},
	{pattern: "GET /stay", path: "/stay?next=/signin", whose: open},
	{pattern: "GET /site-host/{challenge}", path: "/site-host/x", whose: open},
	{pattern: "GET /activate", path: "/activate?code={code}", whose: open},
	{pattern: "POST /activate/approve", path: "/activate/approve?code={code}", first: "/activate?code={code}",
		form: "password={password}", whose: open, acts: true},
	{pattern: "POST /activate/approve", path: "/activate/approve?code={code}", whose: open},
	{pattern: "POST /activate/deny", path: "/activate/deny?code={code}", first: "/activate?code={code}", whose: open,
		acts: true},
	{pattern: "POST /activate/deny", path: "/activate/deny?code={code}", whose: open},
	{pattern: "GET /activate/approved", whose: open},
	{pattern: "GET /activate/denied", whose: open},
	{pattern: "GET /assets/{name}", path: "/assets/style.css", whose: open, public: true},
	{pattern: "GET /docs", whose: open, public: true},
	{pattern: "GET /docs/{$}", path: "/docs/", whose: open, public: true},
	{pattern: "GET /docs/{page}", path: "/docs/llms.txt", whose: open, public: true},
	{pattern: "GET /docs/panels/{picture}", path: "/docs/panels/none.png", whose: open, public: true},
	{pattern: "GET /docs/search", path: "/docs/search?q=list", whose: open, public: true},
	{pattern: "GET /llms.txt", whose: open, public: true},
	{pattern: "/", path: "/nothing-here", whose: open},

	{pattern: "GET /s/{id}", path: "/s/{session}"},
	{pattern: "GET /s/{session}/panel"},
	{pattern: "GET /s/{id}/live", path: "/s/{session}/live", socket: true},
	{pattern: "GET /connect/{pageId}", path: "/connect/{page}", whose: open, public: true, framed: true},

	// Viewing an account's credit for the first time creates its balance.
	{pattern: "GET /account", whose: self, acts: true},
	{pattern: "GET /account/links/{link}/revoke"},
	{pattern: "POST /account/links/{link}/revoke", acts: true},
	{pattern: "GET /account/links/revoke-all", whose: self},
	{pattern: "POST /account/links/revoke-all", whose: self, acts: true},
	{pattern: "GET /account/projects", whose: self},
	{pattern: "GET /account/projects", path: "/account/projects?q={project}", whose: self},
	{pattern: "GET /account/sessions", whose: self},
	{pattern: "GET /account/sessions", path: "/account/sessions?after=used.4102444800000.{session}", whose: self},
	{pattern: "GET /account/sessions/{session}/panel"},
	{pattern: "GET /account/sessions/{session}/close"},
	{pattern: "POST /account/sessions/{session}/close", acts: true},
	{pattern: "GET /account/credit", whose: self, acts: true},
	{pattern: "GET /account/credit", path: "/account/credit?page=2", whose: self, acts: true},
	{pattern: "POST /account/credit/caps", form: "version=0&cap-day=0.50&cap-month=5", whose: self, acts: true},
	{pattern: "GET /account/mcp-access", path: "/account/mcp-access?project={project}", whose: self},
	{pattern: "POST /account/mcp-access", form: "project={project}&analytics=off", acts: true},
	{pattern: "POST /account/mcp-access", form: "project={project}&follow=default&password={password}"},
	{pattern: "POST /account/mcp-access/default", form: "analytics=off", whose: self, acts: true},
	{pattern: "GET /account/mcp-access/all", path: "/account/mcp-access/all?level=off", whose: self},
	{pattern: "POST /account/mcp-access/all", form: "level=off", whose: self, acts: true},
	{pattern: "GET /account/audit", whose: self},
	{pattern: "GET /account/audit", path: "/account/audit?who=link:{link}&kind=keys&from=2026-01-01", whose: self},
	{pattern: "GET /account/audit", path: "/account/audit?before={pageEntry}", whose: self},
	{pattern: "GET /account/audit", path: "/account/audit?project={project}"},
	{pattern: "POST /account/audit/{entry}/undo", acts: true},
	{pattern: "POST /account/audit/{entry}/undo", path: "/account/audit/{pageEntry}/undo", acts: true},

	{pattern: "GET /account/projects/{id}", path: project},
	{pattern: "GET /account/projects/{id}", path: "/account/projects/{alias}"},
	{pattern: "POST /account/projects/{id}", path: "/account/projects/{alias}", form: "name=Renamed", acts: true},
	{pattern: "POST /account/projects/{id}", path: project, form: "name=Renamed&platform=ios", acts: true},
	{pattern: "POST /account/projects/{id}/keys", path: project + "/keys", form: "name=ci&password={password}",
		acts: true},
	{pattern: "GET /account/projects/{id}/keys/{key}/rotate", path: project + "/keys/{key}/rotate"},
	{pattern: "GET /account/projects/{id}/keys/{key}/rotate", path: twin + "/keys/{key}/rotate"},
	{pattern: "POST /account/projects/{id}/keys/{key}/rotate", path: project + "/keys/{key}/rotate",
		form: "password={password}", acts: true},
	{pattern: "POST /account/projects/{id}/keys/{key}/rotate", path: twin + "/keys/{key}/rotate",
		form: "password={password}"},
	{pattern: "GET /account/projects/{id}/keys/{key}/revoke", path: project + "/keys/{key}/revoke"},
	{pattern: "GET /account/projects/{id}/keys/{key}/revoke", path: twin + "/keys/{key}/revoke"},
	{pattern: "POST /account/projects/{id}/keys/{key}/revoke", path: project + "/keys/{key}/revoke", acts: true},
	{pattern: "POST /account/projects/{id}/keys/{key}/revoke", path: twin + "/keys/{key}/revoke"},
	{pattern: "GET /account/projects/{id}/merge", path: project + "/merge?into={own}"},
	{pattern: "GET /account/projects/{id}/merge", path: twin + "/merge?into={project}"},
	{pattern: "POST /account/projects/{id}/merge", path: project + "/merge", form: "into={own}&password={password}",
		acts: true},
	{pattern: "POST /account/projects/{id}/merge", path: twin + "/merge", form: "into={project}&password={password}",
		acts: true},
	{pattern: "GET /account/projects/{id}/delete", path: project + "/delete"},
	{pattern: "POST /account/projects/{id}/delete", path: project + "/delete", form: "typed={project}", acts: true},
	{pattern: "GET /account/projects/{id}/sessions", path: project + "/sessions"},
	{pattern: "GET /account/projects/{id}/assistant", path: project + "/assistant"},
	{pattern: "POST /account/projects/{id}/assistant", path: project + "/assistant", acts: true,
		form: "version={assistantVersion}&was-voice=harbor&voice=ember&was-sounds={sounds}&sounds={sounds}"},
	{pattern: "GET /account/projects/{id}/assistant/memory/erase", path: project + "/assistant/memory/erase"},
	{pattern: "POST /account/projects/{id}/assistant/memory", path: project + "/assistant/memory",
		form: "act=days&memory-days=7", acts: true},
	{pattern: "GET /account/projects/{id}/credentials", path: project + "/credentials"},
	{pattern: "POST /account/projects/{id}/credentials/{provider}", path: project + "/credentials/openai",
		form: "value={pasted}", acts: true},
	{pattern: "POST /account/projects/{id}/credentials/{provider}/test", path: project + "/credentials/openai/test",
		acts: true},
	{pattern: "GET /account/projects/{id}/credentials/{provider}/remove", path: project + "/credentials/openai/remove"},
	{pattern: "POST /account/projects/{id}/credentials/{provider}/remove", path: project + "/credentials/openai/remove",
		acts: true},
	{pattern: "GET /account/projects/{id}/connection-page", path: project + "/connection-page"},
	// The first GET of a page by its owner stores the URL at which the page will be hosted. Other GETs store nothing.
	{pattern: "GET /account/projects/{id}/connection-page", path: twin + "/connection-page", whose: self, acts: true},
	{pattern: "POST /account/projects/{id}/connection-page", path: project + "/connection-page", acts: true,
		form: "version={pageVersion}&title=Changed&theme=dark&accent=%230b6b68"},
	{pattern: "GET /account/projects/{id}/connection-page/file", path: project + "/connection-page/file"},
	{pattern: "GET /account/projects/{id}/connection-page/preview", path: project + "/connection-page/preview",
		framed: true},
	{pattern: "POST /account/projects/{id}/connection-page/preview", path: project + "/connection-page/preview",
		form: "title=Changed&theme=dark&accent=%230b6b68", framed: true},
	{pattern: "GET /projects/{id}/gateway", path: "/projects/{project}/gateway"},
	{pattern: "GET /account/projects/{id}/gateway", path: project + "/gateway"},
	{pattern: "POST /account/projects/{id}/gateway/caps", path: project + "/gateway/caps", form: "version=1&cap-day=0.50",
		acts: true},
	{pattern: "POST /account/projects/{id}/gateway/key-source", path: project + "/gateway/key-source", form: "source=own",
		acts: true},
	{pattern: "POST /account/projects/{id}/gateway/attestation", path: project + "/gateway/attestation",
		form: "version=0&packages=com.example.app", acts: true},
	{pattern: "POST /account/projects/{id}/gateway/attestation/keys", path: project + "/gateway/attestation/keys",
		form: "decryption-key=" + playDecryption + "&verification-key=" + playVerification, acts: true},
	{pattern: "GET /account/projects/{id}/gateway/attestation/keys/remove",
		path: project + "/gateway/attestation/keys/remove"},
	{pattern: "POST /account/projects/{id}/gateway/attestation/keys/remove",
		path: project + "/gateway/attestation/keys/remove", acts: true},
	{pattern: "POST /account/projects/{id}/gateway/attestation/installs/{install}/revoke",
		path: project + "/gateway/attestation/installs/inst-{project}/revoke", acts: true},
	{pattern: "POST /account/projects/{id}/gateway/servers", path: project + "/gateway/servers",
		form: "server-id=vllm&server-url=http://127.0.0.1:1/v1", acts: true},
	{pattern: "POST /account/projects/{id}/gateway/servers/{server}/check",
		path: project + "/gateway/servers/ollama/check",
		acts: true},
	{pattern: "GET /account/projects/{id}/gateway/servers/{server}/remove", path: project +
		"/gateway/servers/ollama/remove"},
	{pattern: "POST /account/projects/{id}/gateway/servers/{server}/remove", path: project +
		"/gateway/servers/ollama/remove", acts: true},
	{pattern: "GET /account/projects/{id}/analytics", path: project + "/analytics"},
	{pattern: "GET /account/projects/{id}/analytics.csv", path: project + "/analytics.csv"},

	// The same requests for a project whose name other accounts use too, so that only the account distinguishes the
	// projects.
	{pattern: "GET /account/projects/{id}", path: twin, whose: self},
	{pattern: "POST /account/projects/{id}", path: twin, whose: self, form: "name=Renamed", acts: true},
	{pattern: "POST /account/projects/{id}/keys", path: twin + "/keys", whose: self,
		form: "name=ci&password={password}",
		acts: true},
	{pattern: "GET /account/projects/{id}/keys/{key}/rotate", path: twin + "/keys/{twinKey}/rotate"},
	{pattern: "POST /account/projects/{id}/keys/{key}/rotate", path: twin + "/keys/{twinKey}/rotate",
		form: "password={password}", acts: true},
	{pattern: "GET /account/projects/{id}/keys/{key}/revoke", path: twin + "/keys/{twinKey}/revoke"},
	{pattern: "POST /account/projects/{id}/keys/{key}/revoke", path: twin + "/keys/{twinKey}/revoke", acts: true},
	{pattern: "GET /account/projects/{id}/assistant", path: twin + "/assistant", whose: self},
	{pattern: "POST /account/projects/{id}/assistant", path: twin + "/assistant", whose: self,
		form: "version=0&voice=slate&was-sounds=off", acts: true},
	{pattern: "GET /account/projects/{id}/assistant/memory/erase", path: twin + "/assistant/memory/erase", whose: self},
	{pattern: "POST /account/projects/{id}/assistant/memory", path: twin + "/assistant/memory", whose: self,
		form: "act=erase-all", acts: true},
	{pattern: "GET /account/projects/{id}/credentials", path: twin + "/credentials", whose: self},
	{pattern: "POST /account/projects/{id}/credentials/{provider}", path: twin + "/credentials/openai", whose: self,
		form: "value={pasted}", acts: true},
	{pattern: "POST /account/projects/{id}/credentials/{provider}/test", path: twin + "/credentials/openai/test",
		acts: true},
	{pattern: "GET /account/projects/{id}/credentials/{provider}/remove", path: twin + "/credentials/openai/remove"},
	{pattern: "POST /account/projects/{id}/credentials/{provider}/remove", path: twin + "/credentials/openai/remove",
		acts: true},
	{pattern: "GET /account/credentials/{project}/{provider}", path: "/account/credentials/{own}/openai"},
	{pattern: "POST /account/credentials/{project}/{provider}/test", path: "/account/credentials/{own}/openai/test",
		acts: true},
	{pattern: "GET /account/projects/{id}/gateway", path: twin + "/gateway", whose: self},
	{pattern: "POST /account/projects/{id}/gateway/caps", path: twin + "/gateway/caps", whose: self,
		form: "version=0&cap-month=5", acts: true},
	{pattern: "POST /account/projects/{id}/gateway/key-source", path: twin + "/gateway/key-source", form: "source=own",
		whose: self, acts: true},
	{pattern: "GET /account/projects/{id}/analytics", path: twin + "/analytics", whose: self},
	{pattern: "GET /account/projects/{id}/analytics.csv", path: twin + "/analytics.csv?list=events", whose: self},
	{pattern: "POST /account/projects/{id}/connection-page", path: twin + "/connection-page", whose: self, acts: true,
		form: "version=0&title=Changed&theme=dark&accent=%230b6b68"},
	{pattern: "POST /account/projects/{id}/delete", path: twin + "/delete", whose: self, form: "typed={own}", acts: true},

	{pattern: "GET /account/credentials/{linkId}", path: "/account/credentials/{paste}"},
	{pattern: "POST /account/credentials/{linkId}", path: "/account/credentials/{paste}", form: "value={pasted}",
		acts: true},
	{pattern: "GET /account/credentials/{project}/{provider}", path: "/account/credentials/{project}/openai"},
	{pattern: "POST /account/credentials/{project}/{provider}/test", path: "/account/credentials/{project}/openai/test",
		acts: true},

	{pattern: "GET /forgot", whose: open},
	{pattern: "POST /forgot", whose: open, form: "email={email}"},
	{pattern: "GET /forgot/sent", whose: open},
	{pattern: "GET /reset", path: "/reset?token={reset}", whose: open},
	{pattern: "POST /reset", first: "/reset?token={reset}", form: "password=another+good+password", whose: open,
		acts: true},
	{pattern: "GET /verify", path: "/verify?token={verify}", whose: open},
	{pattern: "POST /verify", first: "/verify?token={verify}", whose: open, acts: true},
	{pattern: "GET /goodbye", whose: open},
	{pattern: "GET /account/settings", whose: self},
	{pattern: "POST /account/settings/email", form: "email=next@example.org&password={password}", whose: self, acts: true},
	{pattern: "POST /account/settings/email/resend", whose: self, acts: true},
	{pattern: "POST /account/settings/password", form: "password={password}&new=another+good+password", whose: self,
		acts: true},
	{pattern: "POST /account/settings/browsers/{id}/end", path: "/account/settings/browsers/{browser}/end", acts: true},
	{pattern: "POST /account/settings/browsers/end-others", whose: self, acts: true},
	{pattern: "POST /account/settings/export", whose: self, acts: true},
	{pattern: "GET /account/settings/delete", whose: self},
	{pattern: "POST /account/settings/delete", form: "email={email}&password={password}", whose: self, acts: true},

	{pattern: "POST /signin/oidc/{provider}", path: "/signin/oidc/club", whose: open},
	{pattern: "GET /signin/oidc/{provider}/callback", path: "/signin/oidc/club/callback?code=a&state=b", whose: open},
	{pattern: "GET /signin/welcome", whose: open},
	{pattern: "POST /signin/welcome", form: "accept=1", whose: open},
	{pattern: "POST /account/settings/providers/{provider}/link", path: "/account/settings/providers/club/link",
		form: "password={password}", whose: self},
	{pattern: "POST /account/settings/providers/{provider}/unlink", path: "/account/settings/providers/club/unlink",
		acts: true},
	{pattern: "POST /signin/passkey/begin", whose: open},
	{pattern: "POST /signin/passkey", form: "credential=x", whose: open},
	{pattern: "POST /account/settings/passkeys/begin", form: "password={password}", whose: self},
	{pattern: "POST /account/proof/begin", path: "/account/proof/begin?action=x", whose: self},
	{pattern: "POST /account/settings/passkeys", form: "name=Phone&credential=x", whose: self},
	{pattern: "POST /account/settings/passkeys/{id}/remove", path: "/account/settings/passkeys/{passkey}/remove",
		acts: true},
}

// walk visits every mounted HTML route and no others.
func TestAuthorisation_CoversEveryRoute(t *testing.T) {
	mounted := mountedRoutes(t, "../web")
	if len(mounted) < 80 {
		t.Fatalf("found only %d routes in the source, want at least 80", len(mounted))
	}
	var walked []string
	for _, v := range walk {
		walked = append(walked, v.pattern)
	}
	for _, p := range mounted {
		if !slices.Contains(walked, p) {
			t.Errorf("route %s is mounted but has no visit in walk", p)
		}
	}
	for _, p := range walked {
		if !slices.Contains(mounted, p) {
			t.Errorf("route %s has a visit in walk but is not mounted", p)
		}
	}
}
