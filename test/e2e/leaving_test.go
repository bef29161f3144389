//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const leavingApp = "com.example.leaving"

// The export contains all data of the user except secrets. After the deletion no URL or credential of the account
// works, and neither a dump nor the SQLite file contains any trace of it, even though an app was still connected.
func TestAccount_ExportAndDeletion(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, dump := newDatabase(t, engine)
			mail := startMail(t)
			b := startBackend(t, database, "SERVICE_BACKEND_SMTP_HOST=127.0.0.1",
				"SERVICE_BACKEND_SMTP_PORT="+mail.port,
				"SERVICE_BACKEND_SMTP_FROM=Service <service@example.org>", "SERVICE_BACKEND_SMTP_TLS=none")
			stays := newPerson(t)
			stays.mail = mail
			stays.open(b.url + "/signup")
			stays.signUp("stays@example.org")

			w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url, "SERVICE_NO_AUTO_OPEN=1")
			a := startAgent(w, "modern", false)
			leaver := newPerson(t)
			leaver.mail = mail
			linkAgentOf(t, a, leaver, "leaver@example.org")
			has := settle(t, b, w, a, leaver, mail)
			id := checkExport(t, leaver, has)
			traces := map[string]string{"address": "leaver@", "account": id, "project": leavingApp,
				"credential's end": "WXYZ", "page": has.pageURL[strings.LastIndex(has.pageURL, "/")+1:]}
			before := dump()
			for what, trace := range traces {
				if !strings.Contains(before, trace) {
					t.Errorf("before the deletion, the dump lacks the %s", what)
				}
			}
			leave(t, b, leaver)

			if r := a.call("listProjects", map[string]any{}); r.Structured["status"] != "auth_required" ||
				r.str(t, "userCode") == "" {
				t.Errorf("next call of the agent: got %v, want auth_required", r.Structured)
			}
			if status, code := sendOne(t, b, has.secrets["project key"]); status != http.StatusUnauthorized ||
				code != "invalid_key" {
				t.Errorf("the shipped app's key: got %d %s, want 401 invalid_key", status, code)
			}
			visitor := newPerson(t)
			for _, address := range []string{has.pageURL, has.sessionURL} {
				if visitor.open(address); visitor.status != http.StatusNotFound && visitor.at.Path != "/signin" {
					t.Errorf("%s still works after the deletion: status %d at %s", address, visitor.status, visitor.at)
				}
			}
			must(t, "a mail says that the account is deleted",
				func() bool { return mail.told("leaver@example.org", "deleted") })
			b.stop() // it finishes pending writes before it stops
			text := dump()
			if engine == "sqlite" {
				text += readAll(t, database) // including its free pages
			}
			if !strings.Contains(text, "stays@example.org") {
				t.Error("the dump lacks the account that was not deleted")
			}
			for what, trace := range traces {
				if i := strings.Index(text, trace); i >= 0 {
					t.Errorf("the database contains the %s: ...%q", what, text[max(0, i-200):i+len(trace)])
				}
			}
		})
	}
}

// belongings holds the data of an account: secrets by name, and URLs that work.
type belongings struct {
	secrets             map[string]string
	pageURL, sessionURL string
}

// settle stores data of every kind in an account and leaves an app connected.
func settle(t *testing.T, b *remoteBackend, w *world, a *agent, someone *person, mail *mailbox) belongings {
	t.Helper()
	has := belongings{secrets: map[string]string{"password": password,
		"credential": "sk-leaving0123456789abcdefghijklmnopqrstuvwxyzWXYZ"}}
	has.secrets["mailed link"] = someone.mailed
	someone.open(b.url + "/forgot")
	someone.submit("/forgot", "email", "leaver@example.org")
	has.secrets["reset link"] = mail.token(t, "/reset")
	for _, cookie := range someone.client.Jar.Cookies(someone.at) {
		has.secrets["cookie "+cookie.Name] = cookie.Value[strings.LastIndex(cookie.Value, ".")+1:]
	}
	var auth struct{ AuthToken string }
	readJSON(filepath.Join(w.dir, "auth.json"), &auth)
	has.secrets["token"] = auth.AuthToken

	session := a.call("createSimulatorSession", map[string]any{"project": leavingApp, "openBrowser": false})
	has.sessionURL = session.str(t, "sessionUrl")
	has.secrets["session secret"] = strings.TrimSpace(readAll(t, session.str(t, "appTokenFile")))
	runExampleApp(t, w, session)
	must(t, "the app is in the event log", func() bool {
		return strings.Contains(eventTypes(t, a.call("getEventLog",
			map[string]any{"sessionId": session.str(t, "sessionId")})), "app.attached")
	})
	a.call("generateConnectionModule", map[string]any{"project": leavingApp, "language": "python"})
	has.secrets["project key"] = keptKey(t, w)
	sendAnalytics(t, b, w)
	someone.open(a.call("setCredential", map[string]any{"project": leavingApp, "provider": "openai",
		"openBrowser": false}).str(t, "url"))
	someone.submit(someone.at.Path, "value", has.secrets["credential"])
	waiting := a.call("setCredential", map[string]any{"project": leavingApp, "provider": "openai",
		"openBrowser": false}).str(t, "url")
	has.secrets["credential link"] = waiting[strings.LastIndex(waiting, "/")+1:]
	for i, tool := range accountTools {
		if strings.HasPrefix(tool.name, "set") && tool.reads != "" {
			if r := callRecord(t, a, i, leavingApp); r.IsError {
				t.Errorf("%s returned an error: %v", tool.name, r.Structured)
			}
		}
	}
	someone.open(b.url + "/account/mcp-access?project=" + leavingApp)
	someone.grantAll(leavingApp, "read")
	has.pageURL = a.call("getConnectionPageConfig", map[string]any{"project": leavingApp}).str(t, "pageUrl")
	return has
}

