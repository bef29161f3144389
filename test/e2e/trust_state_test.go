//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// apiRoute is a row of the API tests' route table.
type apiRoute struct{ method, path, needs string }

func apiRoutes(t *testing.T) (all []apiRoute) {
	t.Helper()
	text := readAll(t, filepath.Join("..", "..", "backend", "internal", "api", "testdata", "authorisation.md"))
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if method, path, ok := strings.Cut(strings.TrimSpace(cells[1]), " "); ok && strings.HasPrefix(path, "/api/") {
			all = append(all, apiRoute{method, path, strings.TrimSpace(cells[2])})
		}
	}
	if len(all) < 20 {
		t.Fatalf("the route table has only %d routes, want at least 20", len(all))
	}
	return all
}

// on fills the placeholders in the path.
func (r apiRoute) on(session, project string) string {
	id := "openai"
	if strings.HasPrefix(r.path, backendapi.PathSessions) {
		id = session
	}
	return strings.NewReplacer("{project}", project, "{id}", id).Replace(r.path)
}

// linked reports whether a route requires a link, and about whether it concerns one object of the account.
func (r apiRoute) linked() bool { return r.needs != "nothing" && r.needs != "a project key" }
func (r apiRoute) about() bool {
	return r.linked() && strings.Contains(r.path, "{") && !strings.HasSuffix(r.path, "/keys")
}

// An account suspended between approval and the next poll gets no token until it is restored.
func TestRedemption_SuspendedAccount(t *testing.T) {
	trustEngines(t, func(t *testing.T, b *remoteBackend, _ func() string) {
		w := newWire(t, b, here)
		code := w.issue()
		newPerson(t).approve(code.VerificationURL, "ada@example.org")
		b.admin("suspend", "ada@example.org")
		for range 2 {
			if r := w.poll(code.DeviceCode); r.status != http.StatusForbidden || strings.Contains(r.body, "authToken") {
				t.Fatalf("poll the code of a suspended account: got %d %s, want 403", r.status, r.body)
			}
		}
		if out := b.admin("links", "ada@example.org"); !strings.Contains(out, "no links") {
			t.Errorf("the suspended account has links:\n%s", out)
		}
		b.admin("restore", "ada@example.org")
		token := w.redeem(code.DeviceCode)
		bearer := []string{"Authorization", "Bearer " + token}
		w.send("GET", backendapi.PathAccount, "", bearer...).is(t, http.StatusOK)
		b.admin("suspend", "ada@example.org")
		w.send("GET", backendapi.PathAccount, "", bearer...).is(t, http.StatusUnauthorized)
		b.admin("restore", "ada@example.org")
		w.send("GET", backendapi.PathAccount, "", bearer...).is(t, http.StatusOK)
	})
}

