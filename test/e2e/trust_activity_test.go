//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// An agent that creates keys in a loop is slowed down. Even with many entries of the agent in the account's activity,
// the owner's entries stay, and so does the agent's change that the owner may want to undo.
func TestFloodingAgent_PushesOutOnlyItsOwnActivity(t *testing.T) {
	trustEngines(t, func(t *testing.T, b *remoteBackend, _ func() string) {
		w, owner := newWire(t, b, here), newPerson(t)
		code := w.issue()
		owner.approve(code.VerificationURL, "owner@example.org")
		bearer := []string{"Authorization", "Bearer " + w.redeem(code.DeviceCode)}
		mint := func(project string) httpReply {
			return w.send("POST", backendapi.PathProjects+"/"+project+"/keys", `{"name":"k"}`, bearer...)
		}
		mint(app).is(t, http.StatusCreated)
		w.send("PATCH", backendapi.PathProjects+"/"+app+backendapi.PathAssistant, `{"version":0,"sounds":false}`,
			bearer...).is(t, http.StatusOK)
		owner.open(b.url + "/account/mcp-access?project=" + app)
		owner.grantAll(app, "read")
		created := 0
		for i := range 200 {
			r := mint(fmt.Sprintf("com.example.flood%d", i%40))
			if r.status == http.StatusCreated {
				created++
				continue
			}
			r.is(t, http.StatusTooManyRequests)
			if r.problem(t).Code != problem.CodeRateLimited || r.header.Get("Retry-After") == "" {
				t.Fatalf("got %v %s, want rate_limited with Retry-After", r.header, r.body)
			}
		}
		if created > 20 {
			t.Errorf("an agent created %d keys in a moment", created)
		}
		b.stop()
		execDatabase(t, envOf(b, "SERVICE_BACKEND_DATABASE"), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL
				SELECT i + 1 FROM n WHERE i < 21000)
			INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary)
			SELECT 'ffffffff-' || i, account_id, at, actor, link_id, action, app_id, summary
			FROM n, (SELECT * FROM audit WHERE action = 'key.minted' ORDER BY id LIMIT 1) AS one`)
		b.start() // trims the activity
		must(t, "the flood is trimmed", func() bool {
			owner.open(b.url + "/account/audit?kind=keys&before=ffffffff")
			return !strings.Contains(owner.text(), "Project key made")
		})
		owner.open(b.url + "/account/audit?who=person&kind=access")
		if !strings.Contains(owner.text(), "Agent access changed") {
			t.Errorf("the owner's change of the agents' access is gone:\n%s", owner.text())
		}
		owner.open(b.url + "/account/audit?kind=assistant")
		owner.submitUndo()
		if !strings.Contains(owner.text(), "Undone.") {
			t.Errorf("the agent's change cannot be undone:\n%s", owner.text())
		}
	})
}

// submitUndo posts the only form of the page for undoing an entry.
func (p *person) submitUndo() {
	p.t.Helper()
	for n := range p.page.Descendants() {
		if n.Data == "form" && strings.HasSuffix(attr(n, "action"), "/undo") {
			p.submit(attr(n, "action"))
			return
		}
	}
	p.t.Fatalf("%s (status %d) has no entry to undo:\n%s", p.at, p.status, p.text())
}