// checkExport downloads and checks the account's data, and returns the account's id.
func checkExport(t *testing.T, someone *person, has belongings) string {
	t.Helper()
	someone.open(someone.at.Scheme + "://" + someone.at.Host + "/account/settings")
	action, fields := someone.form("/account/settings/export")
	if status := get(action); status != http.StatusNotFound {
		t.Errorf("export without the form's token: status %d, want 404", status)
	}
	resp, err := someone.client.PostForm(action, fields)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Disposition"),
		"attachment;") ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") ||
		resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("export: got status %d, headers %v (error %v), want a JSON file that is not cached", resp.StatusCode,
			resp.Header, err)
	}
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(text, &sections); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, name := range []string{"exportedAt", "account", "browserSessions", "mails", "mailedLinks", "links",
		"projects", "projectKeys", "grants",
		"assistantConfigs", "credentials", "credentialLinks", "connectionPages", "analyticsQuota", "analyticsSums", "audit", "sessions", "sessionEvents"} {
		if len(sections[name]) == 0 {
			t.Errorf("the export has no section %s", name)
		}
	}
	for what, words := range map[string]string{"address": "leaver@example.org", "project": leavingApp,
		"event": "photo.taken", "credential's end": "WXYZ", "page's title": "Hello glasses"} {
		if !strings.Contains(string(text), words) {
			t.Errorf("the export lacks the %s", what)
		}
	}
	has.secrets["another account"] = "stays@example.org"
	for what, secret := range has.secrets {
		if len(secret) < 9 || strings.Contains(string(text), secret) {
			t.Errorf("the export contains the %s, or it was not captured: %q", what, secret)
		}
	}
	var account []struct{ ID string }
	if err := json.Unmarshal(sections["account"], &account); err != nil || len(account) != 1 || account[0].ID == "" {
		t.Fatalf("account in the export: error %v, got %s, want one with an id", err, sections["account"])
	}
	return account[0].ID
}

// leave deletes the account, after checking that wrong or missing credentials are refused.
func leave(t *testing.T, b *remoteBackend, someone *person) {
	t.Helper()
	const page = "/account/settings/delete"
	someone.open(b.url + page)
	for _, wrong := range [][2]string{{"stays@example.org", password}, {"leaver@example.org", "wrong horse battery"},
		{"", ""}} {
		someone.submit(page, "email", wrong[0], "password", wrong[1])
		if someone.status != http.StatusUnprocessableEntity || someone.at.Path != page {
			t.Errorf("delete with %q: status %d at %s, want 422", wrong, someone.status, someone.at)
		}
	}
	someone.submit(page, "email", "Leaver@example.org", "password", password)
	if someone.at.Path != "/goodbye" || someone.status != http.StatusOK {
		t.Fatalf("the deletion led to %s (status %d), want /goodbye:\n%s", someone.at, someone.status, someone.text())
	}
	if someone.open(b.url + "/account"); someone.at.Path != "/signin" {
		t.Errorf("after the deletion, /account leads to %s, want /signin", someone.at)
	}
	someone.submit("/signin", "email", "leaver@example.org", "password", password)
	if someone.at.Path != "/signin" {
		t.Errorf("signing in to the deleted account leads to %s, want /signin", someone.at)
	}
}