// After a link is revoked on the account page, the next call of every route gets 401, and the backend closes open
// connections.
func TestRevokedLink_RefusedOnEveryRoute(t *testing.T) {
	trustEngines(t, func(t *testing.T, b *remoteBackend, _ func() string) {
		w := newWire(t, b, here)
		s := newSite(t, b, "ada@example.org")
		other := newSite(t, b, "bob@example.org")
		session, bystander := s.session(t), other.session(t)
		app, page := attach(t, session.endpoint, session.secret), s.page(t, session.id)
		quiet := attach(t, bystander.endpoint, bystander.secret)
		bearer := []string{"Authorization", "Bearer " + s.token}
		last := s.rows(t, session.id)
		waiting := make(chan error, 1)
		go func() { waiting <- waitForRows(b, s.token, session.id, len(last)) }()

		s.person.open(b.url + "/account")
		s.person.revokeOnly()
		for name, sock := range map[string]*socket{"app": app, "page": page} {
			// Without a revocation, a session is first checked after six seconds, so an earlier close is due to the
			// revocation.
			if code := sock.closed(5 * time.Second); code != 4410 {
				t.Errorf("the %s was closed with %d, want 4410", name, code)
			}
		}
		for _, r := range apiRoutes(t) {
			if !r.linked() {
				continue
			}
			got := w.send(r.method, r.on(session.id, "com.example.trails"), "{}", bearer...)
			if got.status != http.StatusUnauthorized ||
				got.header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` ||
				got.problem(t).Code != problem.CodeAuthRequired {
				t.Errorf("%s %s: status %d, want 401 auth_required: %.200s", r.method, r.path, got.status, got.body)
			}
		}
		select {
		case err := <-waiting:
			if err != nil {
				t.Errorf("pending poll for rows: %v", err)
			}
		case <-time.After(10 * time.Second): // without the revocation it would wait for 25 s
			t.Error("the poll for rows still waits")
		}
		if quiet.ended() {
			t.Error("the app of another account was disconnected too")
		}
		other.call(t, "GET", backendapi.PathAccount, nil, &struct{}{})
		if out := b.admin("trail", "--account", "ada@example.org"); !strings.Contains(out, "revoke") {
			t.Errorf("no revoke entry in the trail:\n%s", out)
		}
	})
}

// waitForRows waits for new rows of a session for as long as the backend allows.
func waitForRows(b *remoteBackend, token, session string, since int) error {
	req, err := http.NewRequest("GET", fmt.Sprintf("%s%s/%s/events?waitMs=25000&since=%d", b.url,
		backendapi.PathSessions, session, since), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// revokeOnly revokes the only link that the account page lists.
func (p *person) revokeOnly() {
	p.t.Helper()
	for n := range p.page.Descendants() {
		if href := attr(n, "href"); n.Data == "a" && strings.HasSuffix(href, "/revoke") {
			target, err := p.at.Parse(href)
			if err != nil {
				p.t.Fatal(err)
			}
			p.open(target.String())
			p.submit(target.Path)
			return
		}
	}
	p.t.Fatalf("%s lists no link:\n%s", p.at, p.text())
}

// A grant set to Off leads to permission_denied with the capability's name at the next call. On every route, another
// account's project or session gets the same response as one that does not exist.
func TestAPI_GrantsAndOtherAccounts(t *testing.T) {
	trustEngines(t, func(t *testing.T, b *remoteBackend, _ func() string) {
		w := newWire(t, b, here)
		ada, bob := newSite(t, b, "ada@example.org"), newSite(t, b, "bob@example.org")
		const project = "com.example.trails"
		session := ada.session(t)
		bob.call(t, "POST", backendapi.PathSessions, map[string]any{"project": "com.example.own"}, &struct{}{})
		for _, r := range apiRoutes(t) {
			if !r.about() {
				continue
			}
			theirs := w.send(r.method, r.on(session.id, project), "{}", "Authorization", "Bearer "+bob.token)
			never := w.send(r.method, r.on("ses_never", "com.example.never"), "{}", "Authorization",
				"Bearer "+bob.token)
			if theirs.status != never.status || theirs.body != never.body || theirs.status < 400 {
				t.Errorf("%s %s: another account's object gets %d %.200s, a missing one %d %.200s", r.method, r.path, theirs.status,
					theirs.body, never.status, never.body)
			}
		}
		allowed := map[string]string{"assistant_config": "/assistant", "credentials": "/credentials",
			"analytics": "/analytics"}
		ask := func(path string) httpReply {
			return w.send("GET", backendapi.PathProjects+"/"+project+path, "", "Authorization", "Bearer "+ada.token)
		}
		for _, path := range allowed {
			ask(path).is(t, http.StatusOK)
		}
		ada.person.open(b.url + "/account/mcp-access?project=" + project)
		ada.person.grantAll(project, "off")
		for capability, path := range allowed {
			if r := ask(path); r.status != http.StatusForbidden ||
				r.problem(t).Code != problem.CodePermissionDenied || !strings.Contains(r.body, capability) {
				t.Errorf("%s: got %d %s, want permission_denied", path, r.status, r.body)
			}
		}
		ask("/connection-page").is(t, http.StatusOK) // requires no grant
	})
}

// The account owner is notified of each new link, on the account page and, if a mail server is configured, by mail.
func TestNewLink_NotifiesOwner(t *testing.T) {
	t.Parallel()
	mail := startMail(t)
	b := startBackend(t, "", "SERVICE_BACKEND_SMTP_HOST=127.0.0.1", "SERVICE_BACKEND_SMTP_PORT="+mail.port,
		"SERVICE_BACKEND_SMTP_FROM=Service <service@example.org>", "SERVICE_BACKEND_SMTP_TLS=none")
	w := newWire(t, b, here)
	code := w.issue()
	someone := newPerson(t)
	someone.mail = mail
	someone.approve(code.VerificationURL, "told@example.org")
	token := w.redeem(code.DeviceCode)
	must(t, "a mail reports the new link", func() bool { return mail.told("told@example.org", "linked") })
	mail.mu.Lock()
	for _, l := range mail.got {
		if !strings.Contains(l.subject, "linked") {
			continue
		}
		for _, says := range []string{"hostcanary", "127.0.0.1", " UTC", b.url + "/account"} {
			if !strings.Contains(l.text, says) {
				t.Errorf("the mail lacks %q:\n%s", says, l.text)
			}
		}
		for _, secret := range []string{token, code.DeviceCode, code.UserCode} {
			if strings.Contains(l.text, secret) {
				t.Error("the mail contains a secret")
			}
		}
	}
	mail.mu.Unlock()
	someone.open(b.url + "/account")
	if text := someone.text(); !strings.Contains(text, "hostcanary") || !strings.Contains(text, "\nnew\n") {
		t.Errorf("the page does not mark the link as new:\n%s", text)
	}
	if log, err := os.ReadFile(b.logs); err != nil || !strings.Contains(string(log), "link created") ||
		strings.Contains(string(log), "told@") {
		t.Errorf("the log does not mention the link, or discloses its owner (error %v)", err)
	}
}