// sendOne sends one event as a shipped app and returns the response's status and error code.
func sendOne(t *testing.T, b *remoteBackend, key string) (status int, code string) {
	t.Helper()
	body := `{"events":[{"id":"late","type":"session","at":1,"installId":"install-late","platform":"web"}]}`
	req, err := http.NewRequest(http.MethodPost, b.url+"/api/analytics", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var problem struct{ Code string }
	if err := json.NewDecoder(resp.Body).Decode(&problem); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, problem.Code
}

// told reports whether a mail to an address contains a word in its subject.
func (m *mailbox) told(to, word string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.got {
		if l.to == to && strings.Contains(l.subject, word) {
			return true
		}
	}
	return false
}

// device returns the User-Agent of a browser.
type device string

func (d device) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", string(d))
	return http.DefaultTransport.RoundTrip(r)
}

const (
	firefox = device("Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0")
	iPhone  = device("Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Mobile/15E148 Safari/604.1")
	edge    = device("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0")
)

// In the settings, a user can end one other browser session, end all others, or end them by changing the password.
// Sessions of other accounts are unaffected.
func TestBrowserSessions_EndedFromSettings(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "service.db") },
		"postgres": newPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBackend(t, database(t))
			settings := b.url + "/account/settings"
			enter := func(d device, secret string) *person {
				p := newPerson(t)
				p.client.Transport = d
				p.open(b.url + "/signin?next=" + url.QueryEscape("/account/settings"))
				p.submit("/signin", "email", "ada@example.org", "password", secret)
				return p
			}
			in := func(p *person) bool {
				p.open(settings)
				return p.at.Path == "/account/settings"
			}
			stranger := newPerson(t)
			stranger.open(b.url + "/signup?next=" + url.QueryEscape("/account/settings"))
			stranger.submit("/signup", "email", "bob@example.org", "password", password, "accept", "yes")
			desk := newPerson(t)
			desk.client.Transport = firefox
			desk.open(b.url + "/signup")
			desk.submit("/signup", "email", "ada@example.org", "password", password, "accept", "yes")
			phone, laptop := enter(iPhone, password), enter(edge, password)

			desk.open(settings)
			if row := desk.browserRow("Firefox on Linux"); !strings.Contains(textBelow(row), "this browser") ||
				endingForm(row) != "" {
				t.Errorf("the row of this browser is not marked or has a form: %s", textBelow(row))
			}
			end := endingForm(desk.browserRow("Safari on iPhone"))
			stranger.open(settings)
			_, fields := stranger.form("/account/settings/export") // a token from any form is valid
			if stranger.post(b.url+end, fields, ""); stranger.status != http.StatusNotFound || !in(phone) {
				t.Errorf("another account ended a browser session: status %d, want 404", stranger.status)
			}
			desk.submit(end)
			if !strings.Contains(desk.text(), "That browser is signed out") || in(phone) || !in(laptop) || !in(desk) {
				t.Errorf("end the phone's session: unexpected page or sessions:\n%s", desk.text())
			}

			phone = enter(iPhone, password)
			desk.open(settings)
			desk.submit("/account/settings/browsers/end-others")
			if strings.Contains(desk.text(), "iPhone") || in(phone) || in(laptop) || !in(desk) || !in(stranger) {
				t.Errorf("end all other sessions: unexpected page or sessions:\n%s", desk.text())
			}

			phone = enter(iPhone, password)
			desk.submit("/account/settings/password", "password", "wrong horse battery", "new", "another horse battery")
			if desk.status != http.StatusUnprocessableEntity || !in(phone) {
				t.Errorf("change the password with a wrong old one: status %d, want 422", desk.status)
			}
			desk.submit("/account/settings/password", "password", password, "new", "another horse battery")
			if !strings.Contains(desk.text(), "new password is saved") || in(phone) || !in(desk) {
				t.Errorf("change the password: unexpected page or sessions:\n%s", desk.text())
			}
			if in(enter(edge, password)) || !in(enter(edge, "another horse battery")) {
				t.Error("the old password still works, or the new one does not")
			}
		})
	}
}

// browserRow returns the row of a browser on the settings page.
func (p *person) browserRow(name string) *html.Node {
	p.t.Helper()
	for n := range p.page.Descendants() {
		if n.Data == "li" && strings.HasPrefix(textBelow(n), name) {
			return n
		}
	}
	p.t.Fatalf("%s has no row for %s:\n%s", p.at, name, p.text())
	return nil
}

func textBelow(node *html.Node) string {
	var b strings.Builder
	for n := range node.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// endingForm returns the action of the row's form, or "" if it has none.
func endingForm(row *html.Node) string {
	for n := range row.Descendants() {
		if n.Data == "form" {
			return attr(n, "action")
		}
	}
	return ""
}
